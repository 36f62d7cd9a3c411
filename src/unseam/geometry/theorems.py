"""Which identifiability theorem applies to a decoder, and which premise fails: every premise measured, with its chance
level, its cost in nats where it has one, and a sentence.

The premises: C1 and C2 (`separability.py`), product support of the codes, distinct singular values, the exact identity

    Sigma^-1 = I - E_q[ d^2 log p(x|z) / dz^2 ] / beta       (Price, Bonnet; Opper & Archambeau 2009; Allen 2024, v7)

of which the Sigma law is the limit for narrow posteriors, and sparsity of the Jacobian. A premise holds where its
violation is at most a tenth of what random axes give, or below an absolute limit; the limits have names below.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.geometry.curvature import MIXED_NATS, entanglement_cost
from unseam.geometry.degeneracy import TOO_CLOSE_VALUES, pairs_of, plane_differences
from unseam.geometry.diagnosis import html_table, three_digits
from unseam.geometry.jacobian import hessian, jacobian, singular
from unseam.geometry.orthogonality import distances, haar, rotations, select
from unseam.geometry.prepare import PreparedDecoder, each_tensor
from unseam.geometry.separability import cross_slopes, effective_columns, product_support
from unseam.progress import text_table
from unseam.rng import numpy_generator

TENTH = 0.1  # of the chance level: a smaller violation counts as none
SMALL_CHANGE = 0.02  # of log speed over a standard deviation
EMPTY_CELLS = 0.05  # share of cells above chance
IDENTITY_ERROR = 0.25  # median relative error of a variance, as for the Sigma law
_SPARSE = 0.1  # of the latents beyond one that an output depends on, relative to random axes
_DRAWS = 8  # samples of q behind an expected Hessian
_POINTS = 100  # codes at which the dearer premises are measured


@dataclass(frozen=True)
class Premise:
    """One premise, measured."""

    name: str
    value: float | None  # None: not measured
    error: float | None  # standard error over points
    chance: float | None  # what random axes (or shuffled rows) give
    holds: bool | None  # None: not measured
    cost: float | None  # nats, where the violation has a price
    sentence: str


@dataclass(frozen=True)
class Theorem:
    """A theorem and the premises that it needs."""

    name: str
    source: str
    needs: tuple[str, ...]
    says: str
    untested: str = ""  # a premise that is not measured here


THEOREMS: tuple[Theorem, ...] = (
    Theorem("factorised density", "Allen 2024, v7 (if and only if)", ("C1", "C2"),
            "the density on the manifold is a product of one-dimensional densities along the latents"),
    Theorem("identifiable factors", "Allen 2024, v7", ("C1", "C2", "distinct singular values"),
            "latents are the independent factors up to order and sign"),
    Theorem("axes of the posterior", "Allen 2024, Theorems 4 and 5; Zietlow 2022", ("C1", "distinct singular values",
            "Sigma identity"), "a diagonal posterior pins the axes to the right singular vectors"),
    Theorem("orthogonality without independence", "Simon et al. 2026, arXiv 2606.21385", ("C1", "product support"),
            "orthogonal columns identify the latents even if they depend on each other",
            "its condition on higher derivatives (Eq. 4)"),
    Theorem("sparse mechanisms", "Zheng et al. 2022 (NeurIPS)", ("sparse Jacobian",),
            "latents that move different outputs are identified up to order and scale"),
)  # fmt: skip


@dataclass(frozen=True)
class TheoremTable:
    """Premises and theorems of one decoder."""

    premises: tuple[Premise, ...]
    active: int
    scope: str = ""  # which latents, where they are not all

    def premise(self, name: str) -> Premise:
        return next(p for p in self.premises if p.name == name)

    def failing(self, theorem: Theorem) -> tuple[str, ...]:
        """The premises that fail or were not measured."""
        return tuple(name for name in theorem.needs if not self.premise(name).holds)

    @property
    def applies(self) -> dict[str, bool]:
        """Theorem -> whether all its measured premises hold."""
        return {theorem.name: not self.failing(theorem) for theorem in THEOREMS}

    def theorem_rows(self) -> list[list[str]]:
        rows = [["theorem", "applies", "because"]]
        for theorem in THEOREMS:
            missing = self.failing(theorem)
            unknown = [name for name in missing if self.premise(name).holds is None]
            word = "unknown" if missing and len(unknown) == len(missing) else "no" if missing else "yes"
            many = len(missing) > 1
            fault = f"{'were' if many else 'was'} not measured" if word == "unknown" else "fail" if many else "fails"
            untested = f" (not tested: {theorem.untested})" if theorem.untested else ""
            why = f"{' and '.join(missing)} {fault}" if missing else theorem.says + untested
            rows.append([f"{theorem.name} [{theorem.source}]", word, why])
        return rows

    def premise_rows(self) -> list[list[str]]:
        header = ["premise", "value", "+-", "chance", "cost (nats)", "holds"]
        words = {True: "yes", False: "no", None: "-"}
        numbers = [map(three_digits, (p.value, p.error, p.chance, p.cost)) for p in self.premises]
        return [header, *([p.name, *n, words[p.holds]] for p, n in zip(self.premises, numbers, strict=True))]

    def to_json(self) -> dict[str, Any]:
        """Plain values: premises, and of each theorem whether it applies and what fails."""
        theorems = [{"name": t.name, "source": t.source, "applies": not self.failing(t), "fails": self.failing(t)}
                    for t in THEOREMS]  # fmt: skip
        return {
            "premises": [asdict(p) for p in self.premises],
            "theorems": theorems,
            "active": self.active,
            "scope": self.scope,
        }

    def __str__(self) -> str:
        scope = [self.scope] if self.scope else []
        parts = [*scope, text_table(self.premise_rows()), "\n".join(p.sentence for p in self.premises)]
        return "\n\n".join([*parts, "\n".join(f"{a}: {b}; {c}" for a, b, c in self.theorem_rows()[1:])])

    def _repr_html_(self) -> str:
        scope = f"<p>{escape(self.scope)}</p>" if self.scope else ""
        return scope + html_table(self.premise_rows()) + html_table(self.theorem_rows())


@torch.no_grad()
def theorem_table(
    q: PreparedDecoder, data: Tensor | None = None, points: int = _POINTS, seed: int = 0, held: bool = False
) -> TheoremTable:
    """Measure every premise of a decoder at its codes, over the active latents; passive ones stay at their mean.

    `held`: the decoder takes more than these latents, and the rest is not that of each observation; the Sigma identity
    is not asked then.

    >>> from unseam.geometry.prepare import prepare_decoder
    >>> z = torch.rand(200, 2, generator=torch.Generator().manual_seed(0)).double() + 1
    >>> polar = lambda z: torch.stack([z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin()], 1)
    >>> table = theorem_table(prepare_decoder(polar, z, None, None, 0.5, 1.0, 200, None))
    >>> table.premise("C1").holds, table.premise("C2").holds, table.applies["factorised density"]
    (True, False, False)
    """
    keep = np.flatnonzero(q.active)
    if len(keep) < 2:
        names = dict.fromkeys(name for theorem in THEOREMS for name in theorem.needs)
        text = f"{len(keep)} of {len(q.active)} latents are active; axes need two"
        return TheoremTable(
            tuple(Premise(name, None, None, None, None, None, f"{name}: {text}") for name in names), len(keep)
        )
    rows = torch.linspace(0, len(q.z) - 1, min(points, len(q.z)), device="cpu").round().long()
    middle = q.z.mean(0)

    def decode(z: Tensor) -> Tensor:  # (B, active) -> (B, ...)
        full = middle.expand(len(z), -1).clone()
        return q.decode(full.index_copy(1, torch.as_tensor(keep), z))

    z = q.z[rows][:, torch.as_tensor(keep)]
    return TheoremTable(
        (
            _orthogonal(q),
            _speeds(q, decode, z, seed),
            _support(q, keep, seed),
            _distinct(q, seed),
            _identity(q, data, rows, seed, held),
            _sparse(q, decode, z, seed),
        ),
        len(keep),
    )


def _orthogonal(q: PreparedDecoder) -> Premise:
    """C1: DtO of A D over the active latents."""
    active_only = select(q.M.pullback, q.active)
    far = distances(singular(active_only)[1].numpy())
    K = active_only.shape[-1]
    value, chance = float(far.mean()), haar(K)[0]
    cost = float(entanglement_cost(active_only, q.beta).mean())
    holds = value <= TENTH * chance or cost <= MIXED_NATS * q.beta * K * (K - 1) / 2 * TENTH
    size = f"DtO {three_digits(value)}, chance {three_digits(chance)}"
    text = f"C1: columns are {'orthogonal' if holds else 'not orthogonal'} ({size})"
    return Premise("C1", value, float(far.std()) / len(far) ** 0.5, chance, bool(holds), cost, text)


def _speeds(q: PreparedDecoder, decode: Any, z: Tensor, seed: int) -> Premise:
    """C2: latents do not change each other's speed."""
    found = cross_slopes(decode, z, q.likelihood, seed=seed)
    holds = found.value <= max(TENTH * found.chance, SMALL_CHANGE)
    i, j = np.unravel_index(int(found.pairs.argmax()), found.pairs.shape)
    names = np.flatnonzero(q.active)
    most = f"latent {names[j]} changes the speed along latent {names[i]} by {np.expm1(found.pairs[i, j]):.0%}"
    text = f"C2: {'no latent changes the speed along another' if holds else f'{most} per standard deviation'}"
    return Premise("C2", found.value, found.error, found.chance, holds, found.cost, text)


