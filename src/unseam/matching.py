"""Do two seeds find the same directions? One-to-one matching of dictionaries, or of the codes of trained models.

`match(W_a, W_b)` takes dictionaries, one direction a row (as the decoders of sparse autoencoders), and compares them
by |cosine|; `match(run)` and `of="codes"` compare codes of the same rows by |rank correlation|. Directions that are
each other's nearest are matched first, round by round; the last 2,000 so that their sum is largest (small sets
altogether).

Chance is what random axes give: some of the one side's directions (512) rotated together at random, then matched the
same way; of codes, the other side whitened and rotated (or this one, where the other has one latent). A direction is
*stable* when every other set has it at `at` (0.7) or more, and above what 99 % of random axes reach: of few latents
chance alone passes 0.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.progress import bar
from unseam.rng import numpy_generator
from unseam.stats import in_random_axes, matched, matched_codes, nearest_matched

AT = 0.7  # |cosine| from which on two directions are the same (Paulo & Belrose 2025)
EXACT = 2000  # on each side: as many are matched optimally
_CHUNK = 1024  # directions compared at a time
SAMPLE = 512  # directions behind the chance level
_DRAWS = 20  # rotations behind the chance level of codes
_QUANTILE = 0.99  # of the chance values: what lies above is no chance
_ROWS = 2000  # of a run's data, encoded by every member
Of = Literal["directions", "codes"]


class MatchedPair(NamedTuple):
    """Two sets matched: of each direction of the first, its partner in the second (-1: none) and how alike they are."""

    one: int
    two: int
    values: Array  # (A,)
    partners: Array  # (A,)
    chance: float  # mean matched value of random axes
    limit: float  # 99 % of the values of random axes are below

    def to_json(self, at: float) -> dict[str, Any]:
        shares = {"share": float((self.values >= at).mean()), "above_chance": float((self.values > self.limit).mean())}
        told = {"one": self.one, "two": self.two, "mean": float(self.values.mean()), "chance": self.chance}
        return {**told, "limit": self.limit, **shares, "partners": self.partners, "values": self.values}


@dataclass(frozen=True)
class Match:
    """Every pair of sets matched, and which directions of the first all the others have."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    of: Of
    signed: bool
    at: float
    method: str
    pairs: tuple[MatchedPair, ...]

    @property
    def stable(self) -> Array:  # (A,) bool
        """Directions of the first set that every other has, at `at` or more and above the limit of chance."""
        return np.all([pair.values >= max(self.at, pair.limit) for pair in self.pairs if pair.one == 0], axis=0)

    def to_json(self) -> dict[str, Any]:
        """The document that `unseam match --json` prints."""
        pairs = [pair.to_json(self.at) for pair in self.pairs]
        about = {
            "of": self.of,
            "signed": self.signed,
            "at": self.at,
            "method": self.method,
            "stable": float(self.stable.mean()),
        }
        return {
            "sets": [{"name": n, "size": s} for n, s in zip(self.names, self.sizes, strict=True)],
            **about,
            "pairs": pairs,
        }

    def table(self) -> Any:
        """One row a direction of the first set: its partner in each other, and how alike they are."""
        import pandas

        columns: dict[str, Any] = {"direction": np.arange(self.sizes[0]), "stable": self.stable}
        for pair in self.pairs:
            if pair.one == 0:
                columns |= {f"{self.names[pair.two]}": pair.partners, f"{self.names[pair.two]} value": pair.values}
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        """One line: the matched values fill pages."""
        sets = " and ".join(f"{name} ({size})" for name, size in zip(self.names, self.sizes, strict=True))
        return f"Match({self.of} of {sets}: {self.stable.mean():.0%} in all)"

    def _repr_html_(self) -> str:
        """A row a pair of sets, for notebooks."""
        import pandas

        rows = [{"sets": f"{self.names[p.one]} - {self.names[p.two]}", **p.to_json(self.at)} for p in self.pairs]
        table = pandas.DataFrame(rows)[["sets", "mean", "chance", "share", "above_chance"]]
        last = str(self).splitlines()[-1]
        return f"{table.to_html(index=False, float_format='{:.3f}'.format, escape=True)}<p>{escape(last)}</p>"

    def __str__(self) -> str:
        what = "|rank correlation|" if self.of == "codes" else "cosine" if self.signed else "|cosine|"
        lines = [f"matched {what} of {' and '.join(map(str, sorted(set(self.sizes))))} {self.of}: {self.method}"]
        for pair in self.pairs:
            told = pair.to_json(self.at)
            lines.append(
                f"  {self.names[pair.one]} - {self.names[pair.two]}: "
                f"mean {told['mean']:.3f} (chance {pair.chance:.3f}), {told['share']:.1%} at {self.at:g} or more, "
                f"{told['above_chance']:.1%} above chance ({pair.limit:.3f})"
            )
        lines.append(
            f"stable: {self.stable.mean():.1%} of {self.names[0]}'s directions are in every other set, "
            f"at {self.at:g} or more and above chance"
        )
        return "\n".join(lines)


