"""Z15: the ELBO with the best encoder becomes the IMA objective as the decoder's precision grows (Figure 7.6).

    log p(x)  = log int N(x; f(z), I/gamma^2) N(z; 0, I) dz                      by quadrature
    ELBO*(x)  = max over mean, diagonal Sigma of E_q log p(x|z) - KL(q || N(0, I))
    IMA(x)    = log p(x) - c(x),   c = sum_i log|J_i| - log|det J|  at z = f^-1(x)

Reizinger 2022: ELBO* - IMA -> 0 and f(mean) -> x as gamma^2 -> infinity.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.geometry import entanglement_cost, ima_contrast, metrics
from unseam.rng import generator
from unseam_papers.frame.draw import BLUE, DARK, GREEN, ORANGE, Figure, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import after_a_look, beyond, control, limit
from unseam_papers.zietlow.bounds import Decoder, best_bound, log_likelihood

ID, TITLE = "Z15", "ELBO*, the IMA objective and the likelihood over the decoder's precision"
CLAIM = (
    "As the decoder's precision grows, the ELBO with the best encoder becomes the log-likelihood minus the IMA "
    "regulariser."
)
SOURCE = "Zietlow 2022, section 7.6 and Figure 7.6 (Reizinger et al. 2022)"
_CLOSE = 0.02  # nats at the highest precision: below this two objectives count as one
INVERTED = 1e-3  # of a latent's variance of 1
CHOICES = (
    "The decoder and the data: not given in the thesis. Ours: random networks 2-2-2 with a bijective activation "
    "(layers with singular values 1.3 and 0.7), and x = f(z) with z from the prior.",
    "ELBO*: the best diagonal Gaussian for each x, found by L-BFGS with Gauss-Hermite quadrature, not a trained "
    "encoder; so there is no amortisation gap and no sampling noise.",
    "The likelihood: the trapezium rule on a grid of the two latents, not a bound.",
)
PAPER = "nothing is published about sizes: our larger scale"


@dataclass(frozen=True)
class Settings:
    points: int  # x = f(z), z ~ N(0, I)
    precisions: tuple[float, ...]  # gamma^2
    decoders: int  # random networks
    nodes: int = 12  # of Gauss-Hermite a latent, for E_q
    grid: int = 121  # of the trapezium rule a latent, for log p(x)


SCALES = {
    "tiny": Settings(points=6, precisions=(1.0, 100.0, 10_000.0), decoders=2, nodes=6, grid=41),
    "quick": Settings(points=60, precisions=tuple(10 ** (k / 2) for k in range(11)), decoders=5),
    "paper": Settings(points=500, precisions=tuple(10 ** (k / 4) for k in range(25)), decoders=20, nodes=16),
}


def leaky_tanh(z: Tensor) -> Tensor:
    return torch.tanh(z) + 0.2 * z


def mixed(seed: int) -> Decoder:
    """Two square layers with a bijective activation: smooth, invertible, columns not orthogonal."""
    draw = generator(seed, "z15")
    layers = [torch.randn(2, 2, generator=draw, dtype=torch.float64) for _ in range(3)]
    W = [U @ torch.diag(torch.tensor([1.3, 0.7], dtype=torch.float64)) @ V for U, _, V in map(torch.linalg.svd, layers)]
    return lambda z: leaky_tanh(leaky_tanh(z @ W[0].T) @ W[1].T) @ W[2].T


def conformal(seed: int) -> Decoder:
    """The complex map w -> w + 0.06 w^2, turned: columns of equal length and orthogonal everywhere, so c = 0."""
    t = 2 * math.pi * float(torch.rand(1, generator=generator(seed, "z15-turn")))
    R = torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]], dtype=torch.float64)

    def f(z: Tensor) -> Tensor:
        a, b = z.unbind(1)
        return torch.stack([a + 0.06 * (a * a - b * b), b + 0.12 * a * b], 1) @ R.T

    return f


_DECODERS: dict[str, Callable[[int], Decoder]] = {"mixed": mixed, "conformal": conformal}


def _measure(f: Decoder, settings: Settings, seed: int) -> list[dict[str, float]]:
    """One row a precision: means over the points, in nats."""
    z = torch.randn(settings.points, 2, generator=generator(seed, "z15-points"), dtype=torch.float64)
    x = f(z)
    gram = metrics(f, z, dtype=torch.float64).gram
    contrast = ima_contrast(gram)
    rows = []
    for precision in settings.precisions:
        M = torch.eye(2, dtype=torch.float64) + precision * gram  # the Sigma law: Sigma^-1 = I + M
        scale = torch.linalg.cholesky(torch.linalg.inv(M))
        like = log_likelihood(f, x, z, scale, precision, settings.grid)
        star, mean = best_bound(f, x, z, M, precision, settings.nodes, full=False)
        full, _ = best_bound(f, x, z, M, precision, settings.nodes, full=True)
        values = {
            "likelihood": like,
            "elbo": star,
            "full": full,
            "contrast": contrast,
            "apart": (star - like + contrast).abs(),  # |ELBO* - IMA|, point by point
            "law": entanglement_cost(precision * gram, 1.0),
            "inverse": (mean - z).square().sum(1),  # |e(x) - f^-1(x)|^2
        }
        rows.append({"precision": precision} | {name: float(value.mean()) for name, value in values.items()})
    return rows


def compute(settings: Settings, work: Work) -> Numbers:
    """kind -> decoder -> one row a precision."""
    names = {f"{kind}-{i}": (kind, i) for kind in _DECODERS for i in range(settings.decoders)}
    found = work.each(names, lambda name: _measure(_DECODERS[names[name][0]](names[name][1]), settings, names[name][1]))
    return {kind: [found[name] for name in names if names[name][0] == kind] for kind in _DECODERS}


def _column(numbers: Numbers, kind: str, name: str) -> Array:  # (decoders, precisions)
    return np.array([[row[name] for row in rows] for rows in numbers[kind]])


def short_of(numbers: Numbers, kind: str, bound: str = "elbo") -> Array:  # (decoders, precisions)
    """log p(x) - the bound."""
    return _column(numbers, kind, "likelihood") - _column(numbers, kind, bound)


def judge(numbers: Numbers) -> list[VerdictRow]:
    precisions, apart, law = (_column(numbers, "mixed", name) for name in ("precision", "apart", "law"))
    inverse, contrast = _column(numbers, "mixed", "inverse"), _column(numbers, "mixed", "contrast")[:, -1]
    gaps, top = short_of(numbers, "mixed"), f"at gamma^2 = {precisions[0, -1]:g}"
    falls = ", ".join(f"{value:.1g}" for value in apart.mean(0)[:: max(1, apart.shape[1] // 5)])
    both = f"gap {gaps[:, -1].mean():.3f}, regulariser {contrast.mean():.3f} nats on average"
    off, exactly = np.abs(gaps[:, -1] - contrast), "the gap is exactly the IMA regularizer"
    near: dict[str, Any] = {"below": _CLOSE, "form": ".1g", "unit": " nats"}
    falls = f"over gamma^2: {falls}"
    rows = [
        limit("vanishes", f"|ELBO* - IMA objective| {top}", "vanishes", apart[:, -1], note=falls, **near),
        limit("regulariser", f"|log-likelihood - ELBO* - IMA regulariser| {top}", exactly, off, note=both, **near),
    ]
    rows = [after_a_look(row, "the limit was 0.05 nats before trial runs") for row in rows]
    what, inverts = f"E|e(x) - f^-1(x)|^2 {top}", "the decoder inverts the encoder"
    start = f"{inverse[:, 0].mean():.2g} at gamma^2 = {precisions[0, 0]:g}"
    rows.append(limit("inverts", what, inverts, inverse[:, -1], below=INVERTED, form=".1g", note=start))
    for key, what, kind, bound in (
        ("full", "full posterior", "mixed", "full"),
        ("orthogonal", "orthogonal columns", "conformal", "elbo"),
    ):
        left = short_of(numbers, kind, bound)[:, -1]
        small, rule = bool((np.abs(left) < _CLOSE).all()), f"below {_CLOSE} nats for each decoder"
        what = f"{what}: log-likelihood - ELBO* {top}"
        rows.append(control(key, what, f"{left.mean():.1g} nats", small, rule, "theory: 0"))
    ours = f"predicted to {np.abs(gaps - law).mean():.2g} nats (IMA regulariser alone: {apart.mean():.2g})"
    note = "1/2 [sum_i log(1 + M_ii) - log det(I + M)] needs no limit"
    what = "log-likelihood - ELBO* at every precision, from the entanglement cost"
    return [*rows, beyond("law", what, ours, note=note)]


def draw(numbers: Numbers) -> Figure:
    """The three objectives of the first decoder over the precision; the gaps of all decoders."""
    fig, (left, right) = panels(9.6, 3.5, columns=2)
    rows = numbers["mixed"][0]
    p = np.array([r["precision"] for r in rows])
    like, star, c = (np.array([r[name] for r in rows]) for name in ("likelihood", "elbo", "contrast"))
    lines = (
        ("log-likelihood", like, DARK, "-"),
        ("IMA objective", like - c, ORANGE, "--"),
        ("ELBO*", star, BLUE, "o-"),
    )
    for label, values, colour, kind in lines:
        left.semilogx(p, values, kind, color=colour, label=label, ms=4)
    left.annotate("", (p[-1], like[-1]), (p[-1], like[-1] - c[-1]), arrowprops={"arrowstyle": "<->", "color": DARK})
    left.text(p[-1] / 1.5, like[-1] - c[-1] / 2, f"IMA regulariser\n{c[-1]:.2f} nats", ha="right", va="center")
    left.set(xlabel="decoder precision γ²", ylabel="nats a sample", title="Figure 7.6: one mixed decoder")
    left.legend(loc="lower right")
    curves = (
        ("|ELBO* − IMA|", _column(numbers, "mixed", "apart"), BLUE),
        ("full posterior: log p − ELBO", short_of(numbers, "mixed", "full"), GREEN),
        ("orthogonal decoder: log p − ELBO*", short_of(numbers, "conformal"), ORANGE),
        ("mixed decoder: log p − ELBO*", short_of(numbers, "mixed"), DARK),
    )
    for label, values, colour in curves:
        right.loglog(p, np.maximum(np.abs(values), 1e-7).T, color=colour, lw=0.7, alpha=0.5)
        right.loglog(p, np.maximum(np.abs(values).mean(0), 1e-7), color=colour, lw=2, label=label)
    half = len(p) // 2
    at = _column(numbers, "mixed", "apart").mean(0)[half] * 0.25
    right.loglog(p[half:], at * p[half] / p[half:], ":", color=DARK, lw=1)
    right.text(p[half] * 0.9, at, "1/γ²", ha="right", va="center")
    right.set(xlabel="decoder precision γ²", ylabel="gap, nats a sample", title="All decoders: thin lines one each")
    right.legend(loc="lower left")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    precisions, apart = _column(numbers, "mixed", "precision")[0], _column(numbers, "mixed", "apart").mean(0)
    controls = sum(rows[key].verdict == "holds" for key in ("full", "orthogonal"))
    why = "So it is the diagonal posterior that turns the likelihood into the IMA objective. "
    return (
        f"On {len(numbers['mixed'])} random decoders the distance of ELBO* to the IMA objective goes from "
        f"{apart[0]:.2g} nats at gamma^2 = {precisions[0]:g} to {apart[-1]:.1g} at {precisions[-1]:g}. By the theory a "
        "full posterior and a decoder with orthogonal columns have nothing to pay in the limit; "
        f"{controls} of these 2 controls come out so. {why if controls == 2 else ''}Away from the limit the "
        "entanglement cost, which keeps the prior's 1 in 1 + M_ii, describes the gap: "
        f"{rows['law'].ours}."
    )
