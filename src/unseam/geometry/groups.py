"""Jacobians with respect to some inputs of a decoder: a group of k of the D numbers that it takes, per row.

Latents of shape (C, H, W) are too many for one matrix, and their question is local: do the C channels at one location
move the output in orthogonal directions? A group is then the C channels at a location. Other groups are the locations
of one channel, a subset that the user chose, and the latents of a decoder that also takes inputs which are not latents.

The block M_SS of the pull-back metric belongs to the posterior of the group when the other latents are held. A diagonal
posterior takes the same variances 1 / (1 + M_ii / beta), and by Fischer's inequality gap(M) >= gap(M_SS): the cost of a
group never exceeds the cost of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vjp, vmap

from unseam.axes import Array
from unseam.errors import BadInput, lookup
from unseam.geometry.decoder_checks import CUT, MANY_PROBES, few_of
from unseam.geometry.jacobian import NUMBERS_AT_ONCE, Decoder, Grams, gather, mean_and_weight
from unseam.models.likelihood import Likelihood
from unseam.rng import numpy_generator

MANY = 256  # flat latents: of more than these, the diagnosis takes a part
PART = 32  # latents of such a part, and the most locations of a channel
_STEP = 1e-4  # of central differences, relative to the size of a coordinate
Latents = Literal["auto", "all", "locations", "channels"] | Sequence[Any]


@dataclass(frozen=True)
class Groups:
    """Which latents are diagnosed together."""

    index: Array  # (G, k) positions in the flattened latents, one row per group
    names: tuple[str, ...]  # (k,) what the latents of a group are
    scope: str  # a description of the latents that were diagnosed; "" for all at once


def choose_groups(shape: tuple[int, ...], latents: Latents = "auto", strength: Array | None = None) -> Groups:
    """Groups of latents of this shape; `strength` (K,) says which of many flat latents matter most.

    >>> choose_groups((4, 8, 8)).index.shape, choose_groups((4, 8, 8), "channels").index.shape
    ((64, 4), (4, 32))
    >>> choose_groups((10,)).scope, choose_groups((10,), [3, 5]).index.tolist()
    ('', [[3, 5]])
    """
    K = int(np.prod(shape))
    grid = np.arange(K).reshape(shape[0], -1)  # (C, locations)
    if not isinstance(latents, str):
        return chosen_subset(shape, latents)
    lookup(dict.fromkeys(("auto", "all", "locations", "channels"), 0), latents, "latents")
    if latents in ("locations", "channels") and len(shape) == 1:
        raise BadInput(f"latents={latents!r} needs codes (N, C, H, W); these are (N, {K}): leave it out")
    if latents == "all" or (latents == "auto" and len(shape) == 1 and K <= MANY):
        return Groups(np.arange(K)[None], tuple(map(str, range(K))), "")
    if len(shape) == 1:
        order = np.arange(K) if strength is None else np.argsort(-strength, kind="stable")
        part = np.sort(order[:PART])
        return Groups(part[None], tuple(map(str, part)), f"the {PART} strongest of {K} latents")
    C, L = grid.shape
    if latents == "channels":
        places = np.unique(np.linspace(0, L - 1, min(L, PART)).round().astype(int))
        return Groups(grid[:, places], tuple(f"location {i}" for i in places),
                      f"{len(places)} of {L} locations within each of {C} channels")  # fmt: skip
    return Groups(grid.T.copy(), tuple(f"channel {i}" for i in range(C)), f"{C} channels at each of {L} locations")


def whole_run(verb: Callable[..., Any], **given: Any) -> None:
    """Refuse settings of a model beside a run, which has its own and whose latents are looked at together.

    >>> whole_run(choose_groups, latents=[0, 1])
    Traceback (most recent call last):
    unseam.errors.BadInput: latents=[0, 1] belongs to a model; all latents of a run are looked at: leave it out
    """
    parameters = signature(verb).parameters
    for name, value in given.items():
        default = parameters[name].default
        if value is default or (type(value) is type(default) and value == default):
            continue
        if name == "latents":
            raise BadInput(f"latents={value!r} belongs to a model; all latents of a run are looked at: leave it out")
        raise BadInput(f"{name}= belongs to a model; a run has its own: leave it out")


def one_model(member: int | None) -> None:
    """Refuse a member of a model: it is one."""
    if member:
        raise BadInput(f"member={member}: a model is one member, number 0; leave it out")


def chosen_subset(shape: tuple[int, ...], latents: Sequence[Any]) -> Groups:
    """Latents by their position: numbers into the flattened codes, or tuples (c, h, w)."""
    K = int(np.prod(shape))
    try:
        flat = [int(np.ravel_multi_index(i, shape)) if isinstance(i, (tuple, list)) else int(i) for i in latents]
    except (ValueError, TypeError) as error:
        raise BadInput(f"latents={list(latents)[:4]} do not lie in codes of shape {shape} ({error})") from None
    if not flat or len(set(flat)) < len(flat) or not all(0 <= i < K for i in flat):
        raise BadInput(f"latents={list(latents)[:8]} must be different positions from 0 to {K - 1}, at least one")
    return Groups(np.array([flat]), tuple(map(str, flat)), f"{len(flat)} of {K} latents, as chosen")


def middle(codes: Array) -> int:  # (N, K)
    """The row nearest to the codes' median, each latent in units of its spread: a typical place to start from.

    >>> middle(np.array([[0.0, 9.0], [1.0, 1.0], [2.0, 0.0]]))
    1
    """
    spread = np.maximum(codes.std(0), 1e-12)
    return int((np.square((codes - np.median(codes, axis=0)) / spread)).sum(1).argmin())


@dataclass(frozen=True)
class _Rows:
    """Pairs (point, group) at which a block is computed."""

    points: Tensor  # (m,) rows of the codes
    index: Tensor  # (m, k)


def group_sample(count: int, groups: Groups, most: int, seed: int = 0) -> _Rows:
    """At most `most` pairs: every point once before any twice, each with a group drawn at random.

    >>> group_sample(5, choose_groups((4, 8, 8)), 7).index.shape
    torch.Size([7, 4])
    """
    total = count * len(groups.index)
    rng, m = numpy_generator(seed, "groups"), min(most, total)
    if m == total:
        points, chosen = np.divmod(np.arange(total), len(groups.index))
    elif len(groups.index) == 1:
        points, chosen = np.linspace(0, count - 1, m).round().astype(int), np.zeros(m, int)
    else:
        points = np.linspace(0, count - 1, m).round().astype(int)
        chosen = rng.integers(0, len(groups.index), m)
    return _Rows(torch.from_numpy(points), torch.from_numpy(groups.index[chosen]))


def tangents(z: Tensor, index: Tensor) -> Tensor:  # (B, D), (B, k) -> (k, B, D)
    """The unit vectors of each row's group."""
    out = z.new_zeros(index.shape[1], *z.shape)
    return out.scatter_(2, index.T.to(z.device).unsqueeze(2), 1.0)


