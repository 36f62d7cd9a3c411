"""Has a member learned its training rows by heart? Rows that it never saw, beside rows that it did.

l(x) = -log p(x | E_q[z]) is what a row's reconstruction costs. With n_h held-out and n_t trained rows,

    gap = mean_h l - mean_t l,   its error = sqrt(var_h / n_h + var_t / n_t),   d = gap / sqrt((var_h + var_t) / 2)

Overfitting is what chance (T errors) does not explain and what is not small beside the rows' own spread (D of it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from unseam.geometry import Diagnosis
from unseam.models import Autoencoder
from unseam.runs.represent import represent, some
from unseam.train import Run
from unseam.types import Array

ROWS = 500  # of each kind
T, D = 2.6, 0.2  # errors of the gap (1 % by chance from FEWEST rows on); a small effect, by Cohen's convention
FEWEST = 10  # rows of each kind
MORE = ("add latents", "lower beta", "over-pruned", "raise K")  # advice that makes it worse


@dataclass(frozen=True)
class Gap:
    """Mean cost of a row that was held out, of one that was trained on, and whether they differ."""

    held_out: float
    trained: float
    error: float
    d: float

    @property
    def overfits(self) -> bool:
        return self.held_out - self.trained > T * self.error and self.d > D

    def __str__(self) -> str:
        nats = f"{self.held_out - self.trained:.2g} nats ({self.held_out:.4g} against {self.trained:.4g})"
        return f"overfitting: held-out rows are reconstructed worse than trained ones, by {nats}"


def gap_of(held: Array, trained: Array) -> Gap:  # (n_h,), (n_t,)
    """
    >>> import numpy as np
    >>> wide, rng = np.ones(50), np.random.default_rng(0)
    >>> [gap_of(up * wide + rng.normal(size=50), rng.normal(size=50)).overfits for up in (0, 1)]
    [False, True]
    """
    spread = held.var(ddof=1), trained.var(ddof=1)
    error = float((spread[0] / len(held) + spread[1] / len(trained)) ** 0.5)
    gap = float(held.mean() - trained.mean())
    return Gap(float(held.mean()), float(trained.mean()), error, gap / max(float(sum(spread) / 2) ** 0.5, 1e-12))


@torch.no_grad()
def gap(run: Run, model: Autoencoder, seed: int = 0) -> Gap | None:
    """Of a run's member; None where fewer than FEWEST rows of a kind are there."""
    kinds = [some(run.split(which), ROWS, seed, "overfit") for which in ("held-out", "trained")]
    if min(map(len, kinds)) < FEWEST:
        return None
    return gap_of(*(costs(run, model, rows, seed) for rows in kinds))


def costs(run: Run, model: Autoencoder, rows: torch.Tensor, seed: int) -> Array:  # (N,)
    """-log p(x | E_q[z]) of each row."""
    seen = represent(model, run.data, rows, seed)
    device = next(model.parameters()).device
    x, z = seen.x.to(device), seen.posterior.mean.to(device)
    return -model.likelihood.log_prob(x, model.decode(z)).double().cpu().numpy()


def warned(found: Diagnosis, told: Gap | None) -> Diagnosis:
    """The diagnosis with overfitting named first, and without advice that would add to it."""
    if told is None or not told.overfits:
        return found
    way = "more rows, fewer latents or steps" + (", or a larger beta" if found.has_beta else "")
    fitting = [text for text in found.warnings if not any(word in text for word in MORE)]
    return replace(found, warnings=(f"{told}: {way}", *fitting))