def _support(q: PreparedDecoder, keep: Array, seed: int) -> Premise:
    """Product support: codes fill a box."""
    if len(q.codes) < 16:
        return Premise("product support", None, None, None, None, None, "product support: fewer than 16 codes")
    found = product_support(q.codes[:, keep], seed=seed)
    holds = found.empty <= found.chance + max(EMPTY_CELLS, 3 * found.error)
    i, j = keep[list(found.worst)]
    text = "product support: " + (
        "every combination of values occurs" if holds else
        f"{found.empty:.0%} of the combinations never occur, most of them of latents {i} and {j}")  # fmt: skip
    return Premise("product support", found.empty, found.error, found.chance, bool(holds), None, text)


def _distinct(q: PreparedDecoder, seed: int) -> Premise:
    """Distinct singular values: the closest pair of latents, and that of random columns."""
    active_only = select(q.G, q.active)
    K = active_only.shape[-1]
    value = float(plane_differences(active_only, *pairs_of(K)).min())
    rng = numpy_generator(seed, "distinct")
    gaussian = rng.normal(size=(50, 4 * K, K))
    random = torch.as_tensor(np.swapaxes(gaussian, 1, 2) @ gaussian)
    chance = float(np.mean([float(plane_differences(g[None], *pairs_of(K)).min()) for g in random]))
    holds = value >= TOO_CLOSE_VALUES
    text = (f"distinct singular values: the closest two differ by {value:.0%}" +
            ("" if holds else ", so the data does not prefer an axis in their plane"))  # fmt: skip
    return Premise("distinct singular values", value, None, chance, holds, None, text)