def match(
    *things: Any,
    of: Of = "directions",
    signed: bool = False,
    at: float = AT,
    names: Sequence[str] | None = None,
    seed: int = 0,
    show: bool | None = None,
    data: Any = None,
) -> Match:
    """Match dictionaries (directions, n), codes of the same rows (rows, latents), or the members of trained runs.

    Models that `unseam.diagnose` takes stand for the codes of `data`, the same observations encoded by each.

    `signed` tells a direction from its opposite, as sparse autoencoders do; without it they are the same.

    >>> W = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
    >>> found = match(W, -W[[3, 1, 0, 2, 4, 5, 6, 7]])
    >>> found.pairs[0].partners, float(found.stable.mean())
    (array([2, 1, 3, 0, 4, 5, 6, 7]), 1.0)
    """
    sets, labels, of = _gather(things, of, data)
    if len(sets) < 2:
        raise BadInput(f"{len(sets)} set(s) given; matching needs at least 2 dictionaries, codes or trained members")
    if not 0 < at <= 1:
        raise BadInput(f"at={at} must be above 0 and at most 1: from when on two directions are the same")
    _check(sets, of)
    labels = list(names) if names is not None else labels
    if len(labels) != len(sets):
        raise BadInput(f"{len(labels)} names for {len(sets)} sets; give one a set")
    chosen, found = list(combinations(range(len(sets)), 2)), []
    with bar("matching", sum(len(sets[i]) for i, _ in chosen), show) as advance:
        for i, j in chosen:
            both = (sets[i], sets[j])
            numbers = _directions(*both, signed, seed, advance) if of == "directions" else codes(*both, seed)
            found.append(MatchedPair(i, j, *numbers))
    sizes = tuple(len(s) if of == "directions" else s.shape[1] for s in sets)
    large = max(sizes) > EXACT
    method = f"mutual nearest first, the last {EXACT} by assignment" if large else "by assignment (largest sum)"
    return Match(tuple(labels), sizes, of, signed, at, method, tuple(found))


def _gather(things: Sequence[Any], of: Of, data: Any = None) -> tuple[list[Array], list[str], Of]:
    """Arrays and their names; a run stands for the codes of its finished members, a model for those of data."""
    from unseam.metrics.inputs.prepare import plain_array
    from unseam.metrics.suite import is_model

    if data is not None or any(is_model(thing) and not hasattr(thing, "members") for thing in things):
        from unseam.models.adapters import codes_of

        found = [codes_of(thing, data) for thing in things]
        return found, [f"model {i}" for i in range(len(found))], "codes"

    runs = [hasattr(thing, "members") for thing in things]
    if any(runs):
        if not all(runs):
            raise BadInput("runs and arrays cannot be matched with each other; give runs only, or arrays only")
        from unseam.runs.represent import codes_of_members

        by_member = codes_of_members(things, _ROWS)
        if len(by_member) < 2:
            members = sum(len(run.members) for run in things)
            raise BadInput(f"{len(by_member)} of {members} members finished with a latent in use; matching needs 2")
        return list(by_member.values()), list(by_member), "codes"
    arrays = [plain_array(thing) for thing in things]
    return arrays, [f"set {i}" for i in range(len(arrays))], of