def forward(decode: Decoder, z: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:  # -> (B, ...), (B, ..., k)
    """All tangents as one batch."""
    values, columns = vmap(lambda v: jvp(decode, (z,), (v,))[:2])(tangents(z, index))
    return values[0], columns.movedim(0, -1)


def forward_in_turn(decode: Decoder, z: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """One tangent after another, for operations that cannot be batched again."""
    found = [jvp(decode, (z,), (v,))[:2] for v in tangents(z, index)]
    return found[0][0], torch.stack([column for _, column in found], -1)


def double_reverse(decode: Decoder, z: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """J v as the derivative of u -> J^T u, for operations without a forward derivative."""
    with torch.enable_grad():
        point = z.detach().clone().requires_grad_()
        theta = decode(point)
        u = torch.zeros_like(theta, requires_grad=True)
        (pulled,) = torch.autograd.grad(theta, point, u, create_graph=True)
        columns = [torch.autograd.grad(pulled, u, v, retain_graph=True)[0] for v in tangents(z, index)]
    return theta.detach(), torch.stack(columns, -1)


def _differences(decode: Decoder, z: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences, for decoders that are not torch."""
    z = z.double()
    columns = []
    for v in tangents(z, index):
        h = _STEP * torch.maximum(torch.ones_like(z), z.abs()).mul(v).sum(1, keepdim=True)
        step = decode(z + h * v) - decode(z - h * v)
        columns.append(step / (2 * h).reshape(-1, *[1] * (step.ndim - 1)))
    return decode(z), torch.stack(columns, -1)


WAYS = {"forward": forward, "in turn": forward_in_turn, "double reverse": double_reverse, "differences": _differences}


def way_of(decode: Decoder, z: Tensor, index: Tensor, differentiable: bool = True) -> str:
    """The fastest way that differentiates this decoder; refuses one that none does."""
    if not differentiable:
        _check_cut(_differences, decode, z, index)
        return "differences"
    last: Exception | None = None
    for name in ("forward", "in turn", "double reverse"):
        try:
            _, columns = WAYS[name](decode, z[:2], index[:2])
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError) as error:
            last = error
            continue
        if not torch.isfinite(columns).all():
            raise BadInput("decoder's Jacobian holds NaN or infinite values; look for sqrt(0), 0/0 or log(0) in it")
        if not columns.any():
            _check_cut(WAYS[name], decode, z, index)
        return name
    raise BadInput(
        f"decoder is not differentiable ({str(last).strip().splitlines()[0][:160]}); write it in torch operations from "
        "input to output"
    )


def _check_cut(way: Any, decode: Decoder, z: Tensor, index: Tensor) -> None:
    """Refuse a decoder whose derivative is 0 at many points, but whose output changes."""
    at, group = few_of(z, MANY_PROBES), few_of(index, MANY_PROBES)
    if not way(decode, at, group)[1].any() and _moves(decode, at, group):
        raise BadInput(CUT)


@torch.no_grad()
def _moves(decode: Decoder, z: Tensor, index: Tensor) -> bool:
    """Whether the output changes when the latents of each row's group are moved by one unit."""
    moved = z.scatter_add(1, index.to(z.device), torch.ones_like(index, dtype=z.dtype, device=z.device))
    return not torch.equal(decode(z), decode(moved))


@torch.no_grad()
def group_pullbacks(
    decode: Decoder,
    z: Tensor,  # (m, D)
    index: Tensor,  # (m, k)
    likelihood: Likelihood,
    way: str = "forward",
    chunk: int | None = None,
) -> Grams:  # (m, k, k)
    """J^T J and M = D^T A^2 D of each row's own group, in double precision; memory is bounded by slices.

    >>> from unseam.models.likelihood import Gaussian
    >>> W = torch.tensor([[3.0, 0.0, 7.0], [4.0, 2.0, 7.0]])
    >>> group_pullbacks(lambda z: z @ W.T, torch.zeros(1, 3), torch.tensor([[1, 0]]), Gaussian(0.5)).gram[0]
    tensor([[ 4.,  8.],
            [ 8., 25.]], dtype=torch.float64)
    """
    differentiate = lookup(WAYS, way, "way")
    n, k = decode(z[:1]).numel(), index.shape[1]
    size = max(1, chunk or NUMBERS_AT_ONCE // max(1, k * max(n, z.shape[1])))

    def products(rows: Tensor, part: Tensor) -> tuple[Tensor, Tensor]:
        theta, D = differentiate(decode, rows, part)
        theta, D = theta.flatten(1), D.flatten(1, -2)
        J, A2 = mean_and_weight(likelihood, theta, D)
        J, D, A2 = (t.double().cpu() for t in (J, D, A2))
        return J.mT @ J, D.mT @ (A2.unsqueeze(-1) * D)

    pairs = zip(z.split(size), index.split(size), strict=True)
    return Grams(*gather((products(rows, part) for rows, part in pairs), len(z)))


class Products(NamedTuple):
    """v -> D v and u -> D^T u at some rows, with theta."""

    theta: Tensor  # (B, n)
    push: Any  # (B, D) -> (B, n)
    pull: Any  # (B, n) -> (B, D)


def products_of(decode: Decoder, z: Tensor) -> Products:
    """Both products of the Jacobian without the Jacobian; forward mode, or twice reverse where it has none."""

    def flat(points: Tensor) -> Tensor:
        return decode(points).flatten(1)

    found: Any = vjp(flat, z)
    theta, pullback = found[0], found[1]

    def pull(u: Tensor) -> Tensor:
        pulled: Tensor = pullback(u)[0]
        return pulled

    def push(v: Tensor) -> Tensor:
        try:
            pushed: Tensor = jvp(flat, (z,), (v,))[1]
        except (RuntimeError, NotImplementedError):
            twice: Any = vjp(pull, torch.zeros_like(theta))
            pushed = twice[1](v)[0]
        return pushed

    return Products(theta.detach(), push, pull)
