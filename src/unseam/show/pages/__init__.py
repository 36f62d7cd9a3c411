"""Small pages without a script: findings, a study, a perturbation, a stress test, all objectives on one data set."""