def _identity(q: PreparedDecoder, data: Tensor | None, rows: Tensor, seed: int, held: bool) -> Premise:
    """The exact Sigma identity: learned precisions against the expected Hessian under q."""
    at = q.posterior_at_points()
    if at is None or data is None or held:
        missing = "a posterior" if at is None else "observations" if data is None else "all that the decoder takes"
        return Premise("Sigma identity", None, None, None, None, None, f"Sigma identity: needs {missing}")
    at = each_tensor(at, lambda t: t[rows])
    x = torch.as_tensor(data)[q.rows[rows]].to(q.z)
    generator = torch.Generator().manual_seed(seed)
    H = torch.zeros(len(rows), q.z.shape[1], q.z.shape[1], dtype=torch.float64, device="cpu")
    for _ in range(_DRAWS):
        noise = torch.randn(at.mean.shape, generator=generator, dtype=torch.float64, device="cpu").to(at.mean)
        z = at.sample(noise).to(q.z)
        H += hessian(q.decode, z, x, q.likelihood).double().cpu() / _DRAWS
    target = 1 - H.diagonal(dim1=1, dim2=2)[:, q.active] / q.beta  # (m, k) precisions
    precision = torch.linalg.inv(at.covariance()).diagonal(dim1=1, dim2=2)
    learned = 1 / precision[:, q.active]  # given the other latents; of a diagonal posterior its variances
    sound = target > 0
    error = ((learned * target) - 1).abs()
    order = torch.randperm(len(rows), generator=generator, device="cpu")
    value, chance = float(error[sound].median()), float((learned[order] * target - 1).abs()[sound].median())
    product = (learned * target)[sound]
    cost = float((q.beta / 2 * (product - 1 - product.log())).sum() / len(rows))
    holds = value <= IDENTITY_ERROR
    text = (f"Sigma identity: variances are off by {value:.0%} of what the expected curvature asks for"
            f" (rows shuffled: {chance:.0%})")  # fmt: skip
    return Premise("Sigma identity", value, None, chance, holds, cost, text)


def _sparse(q: PreparedDecoder, decode: Any, z: Tensor, seed: int) -> Premise:
    """Sparsity of J: how many latents an output depends on, beyond one; random axes beside."""
    J = jacobian(decode, z).double().cpu()
    scale = z.double().cpu().std(0)
    J = J * scale
    number_of = effective_columns(J)
    K = J.shape[2]
    turns = rotations(numpy_generator(seed, "sparse"), 5, K)
    chance = float(np.mean([float(effective_columns(J @ torch.as_tensor(Q)).mean()) for Q in turns]))
    value = float(number_of.mean())
    holds = value - 1 <= _SPARSE * (chance - 1)
    text = f"sparse Jacobian: an output depends on {value:.2f} latents (random axes: {chance:.2f})"
    return Premise("sparse Jacobian", value, float(number_of.std()) / len(z) ** 0.5, chance, bool(holds), None, text)
