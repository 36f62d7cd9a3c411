"""The one way from a run to its codes: which rows, what the model says of them, and the truth where it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from unseam.axes import Array, FactorSpace
from unseam.data.base import Dataset
from unseam.data.wrap import Labelled, whole_data
from unseam.errors import BadInput
from unseam.geometry.polarized import active_latents
from unseam.models import Posterior
from unseam.rng import generator
from unseam.run import Run
from unseam.runs.choices import Which

ROWS_AT_ONCE = 512  # samples encoded at a time
BEYOND = {  # rows that the run's data does not have, because it is a part of a set
    "full": "the full data, what was left out among them",
    "left-out": "combinations that were left out of the data",
}
ENOUGH = 500  # held-out rows from which on scores are taken on them alone


class RowSample(NamedTuple):
    """Some rows of a run's data, or of the set that it is a part of, and whether its members were trained on them."""

    which: Which
    rows: Tensor  # (N,)
    held: bool  # whether the run held out any rows at all
    of: Dataset | None = None  # whose rows these are, if not the run's
    adapted: bool = False  # of a model trained elsewhere: the rows that it was trained on are not known

    def to_json(self) -> dict[str, Any]:
        return {"which": self.which, "count": len(self.rows)}

    def __str__(self) -> str:
        """As tables and pages say it.

        >>> print(RowSample("all", torch.arange(3), held=False))
        3 rows, all trained on (none were held out)
        >>> print(RowSample("left-out", torch.arange(3), held=True))
        3 rows of combinations that were left out of the data
        """
        if self.which in BEYOND:
            return f"{len(self.rows)} rows of {BEYOND[self.which]}"
        if self.which == "held-out":
            return f"{len(self.rows)} held-out rows"
        if self.adapted:
            return f"{len(self.rows)} rows that were given with the model"
        if not self.held:
            return f"{len(self.rows)} rows, all trained on (none were held out)"
        return f"{len(self.rows)} rows, " + ("all trained on" if self.which == "trained" else "held-out and trained on")


def sample_rows(
    run: Run, which: Which | None = None, count: int = 10_000, seed: int = 0, use: str = "rows", enough: int = ENOUGH
) -> RowSample:
    """At most `count` rows, the same for the same seed and use; held-out ones if there are `enough`, else any."""
    held = run.split("held-out")
    if which in BEYOND:
        return _beyond(run, which, count, seed, use)
    if which is None:
        which = "held-out" if len(held) >= max(enough, 1) else "all"
    rows = run.split(which)
    if not len(rows):
        raise BadInput(f"rows={which!r}: this run held no rows out (holdout = 0); take rows='all', or train it again")
    return RowSample(which, some(rows, count, seed, use), len(held) > 0, adapted=bool(run.config.adapted))


def _beyond(run: Run, which: Which, count: int, seed: int, use: str) -> RowSample:
    """Rows of the set that the run's data is a part of: any, or those that were left out of it."""
    full, rows_in_full = whole_data(run.data)
    is_left_out = torch.ones(len(full), dtype=torch.bool)
    if which == "left-out":
        is_left_out[rows_in_full] = False
    if len(full) == len(run.data):
        if isinstance(run.data, Labelled):
            raise BadInput(
                f"rows={which!r} and --factors do not go together: the table has no rows for what was left out"
            )
        ways = "--data.without, --data.share or --data.correlate"
        raise BadInput(f"rows={which!r}: nothing was left out of this run's data ({ways}); take rows='all'")
    return RowSample(
        which, some(is_left_out.nonzero().flatten(), count, seed, use), len(run.split("held-out")) > 0, full
    )


def some(rows: Tensor, count: int, seed: int = 0, use: str = "rows") -> Tensor:
    """`count` of the rows, in random order.

    >>> some(torch.tensor([7, 8]), 5).sort().values
    tensor([7, 8])
    """
    return rows[torch.randperm(len(rows), generator=generator(seed, use))[:count]]


