"""What the interventional metrics need: observations that share the value of one factor.

From a sampler (a function that encodes any row of factors) the values are drawn from the factor space, as the
papers have it. From arrays alone, rows that already share a value are matched; that is the same experiment when
the rows are a random sample of the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from unseam.axes import Array, FactorSpace
from unseam.errors import BadInput
from unseam.metrics.inputs import Inputs, Observations, computed_once, prepare_inputs, require_classes
from unseam.rng import numpy_generator
from unseam.stats import unique_values

Encode = Callable[[Array], Array]  # factors (B, F) -> codes (B, K)
_CHUNK = 4_000_000  # numbers held at once
_CACHE = 100_000  # numbers that are reduced while the processor's cache holds them
_DRAWN = 10_000  # rows that a sampler gives to metrics that do not intervene


class Interventions(Protocol):
    """Three draws, each an array of places, and the codes at places.

    P points, each of L observations; `which` (P,) names the factor that a point holds fixed. A place is a row's number,
    or the factors (F,) of a new observation: what is drawn does not depend on the codes.
    """

    @property
    def count(self) -> int: ...  # F

    def free(self, n: int, rng: np.random.Generator) -> Array: ...  # (n, ...)

    def fixed(self, which: Array, size: int, rng: np.random.Generator) -> Array: ...  # (P, L, ...)

    def pairs(self, which: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]: ...  # (P, L, ...)

    def codes(self, places: Array) -> Array: ...  # (..., K)


@dataclass(frozen=True)
class Sampled:
    """Interventions through a sampler: factor values uniform over a discrete space, then encoded."""

    encode: Encode
    space: FactorSpace

    @property
    def count(self) -> int:
        return len(self.space)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
        if not self.space.discrete:
            names = ", ".join(f.name for f in self.space if not f.discrete)
            raise BadInput(f"a sampler's space must be discrete to draw its values; continuous: {names}")
        out = np.empty((*shape, len(self.space)), np.int32)
        for i, f in enumerate(self.space):
            out[..., i] = rng.integers(0, f.size, shape, np.int32)
        return out

    def codes(self, factors: Array) -> Array:
        flat = np.asarray(self.encode(factors.reshape(-1, factors.shape[-1])))
        return flat.reshape(*factors.shape[:-1], -1)

    def free(self, n: int, rng: np.random.Generator) -> Array:
        return self.draw((n,), rng)

    def fixed(self, which: Array, size: int, rng: np.random.Generator) -> Array:
        factors = self.draw((len(which), size), rng)
        return _hold(factors, factors[:, :1].copy(), which)

    def pairs(self, which: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        one, two = self.draw((len(which), size), rng), self.draw((len(which), size), rng)
        return one, _hold(two, one, which)


def _hold(factors: Array, source: Array, which: Array) -> Array:
    """factors (P, L, F) with factor `which[p]` of point p copied from the source (P, L or 1, F), in place."""
    place = np.arange(len(which))
    factors[place, :, which] = source[place, :, which]
    return factors


class Matched:
    """Interventions on arrays: rows of equal value are found in rows sorted by that factor."""

    def __init__(self, rows: Observations) -> None:
        self.z, self.labels = rows.codes, rows.labels
        self.count = rows.labels.shape[1]

    @cached_property
    def order(self) -> Array:  # (F, N) rows sorted by each factor
        return np.argsort(self.labels, axis=0, kind="stable").T

    @cached_property
    def start(self) -> Array:  # (F, N) where in that order the rows begin that share this row's value
        counts = [np.bincount(labels) for labels in self.labels.T]
        return np.stack([(np.cumsum(c) - c)[labels] for c, labels in zip(counts, self.labels.T, strict=True)])

    @cached_property
    def size(self) -> Array:  # (F, N) how many these are
        return np.stack([np.bincount(labels)[labels] for labels in self.labels.T])

    @cached_property
    def rank(self) -> Array:  # (F, N) a row's place among them
        place = np.empty_like(self.order)
        np.put_along_axis(place, self.order, np.arange(len(self.labels))[None], axis=1)
        return place - self.start

    def partners(self, which: Array, row: Array, rng: np.random.Generator) -> Array:
        """For each row (P, L), a random row that shares its value of factor which (P, 1)."""
        place = self.start[which, row] + (rng.random(row.shape) * self.size[which, row]).astype(np.int64)
        return self.order[which, place]

    def codes(self, rows: Array) -> Array:
        return np.take(self.z, rows, axis=0)

    def free(self, n: int, rng: np.random.Generator) -> Array:
        return np.arange(len(self.z)) if n >= len(self.z) else rng.choice(len(self.z), n, replace=False)

    def fixed(self, which: Array, size: int, rng: np.random.Generator) -> Array:
        row = rng.integers(0, len(self.z), (len(which), 1))
        return self.partners(which[:, None], np.broadcast_to(row, (len(which), size)), rng)

    def pairs(self, which: Array, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Two different rows each: a row beside itself shares everything, and noise would look consistent."""
        row = np.empty((len(which), size), np.int64)
        for f in np.unique(which):
            able = np.flatnonzero(self.size[f] > 1)
            if not len(able):
                raise BadInput(f"no two rows share a value of factor {f}; give more rows, or a sampler")
            at = which == f
            row[at] = rng.choice(able, (int(at.sum()), size))
        f = which[:, None]
        step = 1 + (rng.random(row.shape) * (self.size[f, row] - 1)).astype(np.int64)
        place = self.start[f, row] + (self.rank[f, row] + step) % self.size[f, row]
        return row, self.order[f, place]


