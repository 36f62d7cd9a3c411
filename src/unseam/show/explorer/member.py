"""One member of a run as the page sees it: encode, decode, and its latents, the most informative first."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from unseam.axes import Array
from unseam.data.base import Dataset
from unseam.errors import BadInput
from unseam.geometry import active_latents, statistics
from unseam.metrics import score
from unseam.metrics.mig import normalised
from unseam.models.likelihood import Likelihood
from unseam.models.posterior import Posterior
from unseam.runs.represent import ROWS_AT_ONCE, EncodedRows, observation_chunks, represent, without_constants
from unseam.show.explorer.checks import FARTHEST

REACH = 3.0  # a slider goes at least this far when the codes follow a N(0, 1) prior
Shares = tuple[tuple[str, ...], Array]  # names (F,), which share of a factor's entropy each latent knows (F, K)
_WITHIN = (0.005, 0.995)  # quantiles: the range that 99 % of a latent's codes lie in
_TRIED = 16  # codes that are decoded to see whether the decoder is sound
_VARIES = 0.01  # a latent without a posterior is active if it varies by this share of the strongest


class Broken(BadInput):
    """A member whose training failed: it has no point to start from."""


@dataclass(frozen=True)
class Subject:
    """What the page can ask of a model; `codes` are those of the gallery's rows."""

    encode: Callable[[Tensor], Posterior]  # (B, *shape) -> q(z|x)
    decode: Callable[[Tensor], Tensor]  # (B, K) -> theta (B, *shape)
    likelihood: Likelihood
    beta: float
    codes: Array  # (N, K)
    latents: list[dict[str, Any]]  # one row per latent, in the order of the page

    @property
    def size(self) -> int:
        """K."""
        return int(self.codes.shape[1])

    @property
    def active(self) -> list[int]:
        """The latents in use, in the order of the page."""
        return [row["latent"] for row in self.latents if row["active"]]

    @cached_property
    def near(self) -> float:
        """Farther from every code than this counts as a place without data."""
        return spacing(self.codes[:, self.active], self.codes[:, self.active].std(0))

    def mean(self, z: Tensor) -> Tensor:  # (B, K) -> xhat (B, *shape)
        return self.likelihood.mean(self.decode(z))

    @torch.no_grad()
    def picture(self, z: Tensor) -> Tensor:  # (K,) -> xhat (*shape)
        """What the model draws at a point."""
        x = self.mean(z[None])[0]
        if not torch.isfinite(x).all():
            raise BadInput("the decoder returns NaN or infinite values at this point; move closer to the data")
        return x

    @torch.no_grad()
    def place(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (*shape) -> (K,), (K,)
        """Mean and variance of q(z|x)."""
        q = self.encode(x[None])
        mean, variance = q.mean[0], q.variance()[0]
        if not torch.isfinite(torch.stack([mean, variance])).all():
            raise BadInput("the encoder returns NaN or infinite codes or variances for this input")
        return mean, variance


def chunk(data: Dataset) -> int:
    """Rows observed at a time: noise, where the data has some, belongs to the row and is the same each time."""
    return 1 if data.stochastic else ROWS_AT_ONCE


def observe(data: Dataset, rows: Tensor) -> Tensor:  # (B,) -> (B, *shape)
    """The observations at these rows."""
    return torch.cat(list(observation_chunks(data, rows, chunk=chunk(data))))


def look_at_member(
    encode: Callable[[Tensor], Posterior],
    decode: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
    beta: float,
    data: Dataset,
    rows: Tensor,  # (N,)
) -> Subject:
    """Encode the rows and put the latents in order."""
    encoded = without_constants(represent(encode, data, rows, chunk=chunk(data)))
    codes, variances = (part.astype(np.float64) for part in (encoded.codes, encoded.variances))
    check_sound(codes, variances, decode)
    named = factor_shares(codes, encoded)
    return Subject(encode, decode, likelihood, beta, codes, describe_latents(codes, variances, named))


@torch.no_grad()
def check_sound(codes: Array, variances: Array, decode: Callable[[Tensor], Tensor]) -> None:
    """Refuse a model that exploded, with the reason."""
    remedy = "Train it again on scaled data or with a smaller --lr; other members may be sound."
    if not (np.isfinite(codes).all() and np.isfinite(variances).all()):
        raise Broken(f"Training broke this member: its codes or their variances are not finite. {remedy}")
    farthest = float(np.abs(codes).max())
    if farthest > FARTHEST:
        raise Broken(f"This member exploded in training: its codes reach {farthest:,.0f} (a sound one stays below "
                     f"{FARTHEST:,.0f}). {remedy}")  # fmt: skip
    if not torch.isfinite(decode(torch.as_tensor(codes[:_TRIED], dtype=torch.float32))).all():
        raise Broken(f"Training broke this member: its decoder draws values that are not finite. {remedy}")


def spacing(codes: Array, scale: Array) -> float:  # (N, K), (K,)
    """How far 99 % of the codes at most are from the nearest other one, each latent in units of its spread.

    >>> spacing(np.array([[0.0], [2.0], [4.0]]), np.array([2.0]))
    1.0
    """
    z = codes / np.maximum(scale, 1e-12)
    if len(z) < 2 or not z.shape[1]:
        return 0.0
    near, _ = cKDTree(z).query(z, k=2)
    return float(np.quantile(np.asarray(near)[:, 1], 0.99))


def describe_latents(codes: Array, variances: Array, named: Shares | None = None) -> list[dict[str, Any]]:
    """A row per latent: is it in use, how much it says, where its slider goes, which factor it knows most about.

    >>> rows = describe_latents(np.array([[0.0, 1.0], [0.0, -1.0]]), np.array([[1.0, 0.01], [1.0, 0.01]]))
    >>> [(row["latent"], row["active"], row["high"]) for row in rows]
    [(1, True, 3.0), (0, False, 3.0)]
    """
    std, prior = codes.std(0), bool((variances > 0).all())
    kl = statistics(codes, variances).kl if prior else None
    active = active_latents(std) if prior else std > _VARIES * std.max()
    weight = std if kl is None else kl
    reach = [(-REACH, REACH) if prior else (np.inf, -np.inf)] * codes.shape[1]
    within = np.quantile(codes, _WITHIN, axis=0)
    rows = [
        {
            "latent": k,
            "active": bool(active[k]),
            "kl": None if kl is None else float(kl[k]),
            "sigma2": float(variances[:, k].mean()),
            "low": float(min(reach[k][0], codes[:, k].min())),
            "high": float(max(reach[k][1], codes[:, k].max())),
            "within": within[:, k].tolist(),
            "std": float(std[k]),
            "middle": 0.0 if prior else float(codes[:, k].mean()),  # where and how widely to draw from
            "spread": 1.0 if prior else float(std[k]),
            **best_factor(named, k),
        }
        for k in range(codes.shape[1])
    ]
    return sorted(rows, key=lambda row: (not row["active"], -weight[row["latent"]]))


def best_factor(named: Shares | None, latent: int) -> dict[str, Any]:
    """The factor a latent knows most about, and which share of the factor's entropy that is."""
    if named is None:
        return {"factor": None, "share": None}
    best = int(named[1][:, latent].argmax())
    return {"factor": named[0][best], "share": float(named[1][best, latent])}


def factor_shares(codes: Array, encoded: EncodedRows) -> Shares | None:
    """Mutual information over entropy, of the factors that vary; None when none does."""
    if encoded.space is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which latents are passive is on the page
        found = score(codes, encoded.factors, encoded.space, metrics="mig", chance=False)
    matrix = found["mig"].matrix
    assert matrix is not None
    return encoded.space.names, np.nan_to_num(normalised(found.inputs, matrix))
