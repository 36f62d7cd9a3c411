"""A12: orthogonal columns do not make a product. Polar coordinates pass A4, and their components are not independent.

    C1   the columns of J are orthogonal              log p#(d(z)) = sum_i [ log p(z_i) - log s_i(z) ],  s_i = |J_i|
    C2   d log s_i / d z_j = 0 for i != j             then each term is a function of z_i alone: a product of densities

For radii spread evenly over 1 to 3 the density differs from the nearest product by log E r - E log r = 0.0452 nats.
`geometry.coordinates` names latents cartesian or polar by the frame in which the metric is diagonal, that is by C1
alone: a ring in a plane (the speed along the angle grows with the radius) and a cylinder (it does not) are both polar
to it, and only C2 tells them apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.geometry import component_density, dto, ima_contrast, jacobian, log_densities
from unseam.geometry.coordinates import pair_coordinates
from unseam.geometry.separability import cross_slopes
from unseam.rng import generator
from unseam_papers.frame.draw import BLUE, GREY, Figure, dots, panels
from unseam_papers.frame.exhibit import Numbers, Work, pick
from unseam_papers.frame.rows import VerdictRow, VerdictRows, plus_minus
from unseam_papers.frame.verdicts import beyond, control, identity

ID, TITLE = "A12", "Polar coordinates: orthogonal columns without independent components"
CLAIM = (
    "Orthogonal columns (C1) make the push-forward a product only if no latent changes the speed along another (C2); "
    "polar coordinates satisfy the first and not the second."
)
SOURCE = "Allen 2024, version 7 (conditions C1 and C2, if and only if); its proofs were not at hand"
PAPER = "nothing is trained, so the scales differ in the number of draws only"
CHOICES = (
    "Four maps of two latents, in closed form; codes are drawn evenly from 1..3 (0..1.1 for the conformal map) and "
    "from 0..1.5, 500 at a time. C2 is the root mean square change of log s_i while the other latent goes through one "
    "standard deviation.",
    "Ring and cylinder: latents in a plane at radii 1 to 3, decoded to (g cos a, g sin a) with g = r^3 / 3, and to "
    "(3 r, cos a, sin a). Their metric is diagonal along radius and angle.",
    "The rules of all rows were fixed before the first run: five standard errors for C1 and C2, 10 % for the cost.",
)
_POINTS = 500
_STANDARD_ERRORS = 5.0
_INSIDE = 0.9973  # P(|t| < 3)
COST_OF_POLAR = float(np.log(2) - (3 * np.log(3) - 2) / 2)  # log E r - E log r, r even on 1..3


def _stack(*parts: Tensor) -> Tensor:
    return torch.stack(parts, 1)


def _polar(z: Tensor) -> Tensor:
    return _stack(z[:, 0] * z[:, 1].cos(), z[:, 0] * z[:, 1].sin())


def _conformal(z: Tensor) -> Tensor:
    return _stack(z[:, 0].exp() * z[:, 1].cos(), z[:, 0].exp() * z[:, 1].sin())


def _curves(z: Tensor) -> Tensor:
    """Two curves, turned by 30 degrees."""
    a, b, c, s = z[:, 0].square() / 2, z[:, 1].exp(), 0.75**0.5, 0.5
    return _stack(c * a - s * b, s * a + c * b)


def _sheared(z: Tensor) -> Tensor:
    return _stack(z[:, 0] + 0.5 * z[:, 1], z[:, 1])


# lower case: the digest of an exhibit's settings holds its constants as text, and functions have none
plane_maps: dict[str, tuple[str, Callable[[Tensor], Tensor], float, float]] = {  # label, map, first latent from .. to
    "polar": ("polar", _polar, 1.0, 3.0),
    "conformal": ("conformal", _conformal, 0.0, 1.1),
    "curves": ("product of curves", _curves, 1.0, 3.0),
    "sheared": ("sheared plane", _sheared, 1.0, 3.0),
}
radial_maps: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of radius and angle
    "ring": lambda r, a: _stack(r**3 / 3 * a.cos(), r**3 / 3 * a.sin()),
    "cylinder": lambda r, a: _stack(3 * r, a.cos(), a.sin()),
}


@dataclass(frozen=True)
class Settings:
    draws: int


SCALES = {"tiny": Settings(3), "quick": Settings(20), "paper": Settings(200)}


def codes(low: float, high: float, draw: int) -> Tensor:  # (N, 2)
    u = torch.rand(_POINTS, 2, generator=generator(draw, "separable speeds"), dtype=torch.float64)
    return torch.stack([low + (high - low) * u[:, 0], 1.5 * u[:, 1]], 1)


def premises(decode: Callable[[Tensor], Tensor], z: Tensor) -> dict[str, float]:
    """C1, C2 with its standard error and chance level, and the divergence from a product."""
    J = jacobian(decode, z)
    c2 = cross_slopes(decode, z, s2=1.0)
    return {
        "c1": float(dto(J.mT @ J)),
        "c2": c2.value,
        "error": c2.error,
        "chance": c2.chance,
        "cost": c2.cost,
    }


def passes_a4(decode: Callable[[Tensor], Tensor], z: Tensor) -> dict[str, float]:
    """What A4 looks at: its identity, the error of the product along curves, the integral along one of them."""
    J = jacobian(decode, z)
    gram = J.mT @ J
    manifold = -0.5 * (z.square() + np.log(2 * np.pi)).sum(1) - 0.5 * torch.linalg.slogdet(gram).logabsdet
    contrast = ima_contrast(gram)
    curve = component_density(decode, z[0], 1)
    return {
        "identity": float((manifold - log_densities(decode, z).factorised - contrast).abs().max()),
        "contrast": float(contrast.mean()),
        "integral": float(torch.trapezoid(curve.density, curve.arc)),
    }


def radial_kind(decode: Callable[[Tensor, Tensor], Tensor], draw: int) -> dict[str, Any]:
    """What `coordinates` says of latents in a plane, and the premises in radius and angle."""
    z = codes(1.0, 3.0, draw)
    polar = z * torch.tensor([1.0, 4 * np.pi / 3], dtype=z.dtype)  # the whole circle
    plane = _polar(polar)

    def of_plane(w: Tensor) -> Tensor:
        return decode(w.norm(dim=1), torch.atan2(w[:, 1], w[:, 0]))

    J = jacobian(of_plane, plane)
    kind = pair_coordinates(plane.numpy(), (J.mT @ J).numpy()).kind
    return {"kind": kind, **premises(lambda w: decode(w[:, 0], w[:, 1]), polar)}


def compute(settings: Settings, work: Work) -> Numbers:
    def one(name: str) -> list[dict[str, Any]]:
        if name in radial_maps:
            return [radial_kind(radial_maps[name], draw) for draw in range(settings.draws)]
        _, decode, low, high = plane_maps[name]
        draws = [codes(low, high, draw) for draw in range(settings.draws)]
        return [{**premises(decode, z), **passes_a4(decode, z)} for z in draws]

    return work.each([*plane_maps, *radial_maps], one)


def judge(numbers: Numbers) -> list[VerdictRow]:
    polar, cost = numbers["polar"], pick(numbers["polar"], "cost")
    same, integral = (pick(polar, key) for key in ("identity", "integral"))
    passed = bool(
        same.max() < 1e-8 and pick(polar, "contrast").max() < 1e-8 and np.abs(integral - _INSIDE).max() < 5e-3
    )
    off = abs(float(cost.mean()) / COST_OF_POLAR - 1)
    kinds = {name: {each["kind"] for each in numbers[name]} for name in radial_maps}
    ring, cylinder = (pick(numbers[name], "c2") for name in radial_maps)
    return [
        control("a4", "polar: does it pass the identities of A4?", "yes" if passed else "no", passed,
                "product's error and identity below 1e-8 nats, integral along a curve within 0.005"),
        *(_premise_row(name, numbers[name]) for name in plane_maps),
        identity("cost", "polar: divergence of its density from a product", f"{cost.mean():.4f} nats", off < 0.1,
                 "within 10 % of log E r - E log r", note=f"closed form: {COST_OF_POLAR:.4f} nats"),
        beyond("coordinates", "what `coordinates` calls latents of the ring; of the cylinder",
               "; ".join(" or ".join(sorted(kinds[name])) for name in radial_maps),
               all(found == {"polar"} for found in kinds.values()), "polar, both"),
        beyond("flat", "C2 in radius and angle: ring; cylinder", f"{plus_minus(ring)}; {plus_minus(cylinder)}",
               bool(ring.min() > _STANDARD_ERRORS * pick(numbers["ring"], "error").max() and cylinder.max() < 1e-4),
               "above five standard errors; 0"),
    ]  # fmt: skip


HOLDS = {"polar": (True, False), "conformal": (True, False), "curves": (True, True), "sheared": (False, True)}


def _premise_row(name: str, draws: list[dict[str, Any]]) -> VerdictRow:
    """Which of C1 and C2 a map satisfies: 0, or at least five standard errors from it."""
    c1, c2, error = (pick(draws, key) for key in ("c1", "c2", "error"))
    far = float((c2 / np.maximum(error, 1e-12)).min())
    right = (c1.max() < 1e-6) == HOLDS[name][0] and (c2.max() < 1e-4 if HOLDS[name][1] else far > _STANDARD_ERRORS)
    expected = " and ".join(f"C{i} {'holds' if ok else 'fails'}" for i, ok in enumerate(HOLDS[name], 1))
    away = "" if HOLDS[name][1] else f"; C2 at least {far:.0f} standard errors from 0"
    return control(
        f"premises {name}", f"{plane_maps[name][0]}: C1 (DtO); C2", f"{c1.mean():.3f}; {plus_minus(c2)}", bool(right),
        f"{expected}; failing: at least {_STANDARD_ERRORS:g} standard errors", note=f"{expected}{away}",
    )  # fmt: skip


def draw(numbers: Numbers) -> Figure:
    """The four plane_maps as nets of their curves; C1 and C2 of each."""
    fig, axes = panels(11.0, 2.7, columns=5, width_ratios=[1, 1, 1, 1, 1.3])
    for ax, (label, decode, low, high) in zip(axes, plane_maps.values(), strict=False):
        for latent, (start, end), (first, last) in ((0, (low, high), (0, 1.5)), (1, (0, 1.5), (low, high))):
            for value in np.linspace(first, last, 8):
                way = torch.linspace(start, end, 40, dtype=torch.float64)
                z = torch.full((40, 2), value, dtype=torch.float64)
                z[:, latent] = way
                ax.plot(*decode(z).numpy().T, color=(BLUE, GREY)[latent], lw=0.8)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.set_title(label, fontsize=9)
    for place, name in enumerate(plane_maps):
        dots(axes[4], place - 0.12, pick(numbers[name], "c1"), GREY)
        dots(axes[4], place + 0.12, pick(numbers[name], "c2"), BLUE)
    axes[4].set_xticks(
        range(len(plane_maps)), [label for label, *_ in plane_maps.values()], rotation=25, ha="right", fontsize=8
    )
    axes[4].set_title("grey: C1 (DtO), blue: C2", fontsize=9)
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    c2, error = (pick(numbers["polar"], key).mean() for key in ("c2", "error"))
    return (
        "Polar coordinates have orthogonal columns everywhere and pass every identity of A4. The radius changes the "
        f"speed along the angle by {c2:.0%} per standard deviation ({c2 / error:.0f} standard errors), and the density "
        f"is {pick(numbers['polar'], 'cost').mean():.3f} nats from any product. `coordinates` calls latents polar by "
        "the frame of the metric alone, which is C1; a ring and a cylinder are the same to it, and C2 makes one of "
        "them a product of two independent curves and the other not."
    )