@computed_once
def matched_rows(inputs: Inputs) -> Matched:
    """All rows, the held-out ones too: what is drawn are new combinations of rows, and more rows draw better."""
    return Matched(inputs.all_rows())


def drawn(
    inputs: Inputs, key: Hashable, numbers: int, draws: Callable[[], Iterator[tuple[Array, ...]]]
) -> Iterable[tuple[Array, ...]]:
    """The draws; where they are row numbers, and not too many, they are kept for other codes of the same factors."""
    if inputs.source is not None or numbers > _CHUNK:
        return draws()
    if key not in inputs.for_factors:
        inputs.for_factors[key] = [tuple(part.astype(np.int32) for part in draw) for draw in draws()]
    found: list[tuple[Array, ...]] = inputs.for_factors[key]
    return found


def by_point(source: Interventions, reduce: Callable[..., Array], *places: Array) -> Array:  # (P, L, ...) -> (P, K)
    """`reduce` of the codes (L, P, K) at each array of places, a few points at a time."""
    if isinstance(source, Sampled):  # an encoder is called with as many as there are
        return reduce(*(source.codes(each).swapaxes(0, 1) for each in places))
    latents = source.codes(places[0][0, :1]).shape[-1]
    step = max(1, _CACHE // (places[0].shape[1] * latents))
    parts = (reduce(*(source.codes(each[i : i + step].T) for each in places)) for i in range(0, len(places[0]), step))
    return np.concatenate(list(parts))


def interventions(inputs: Inputs, metric: str) -> Interventions:
    """The sampler if there is one, else the rows that share a value."""
    if inputs.source is not None:
        return inputs.source
    require_classes(inputs, metric, "no two rows share a value; give a sampler instead")
    return matched_rows(inputs)


def from_sampler(sampler: Encode, space: FactorSpace | None, seed: int = 0, **options: Any) -> Inputs:
    """Inputs drawn from a sampler, which they keep for the metrics that intervene."""
    if space is None:
        raise BadInput("a sampler needs the space of its factors; give space=FactorSpace(...)")
    for name in ("groups", "active"):
        if options.get(name) is not None:
            raise BadInput(f"{name}= is for arrays; let the sampler return the codes that should be scored")
    source = Sampled(sampler, space)
    factors = source.draw((_DRAWN,), numpy_generator(seed, "sampler"))
    return replace(prepare_inputs(source.codes(factors), factors, space, seed=seed, **options), source=source)


def points_settings(source: Interventions, batch: int, train: int, test: int, seed: int) -> dict[str, Any]:
    return {"batch": batch, "train": train, "test": test, "seed": seed, "source": type(source).__name__.lower()}


def standard_error(share: float, n: int) -> float:
    """Of a share of n: sqrt(p (1 - p) / n)."""
    return float(np.sqrt(share * (1 - share) / n))


def chunks(points: int, size: int, latents: int) -> Iterator[int]:
    """How many points to draw at a time so that memory stays bounded."""
    step = max(1, _CHUNK // (size * latents))
    for start in range(0, points, step):
        yield min(step, points - start)


_FEWEST = 30  # rows with a partner that differs in one factor


@dataclass(frozen=True)
class SingleChanges:
    """Pairs of observations that differ in one factor alone: `changes(f)` gives their codes (P, K), (P, K)."""

    inputs: Inputs
    metric: str
    count: int

    @property
    def spread(self) -> Array:  # (K,)
        """Standard deviation of each latent; 0 for a constant one."""
        z = self.inputs.rows.codes
        return np.where(np.ptp(z, axis=0) > 0, z.std(axis=0, dtype=np.float64), 0.0)

    def differ(self, f: int) -> float:
        """How often two random observations differ in factor f: the weight of a pair that must."""
        if isinstance(self.inputs.source, Sampled):
            return 1 - 1 / (self.inputs.space[f].size or 1)
        share = np.bincount(self.inputs.all_rows().labels[:, f]) / len(self.inputs.all_rows())
        return float(1 - (share**2).sum())

    def __call__(self, f: int) -> tuple[Array, Array]:
        rng = numpy_generator(self.inputs.seed, "single-change", f)
        if isinstance(self.inputs.source, Sampled):
            return sampled_change(self.inputs.source, f, self.count, rng)
        rows = self.inputs.all_rows()
        one, two = changed_rows(rows.labels, f, self.count, rng)
        if len(one) < 2:
            name = self.inputs.space[f].name
            raise BadInput(
                f"{self.metric} needs rows that differ in factor {name!r} alone, and fewer than {_FEWEST} have such a "
                "partner; give more rows, or a sampler with its space"
            )
        return rows.codes[one], rows.codes[two]


def single_changes(inputs: Inputs, metric: str, pairs: int) -> SingleChanges:
    """What a metric draws from that changes one factor at a time."""
    if pairs < 2:
        raise BadInput(f"pairs={pairs} must be at least 2")
    if inputs.source is None:
        require_classes(inputs, metric, "no two rows share all other values; give a sampler instead")
    return SingleChanges(inputs, metric, pairs)


def sampled_change(source: Sampled, f: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    one = source.draw((n,), rng)
    two, size = one.copy(), int(source.space[f].size or 0)
    two[:, f] = (one[:, f] + rng.integers(1, size, n)) % size
    return source.codes(one), source.codes(two)


def changed_rows(labels: Array, f: int, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Row numbers of n random pairs that differ in factor f alone; none when fewer than FEWEST rows have a partner.

    >>> one, two = changed_rows(np.indices((20, 3)).reshape(2, -1).T, 1, 1000, np.random.default_rng(0))
    >>> len(one), bool((one // 3 == two // 3).all()), bool((one != two).all())
    (1000, True, True)
    """
    group = np.zeros(len(labels), np.int64)
    for g in range(labels.shape[1]):
        if g != f:
            group = unique_values(group * (int(labels[:, g].max()) + 1) + labels[:, g])[1]
    order = np.lexsort((labels[:, f], group))  # groups in one piece, in each the values of f in one piece
    size = np.bincount(group)
    first = np.cumsum(size) - size
    cell = unique_values(group * (int(labels[:, f].max()) + 1) + labels[:, f])[1]
    alike = np.bincount(cell)
    start = (np.cumsum(alike) - alike)[cell]  # where the rows of the same group and value begin in `order`
    rows = np.flatnonzero(size[group] > alike[cell])
    if len(rows) < _FEWEST and len(rows) < len(labels):
        return rows[:0], rows[:0]
    one = rng.choice(rows, n) if len(rows) else rows
    step = (rng.random(len(one)) * (size[group[one]] - alike[cell[one]])).astype(np.int64)
    place = first[group[one]] + step
    place += np.where(place >= start[one], alike[cell[one]], 0)  # skip those of the same value
    return one, order[place]
