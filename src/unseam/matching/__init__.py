"""Do two seeds find the same directions? One-to-one matching of dictionaries, or of the codes of trained models.

`match(W_a, W_b)` takes dictionaries, one direction for each row (as the decoders of sparse autoencoders), and compares
them by |cosine|; `match(run)` and `of="codes"` compare codes of the same rows by |rank correlation|. Sets of at most
2,000 are matched so that the sum is largest; larger ones by an auction on lists of the nearest, with a proof of how
much larger the sum could be (`unseam.matching.directions`).

A direction is *stable* when every other set has it at `at` (0.7) or more and above 99 % of what random axes reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.matching.directions import EXACT, LISTED, match_directions
from unseam.matching.files import open_set
from unseam.matching.groups import near_groups, sum_groups
from unseam.matching.latents import match_codes
from unseam.matching.result import Match, MatchedPair, Of
from unseam.progress import bar, log
from unseam.readers import FileRows, Hdf5Rows

__all__ = ["AT", "Match", "MatchedPair", "match", "match_codes", "open_set"]

AT = 0.7  # |cosine| from which on two directions are the same (Paulo & Belrose 2025)
_ROWS = 2000  # of a run's data, encoded by every member
_FEW_LATENTS, _MANY_ROWS = 64, 8  # arrays with fewer columns, and this many rows for each, may be codes
_CHECKED = 1 << 16  # rows in one block


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
    """Match dictionaries, codes of the same rows, or the members of trained runs, one to one.

    Parameters
    ----------
    *things
        Dictionaries (directions, n), codes of the same rows (rows, latents), runs, or where they are: a file,
        `"sae.safetensors:W_dec"`, the folder of a sparse autoencoder or of a run (`unseam.matching.open_set`).
    of
        What arrays hold: "directions", one for each row, or "codes", one latent for each column.
    signed
        A direction and its opposite are two, as for sparse autoencoders.
    at
        From which |cosine| or |rank correlation| on two directions are the same.
    names
        Of the sets, one for each.
    seed
        Of the chance levels.
    show
        A progress bar; None: on a terminal.
    data
        Observations. Each of `things` is then a model that `unseam.diagnose` takes, and its codes of these
        observations are matched.

    Returns
    -------
    Match
        Partners and values of each pair of sets, what chance gives, quality over coverage, and groups.

    Examples
    --------
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
    if of == "directions":
        hint_at_codes(sets)
    labels = list(names) if names is not None else labels
    if len(labels) != len(sets):
        raise BadInput(f"{len(labels)} names for {len(sets)} sets; give one for each set")
    chosen, found = list(combinations(range(len(sets)), 2)), []
    with bar("matching", sum(min(sets[i].shape[0], sets[j].shape[0]) for i, j in chosen), show) as advance:
        for i, j in chosen:
            pair = _pair_of_directions if of == "directions" else _pair_of_codes
            found.append(pair(i, j, sets[i], sets[j], signed, at, seed, advance))
    sizes = tuple(s.shape[0 if of == "directions" else 1] for s in sets)
    large = of == "directions" and max(sizes) > EXACT
    method = f"auction on lists of the {LISTED} nearest" if large else "by assignment (largest sum)"
    return Match(tuple(labels), sizes, of, signed, at, method, tuple(found))


def hint_at_codes(sets: Sequence[Array]) -> None:
    """Say so where arrays look like codes of the same rows: as many rows each, many more than columns."""
    rows, columns = {s.shape[0] for s in sets}, max(s.shape[1] for s in sets)
    if len(rows) == 1 and columns <= _FEW_LATENTS and min(rows) >= _MANY_ROWS * columns:
        n = min(rows)
        log.info(
            f"note: matching {n:,} directions of {columns} numbers each; if these are codes, latents in columns and "
            f"the same {n:,} rows in each set, say so: of='codes' (--of codes)"
        )


def _pair_of_directions(
    i: int, j: int, a: Array, b: Array, signed: bool, at: float, seed: int, advance: Callable[[int], Any]
) -> MatchedPair:
    found = match_directions(a, b, signed, seed, advance)
    pair = MatchedPair(i, j, found.values, found.partners, found.random, found.negatives, found.loss)
    level = max(at, pair.limit)
    near = near_groups(found.edges, level)
    return pair._replace(groups=(*near, *sum_groups(a, b, found.edges, level, max(at / 2, pair.limit))))


def _pair_of_codes(
    i: int, j: int, a: Array, b: Array, signed: bool, at: float, seed: int, advance: Callable[[int], Any]
) -> MatchedPair:
    del signed  # codes have no sign: a latent may be learned either way round
    found = match_codes(a, b, seed)
    advance(a.shape[0])
    pair = MatchedPair(i, j, found.values, found.partners, found.random, found.negatives)
    return pair._replace(groups=tuple(near_groups(found.edges, max(at, pair.limit))))


def _gather(things: Sequence[Any], of: Of, data: Any = None) -> tuple[list[Array], list[str], Of]:
    """Arrays and their names: of a run the codes of its finished members, of a model its codes of `data`."""
    from unseam.metrics.inputs.prepare import plain_array
    from unseam.metrics.suite import is_model

    places = [str(thing) if isinstance(thing, (str, Path)) else "" for thing in things]
    things = [open_set(place) if place else thing for place, thing in zip(places, things, strict=True)]
    if data is not None or any(is_model(thing) and not hasattr(thing, "members") for thing in things):
        from unseam.models.adapters import codes_of

        codes = [codes_of(thing, data) for thing in things]
        return codes, [f"model {i}" for i in range(len(codes))], "codes"

    runs = [hasattr(thing, "members") for thing in things]
    if any(runs):
        if not all(runs):
            raise BadInput("runs and arrays cannot be matched with each other; give runs only, or arrays only")
        from unseam.runs.represent import codes_of_members

        found = codes_of_members(things, _ROWS)
        if len(found) < 2:
            members = sum(len(run.members) for run in things)
            raise BadInput(f"{len(found)} of {members} members finished with a latent in use; matching needs 2")
        return list(found.values()), list(found), "codes"
    on_disk = (FileRows, Hdf5Rows) if of == "codes" else ()  # codes are read by rows, directions are in memory
    arrays: list[Any] = [thing if isinstance(thing, on_disk) else plain_array(thing) for thing in things]
    return arrays, [Path(place).name if place else f"set {i}" for i, place in enumerate(places)], of


def _check(sets: Sequence[Array], of: Of) -> None:
    """Refuse what is not a matrix of finite numbers, or does not belong together."""
    for i, s in enumerate(sets):
        if s.ndim != 2 or 0 in s.shape or s.dtype.kind not in "fiu" or not _finite(s):
            raise BadInput(f"set {i} ({s.dtype} {s.shape}) must be a matrix of finite numbers")
    axis, word = (1, "columns") if of == "directions" else (0, "rows")
    if len({s.shape[axis] for s in sets}) > 1:
        shapes = ", ".join(str(s.shape) for s in sets)
        hint = (
            "one direction in each row (give the transpose if they are columns)" if axis else "codes of the same rows"
        )
        if axis and len({s.shape[0] for s in sets}) == 1:
            hint += ", or say of='codes' (--of codes) if they are codes of the same rows"
        raise BadInput(f"sets of shapes {shapes} must have as many {word}; give {hint}")


def _finite(s: Array) -> bool:
    return all(np.isfinite(s[i : i + _CHECKED]).all() for i in range(0, s.shape[0], _CHECKED))
