"""How far off are the estimates of the total correlation? Prints the table of docs/objectives.md.

Run it with: python examples/total_correlation_bias.py

Codes are Gaussian with a known covariance C, so the truth is TC = 1/2 (sum_i log C_ii - log det C). Each posterior has
variance s in every latent; the means have covariance C - s I. Batches of B are drawn from the population; N, the size
of the training set, enters through the weights.
"""

import torch
from torch import Tensor

from unseam.models import Diagonal
from unseam.objectives.total_correlation import decompose, log_weights

CORRELATION = 0.5


def covariance(K: int, correlation: float = CORRELATION) -> Tensor:  # (K, K)
    return (1 - correlation) * torch.eye(K, dtype=torch.float64) + correlation


def truth(K: int) -> float:
    """TC of N(0, C), C with unit variances: -1/2 log det C."""
    return -0.5 * float(torch.logdet(covariance(K)))


def estimate(estimator: str, B: int, N: int, K: int = 5, s: float = 0.1, repeats: int = 200, seed: int = 0) -> Tensor:
    """The TC estimated from each of `repeats` batches (repeats,)."""
    g = torch.Generator().manual_seed(seed)
    root = torch.linalg.cholesky(covariance(K) - s * torch.eye(K, dtype=torch.float64))
    mean = torch.randn(repeats, B, K, generator=g, dtype=torch.float64) @ root.T
    z = mean + s**0.5 * torch.randn(repeats, B, K, generator=g, dtype=torch.float64)
    log_w = log_weights(estimator, B, N).double()
    log_var = torch.full((B, K), s, dtype=torch.float64).log()
    return torch.stack([decompose(z[r], Diagonal(mean[r], log_var), log_w)["tc"].mean() for r in range(repeats)])


def main() -> None:
    print(f"K = 5 latents, truth {truth(5):.3f} nats; entries are estimate - truth, in nats\n")
    for s in (0.1, 0.4):
        print(
            f"| s = {s}, estimator | B | N = 1e3 | N = 1e4 | N = 1e5 | N = 1e6 |\n| --- | --- | --- | --- | --- | --- |"
        )
        for estimator in ("weighted", "stratified"):
            for B in (16, 64, 256):
                off = [
                    estimate(estimator, B, N, s=s, repeats=40).mean() - truth(5) for N in (10**3, 10**4, 10**5, 10**6)
                ]
                print(f"| {estimator} | {B} | " + " | ".join(f"{o:+.2f}" for o in off) + " |")
        print()


if __name__ == "__main__":
    main()