@dataclass(frozen=True)
class EncodedRows:
    """What a model says of some rows: q(z|x), its means as codes, and the factors where they are known."""

    data: Dataset
    rows: Tensor  # (N,)
    posterior: Posterior
    factors: Array | None  # (N, F)
    space: FactorSpace | None
    seed: int = 0
    chunk: int = ROWS_AT_ONCE

    @property
    def x(self) -> Tensor:  # (N, *shape)
        """The observations, rendered again: the same ones, and no memory is used until they are needed."""
        x = torch.cat(list(observation_chunks(self.data, self.rows, self.seed, self.chunk)))
        return x.to(self.posterior.mean.dtype)

    @property
    def codes(self) -> Array:  # (N, K)
        return self.posterior.mean.numpy()

    @property
    def variances(self) -> Array:  # (N, K)
        return self.posterior.variance().numpy()

    @property
    def active(self) -> Array | None:  # (K,) bool
        """Latents that vote in scores: those in use; None (all of them) where there is no prior to fall back to."""
        return active_latents(self.codes.std(0), self.variances.mean(0)) if self.posterior.has_prior else None

    @property
    def in_use(self) -> Array:  # (K,) bool
        """Active latents; of a model without a prior, those that vary."""
        return np.ptp(self.codes, axis=0) > 0 if self.active is None else self.active


def observation_chunks(data: Dataset, rows: Tensor, seed: int = 0, chunk: int = ROWS_AT_ONCE) -> Iterator[Tensor]:
    """Chunks of x; noise, where the data has some, belongs to the seed and the chunk (with chunk 1: to the row)."""
    for part in rows.split(chunk):
        yield data.batch(part, generator(seed, "represent", int(part[0])) if data.stochastic else None)


@torch.no_grad()
def represent(
    model: nn.Module | Callable[[Tensor], Posterior],
    data: Dataset,
    rows: Tensor,
    seed: int = 0,
    chunk: int = ROWS_AT_ONCE,
) -> EncodedRows:
    """Encode rows (N,) of the data; `model` is a model, or an encoder alone.

    >>> from unseam.data import load_data
    >>> from unseam.models import Architecture
    >>> data = load_data("synth-linear", size=100)
    >>> model = Architecture(network="linear", latents=2, likelihood="gaussian").build(data.shape, seed=0)
    >>> encoded = represent(model, data, torch.arange(5))
    >>> encoded.codes.shape, encoded.x.shape, encoded.factors.shape
    ((5, 2), torch.Size([5, 3]), (5, 2))
    """
    encode: Any = getattr(model, "encode", model)
    weights = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    posterior = join_posteriors(
        [encode(x if weights is None else x.to(weights)) for x in observation_chunks(data, rows, seed, chunk)]
    )
    factors = None if data.space is None else data.factors(rows).numpy()
    return EncodedRows(data, rows, posterior, factors, data.space, seed, chunk)


def join_posteriors(parts: Sequence[Posterior]) -> Posterior:
    """The posteriors of parts of the rows as one."""
    kind: Any = type(parts[0])
    found: Posterior = kind(*(torch.cat([getattr(part, f.name).cpu() for part in parts]) for f in fields(kind)))
    return found


def without_constants(encoded: EncodedRows) -> EncodedRows:
    """The same without factors that take one value only: a data set may fix some, and they say nothing.

    Where no factor varies, or none is known, the result has none.

    >>> from unseam.data import load_data
    >>> from unseam.models import Architecture
    >>> data = load_data("sprites", size=16, shapes=1)
    >>> model = Architecture(network="mlp", latents=2).for_data(data.shape, "bernoulli").build(data.shape, 0)
    >>> without_constants(represent(model, data, torch.arange(0, len(data), 100))).space.names
    ('scale', 'orientation', 'x', 'y')
    """
    if encoded.factors is None or encoded.space is None:
        return encoded
    varying = np.flatnonzero(np.ptp(encoded.factors, axis=0) > 0)
    if not len(varying):
        return replace(encoded, factors=None, space=None)
    return replace(
        encoded,
        factors=encoded.factors[:, varying],
        space=FactorSpace(tuple(encoded.space[int(i)] for i in varying)),
    )


def codes_of_members(runs: Sequence[Run], count: int, seed: int = 0) -> dict[str, Array]:
    """Codes (N, active latents) of the same rows by every finished member, by name; of runs on the same data."""
    first, out = runs[0], {}
    for run in runs[1:]:
        if run.config.data != first.config.data:
            raise BadInput(f"{run.folder} was trained on other data than {first.folder}; seeds of one data set compare")
    rows = sample_rows(first, None, count, seed, "match").rows
    for run in runs:
        for member in run.finished_members():
            encoded = represent(run.model(member), first.data, rows, seed)
            if encoded.in_use.any():
                where = "" if len(runs) == 1 else f"{run.folder.name} "
                out[f"{where}member {member}"] = encoded.codes[:, encoded.in_use]
    return out
