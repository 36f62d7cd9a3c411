"""What a diagnosis holds. Results only: `diagnose.py` computes them, `verdict.py` puts them into words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.progress import text_table

_NONE = np.zeros(0)
NOT_FINITE = ("inf", "-inf", "nan")  # JSON has no word for these: stored as text


@dataclass(frozen=True)
class Latent:
    """One row of the per-latent table."""

    index: int
    kl: float | None  # nats, its share of the posterior's KL; None without a posterior
    sigma2: float | None  # E sigma^2, mean learned posterior variance; None without a posterior
    sigma2_law: float  # mean variance that the Sigma law predicts
    jacobian_norm: float  # root mean square of |J_i| over the points, in units of the output
    mu_std: float  # standard deviation of the codes
    active: bool  # by `regime.active_latents`; without a posterior by `question.moving`


@dataclass(frozen=True)
class Pair:
    """Two active latents: how mixed they are, and whether the data prefers an axis at all."""

    i: int
    j: int
    cost: float  # nats of loss: this pair's share of the entanglement cost
    cosine: float  # root mean square cosine of their columns
    difference: float  # relative difference of the singular values of their plane, median over points
    preference: float  # nats of loss by which the worst rotation of their plane costs more than the best
    saving: float  # nats of loss that the best rotation of their plane would save
    mixed: bool
    degenerate: bool
    coordinates: str | None = None  # "cartesian", "polar" or "undecided"; decided for the ten costliest mixed pairs


class Arrays(NamedTuple):
    """What the figures draw, at the m points of a diagnosis; empty where it was not computed."""

    cosines: Array = _NONE  # (K, K) root mean square over the points
    singular_values: Array = _NONE  # (m, K)
    pair_costs: Array = _NONE  # (K, K) nats of loss
    costs: Array = _NONE  # (m,) nats of loss
    distances: Array = _NONE  # (m,) |V - P(V)|, active latents
    sigma2_law: Array = _NONE  # (m, K)
    active: Array = _NONE  # (K,)
    sigma2: Array | None = None  # (m, K); None without a posterior
    sigma_law_r: Array | None = None  # (K,) per latent; None without a posterior

    def __getitem__(self, name: Any) -> Any:
        """By name too, as when this was a dictionary."""
        return getattr(self, name) if isinstance(name, str) else tuple.__getitem__(self, name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and getattr(self, name, None) is not None

    def get(self, name: str) -> Any:
        return getattr(self, name, None)


@dataclass(frozen=True)
class Diagnosis:
    """Why a latent space is aligned with the factors of its data, or why it is not.

    Examples
    --------
    >>> import torch
    >>> from unseam.geometry import diagnose
    >>> codes = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    >>> found = diagnose(lambda z: torch.stack([2 * z[:, 0], z[:, 1]], 1), codes)
    >>> found.active, found.dto, len(found.pairs)
    (2, 0.0, 1)
    """

    dto: float | None
    """distance to orthogonality over the active latents; None when none is active"""
    dto_haar: float | None
    """what a random rotation of as many latents gives"""
    entanglement_cost: float
    """nats of loss, mean over points"""
    cost_of_active: float
    """its part between active latents; the rest is what passive ones still do"""
    ima_contrast: float | None
    """nats, mean over points, active latents; infinite where their columns are dependent"""
    sigma_law_r: float | None
    """correlation of learned and predicted log variances, active latents"""
    sigma_law_error: float | None
    """median relative error of a variance, active latents"""
    active: int
    """how many latents are active"""
    latents: tuple[Latent, ...]
    """one row for each latent"""
    pairs: tuple[Pair, ...]
    """of active latents, the costliest first"""
    warnings: tuple[str, ...]
    """what to be careful about, in words"""
    verdict: str
    """the result in words"""
    beta: float
    """the weight of the KL in the loss"""
    points: int
    """points at which Jacobians were taken"""
    dto_all: float
    """over all latents, dead ones included"""
    delta_kl: float | None = None
    """distance from the polarized regime (Zietlow 2022, eq. 3.38)"""
    elbo: float | None = None
    """log p(x | z = mean) - 1/2 tr(M Sigma) - beta KL, nats per sample, if data was given"""
    self_consistency: float | None = None
    """relative error of e(d(z)), when the encoder was given"""
    arrays: Arrays = field(default=Arrays(), repr=False)
    """the numbers behind figures"""
    beta_source: str = "given"
    """"given", "estimated" (Sigma law), "unit": nothing fixes it, 1 was taken; "none": no KL"""
    full_posterior: bool = False
    """whether the posterior is a full Gaussian"""
    sigma_law_passive_error: float | None = None
    """the same error over passive latents, which says little"""
    sigma_law_factor: float | None = None
    """what beta (or s2) must be multiplied by to fit the learned variances best"""
    sigma_law_rescaled_r: float | None = None
    """r and error with beta times that factor"""
    sigma_law_rescaled_error: float | None = None
    """the error with beta times that factor"""
    scope: str = ""
    """a description of the latents that were diagnosed; "" for all of them"""
    whole_cost: float | None = None
    """nats of loss: the cost of all latents, estimated where only some were diagnosed"""
    whole_cost_error: float | None = None
    """its standard error"""

    @property
    def has_beta(self) -> bool:
        """Whether the loss had a beta, known or not."""
        return self.beta_source != "none"

    @property
    def kl(self) -> float | None:
        """KL(q || prior) in nats; None without a posterior."""
        shares = [z.kl for z in self.latents if z.kl is not None]
        return sum(shares) if shares else None

    @property
    def share_of_kl(self) -> float | None:
        """The entanglement cost beside beta KL, what the whole posterior costs: a share that no unit changes."""
        return self.entanglement_cost / (self.beta * self.kl) if self.kl else None

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Everything, to be stored: plain values that JSON can hold, and arrays by name.

        >>> found = Diagnosis(None, None, 0.0, 0.0, math.inf, None, None, 0, (), (), (), "", 1.0, 9, 0.0)
        >>> values, arrays = found.to_parts()
        >>> values["ima_contrast"], Diagnosis.from_parts(values, arrays).ima_contrast
        ('inf', inf)
        """
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "arrays"}
        values |= {"latents": [asdict(z) for z in self.latents], "pairs": [asdict(pair) for pair in self.pairs]}
        values |= {"warnings": list(self.warnings)}
        arrays = {name: value for name, value in self.arrays._asdict().items() if value is not None}
        return {name: str(v) if not_finite(v) else v for name, v in values.items()}, arrays

    @staticmethod
    def from_parts(values: Mapping[str, Any], arrays: Mapping[str, Array]) -> Diagnosis:
        """The diagnosis that `to_parts` took apart. Names that this version does not know are left out."""
        known = {f.name for f in fields(Diagnosis)} - {"arrays"}
        document: dict[str, Any] = {
            name: float(v) if v in NOT_FINITE else v for name, v in scalars(values) if name in known
        }
        return Diagnosis(
            **document,
            latents=tuple(Latent(**row) for row in values["latents"]),
            pairs=tuple(Pair(**row) for row in values["pairs"]),
            warnings=tuple(values["warnings"]),
            arrays=Arrays(**{name: arrays[name] for name in Arrays._fields if name in arrays}),
        )

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values; what is infinite is None."""
        values = {name: None if v in NOT_FINITE else v for name, v in scalars(self.to_parts()[0])}
        rows = {name: self.to_parts()[0][name] for name in ("latents", "pairs", "warnings")}
        return {**values, **rows, "kl": self.kl, "share_of_kl": self.share_of_kl}

    def __repr__(self) -> str:
        """One line: latents and pairs fill pages."""
        active = f"{self.active} of {len(self.latents)} latents active"
        return f"Diagnosis(DtO {three_digits(self.dto)}, {active}: {self.verdict})"

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"warning: {warning}" for warning in self.warnings), "", self.table()])

    def rows(self) -> list[list[str]]:
        """The per-latent table as text, its header first."""
        header = ["latent", "active", "KL", "sigma^2", "by the law", "|J_i|", "std(mu)"]
        values = [(z.kl, z.sigma2, z.sigma2_law, z.jacobian_norm, z.mu_std) for z in self.latents]
        first = [[str(z.index), "yes" if z.active else "no"] for z in self.latents]
        return [header, *([*both, *map(three_digits, row)] for both, row in zip(first, values, strict=True))]

    def table(self) -> str:
        """One row of text for each latent, under a row of headings."""
        return text_table(self.rows(), left=0)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
        return f"<p>{escape(self.verdict)}</p><ul>{notes}</ul>{html_table(self.rows())}"


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is its header.

    >>> html_table([["a"], ["<1"]])
    '<table><tr><th>a</th></tr><tr><td>&lt;1</td></tr></table>'
    """
    kinds = ["th", *["td"] * (len(rows) - 1)]
    cells = ["".join(f"<{k}>{escape(cell)}</{k}>" for cell in row) for k, row in zip(kinds, rows, strict=True)]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def not_finite(value: Any) -> bool:
    """NaN and infinities, for which JSON has no word."""
    return isinstance(value, float) and not math.isfinite(value)


def scalars(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The entries that are not tables."""
    return [(name, value) for name, value in values.items() if not isinstance(value, list | tuple)]


def three_digits(value: float | None) -> str:
    """Three significant digits, or a dash.

    >>> three_digits(0.12345), three_digits(None)
    ('0.123', '-')
    """
    return "-" if value is None else f"{value:.3g}"
