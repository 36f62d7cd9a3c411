"""What a diagnosis holds. Results only: `diagnose.py` computes them, `verdict.py` puts them into words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from unseam.types import Array


@dataclass(frozen=True)
class Latent:
    """One row of the per-latent table."""

    index: int
    kl: float | None  # nats; None without a posterior
    sigma2: float | None  # mean learned posterior variance; None without a posterior
    sigma2_law: float  # mean variance that the Sigma law predicts
    jacobian_norm: float  # root mean square of |J_i| over the points
    mu_std: float  # standard deviation of the codes
    active: bool


@dataclass(frozen=True)
class Pair:
    """Two active latents: how mixed they are, and whether the data prefers an axis at all."""

    i: int
    j: int
    cost: float  # nats: this pair's share of the entanglement cost
    cosine: float  # root mean square cosine of their columns
    difference: float  # relative difference of the singular values of their plane, median over points
    preference: float  # nats by which the worst rotation of their plane costs more than the best
    saving: float  # nats that the best rotation of their plane would save
    mixed: bool
    degenerate: bool
    coordinates: str | None = None  # "cartesian", "polar" or "undecided"; looked at for the ten costliest mixed pairs


@dataclass(frozen=True)
class Diagnosis:
    """Why a latent space is aligned with the factors of its data, or why it is not."""

    dto: float | None  # distance to orthogonality over the active latents; None when none is active
    dto_haar: float | None  # what a random rotation of as many latents gives
    entanglement_cost: float  # nats, mean over points
    cost_of_active: float  # its part between active latents; the rest is what passive ones still do
    ima_contrast: float | None  # nats, mean over points, active latents
    sigma_law_r: float | None  # correlation of learned and predicted log variances
    sigma_law_error: float | None  # median relative error of a variance
    active: int
    latents: tuple[Latent, ...]
    pairs: tuple[Pair, ...]  # of active latents, the costliest first
    warnings: tuple[str, ...]
    verdict: str
    beta: float
    points: int  # points at which Jacobians were taken
    dto_all: float  # over all latents, dead ones included
    delta_kl: float | None = None  # distance from the polarized regime (Zietlow 2022, eq. 3.38)
    elbo: float | None = None  # log p(x | z = mean) - beta KL, nats per sample, when the data was given
    self_consistency: float | None = None  # relative error of e(d(z)), when the encoder was given
    arrays: dict[str, Array] = field(default_factory=dict, repr=False)  # for figures: see `diagnose`

    @property
    def share_of_elbo(self) -> float | None:
        """The entanglement cost as a share of |ELBO|."""
        return self.entanglement_cost / abs(self.elbo) if self.elbo else None

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "arrays"}
        document["latents"] = [asdict(latent) for latent in self.latents]
        document["pairs"] = [asdict(pair) for pair in self.pairs]
        return {**document, "warnings": list(self.warnings), "share_of_elbo": self.share_of_elbo}

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"warning: {warning}" for warning in self.warnings), "", self.table()])

    def rows(self) -> list[list[str]]:
        """The per-latent table as text, its header first."""
        header = ["latent", "active", "KL", "sigma^2", "by the law", "|J_i|", "std(mu)"]
        body = [
            [
                str(z.index),
                "yes" if z.active else "no",
                number(z.kl),
                number(z.sigma2),
                number(z.sigma2_law),
                number(z.jacobian_norm),
                number(z.mu_std),
            ]
            for z in self.latents
        ]
        return [header, *body]

    def table(self) -> str:
        rows = self.rows()
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)

    def _repr_html_(self) -> str:
        header, *body = self.rows()
        cells = "".join(f"<th>{escape(name)}</th>" for name in header)
        lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
        notes = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
        return f"<p>{escape(self.verdict)}</p><ul>{notes}</ul><table><tr>{cells}</tr>{lines}</table>"


def number(value: float | None) -> str:
    """Three significant digits, or a dash.

    >>> number(0.12345), number(None)
    ('0.123', '-')
    """
    return "-" if value is None else f"{value:.3g}"
