"""What the formulas stand on: information, correlation, predictors, interventions, and how sure a score is."""