def _check(sets: Sequence[Array], of: Of) -> None:
    """Refuse what is no matrix of finite numbers, or does not belong together."""
    for i, s in enumerate(sets):
        if s.ndim != 2 or 0 in s.shape or s.dtype.kind not in "fiu" or not np.isfinite(s).all():
            raise BadInput(f"set {i} ({s.dtype} {s.shape}) must be a matrix of finite numbers")
    axis, word = (1, "columns") if of == "directions" else (0, "rows")
    if len({s.shape[axis] for s in sets}) > 1:
        shapes = ", ".join(str(s.shape) for s in sets)
        hint = "one direction a row (give the transpose if they are columns)" if axis else "codes of the same rows"
        raise BadInput(f"sets of shapes {shapes} must have as many {word}; give {hint}")


def _directions(
    a: Array, b: Array, signed: bool, seed: int, advance: Any
) -> tuple[Array, Array, float, float]:  # (A, n), (B, n)
    """Values and partners of two dictionaries, the mean chance value and its limit."""
    a, b = unit(a), unit(b)
    strengths = np.empty((len(a), len(b)), np.float32)
    for i in range(0, len(a), _CHUNK):
        part = np.matmul(a[i : i + _CHUNK], b.T, out=strengths[i : i + _CHUNK])
        if not signed:
            np.abs(part, out=part)
        advance(len(part))
    found = matched(strengths) if max(strengths.shape) <= EXACT else nearest_matched(strengths, EXACT)
    by_chance = matched(_alike(_turned(a, seed), b, signed)).values
    return found.values, found.columns, float(by_chance.mean()), float(np.quantile(by_chance, _QUANTILE))


def _alike(a: Array, b: Array, signed: bool) -> Array:
    found = a @ b.T
    return found if signed else np.abs(found)


def unit(w: Array) -> Array:  # (A, n) -> (A, n) float32
    """Rows of length 1; those of length 0 stay."""
    length = np.linalg.norm(w, axis=1, keepdims=True)
    return (w / np.where(length > 0, length, 1)).astype(np.float32)


def _turned(a: Array, seed: int) -> Array:  # (A, n) -> (at most 512, n)
    """Some rows, rotated together by a random rotation: their angles to each other stay.

    >>> w = unit(np.random.default_rng(0).normal(size=(5, 9)))
    >>> bool(np.allclose(np.sort((_turned(w, 0) @ _turned(w, 0).T).ravel()), np.sort((w @ w.T).ravel()), atol=1e-5))
    True
    """
    rng = numpy_generator(seed, "chance")
    some = a[rng.permutation(len(a))[:SAMPLE]].astype(np.float64)
    inside: Array = np.asarray(np.linalg.qr(some.T, mode="r"))  # some = inside^T Q^T, Q with orthonormal columns
    axes = np.linalg.qr(rng.normal(size=(a.shape[1], len(inside))))[0]
    return (inside.T @ axes.T).astype(np.float32)


def codes(a: Array, b: Array, seed: int) -> tuple[Array, Array, float, float]:  # (N, A), (N, B)
    """The same of codes of the same rows, by |rank correlation|."""
    found = matched_codes(a, b)
    by_chance = in_random_axes(a, b, numpy_generator(seed, "chance"), _DRAWS)
    draws = [matched_codes(*both).values for both in by_chance]
    return found.values, found.columns, float(np.mean(draws)), float(np.quantile(draws, _QUANTILE))
