"""Which columns of the codes are latents: some do not vote (`active`), some belong together (`groups`).

A latent that a model does not use (the posterior is the prior) still has a mean, and estimators that ignore scale find
information in it that the decoder never hears. `active` names the latents that vote; the others are made constant, so
they keep their place and tell nothing. Without it the suspicious ones are named.

A latent that is a vector (a group of columns) becomes its first principal component, or several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput

_VARIANCE = 0.95  # of a group's variance; a note reports less
_SMALL = 0.05  # of the largest standard deviation: below it a latent looks unused
USED_STD, USED_VARIANCE = 0.5, 0.8  # geometry.active_latents' rule; a test compares them


class Loadings(NamedTuple):
    """The linear map of groups: codes (N, K) -> (N, M), and the group of each new column."""

    weights: Array  # (K, M)
    group: Array  # (M,)
    notes: tuple[str, ...]


def active_mask(active: Any, k: int) -> Array:  # (K,) bool
    """Latents that vote, given as True/False or by number.

    >>> active_mask([True, False], 2), active_mask([1], 2)
    (array([ True, False]), array([False,  True]))
    """
    mask = np.asarray(active)
    if mask.dtype == bool and mask.shape == (k,):
        return mask
    if mask.dtype.kind in "iu" and mask.ndim == 1 and not ((mask < 0) | (mask >= k)).any():
        return np.isin(np.arange(k), mask)
    raise BadInput(f"active={active!r} must be {k} times True or False, or numbers of latents 0..{k - 1}")


def passive_latents(codes: Array, variances: Array | None) -> list[int]:  # (N, K), (N, K)
    """Latents that look unused: by their posterior variance where it is known, else much smaller than the largest.

    >>> passive_latents(np.array([[0.0, 0.0], [2.0, 0.01]]), None)
    [1]
    """
    std = codes.std(axis=0, dtype=np.float64)
    if variances is None or not variances.any():
        return np.flatnonzero((std > 0) & (std < _SMALL * std.max())).tolist()
    mean = variances.mean(axis=0)
    used = (std > USED_STD) | ((mean > 0) & (mean < USED_VARIANCE))
    return np.flatnonzero(~used & (std > 0)).tolist()


def passive_note(found: Sequence[int], variances: Array | None) -> str:
    """What to say of them."""
    why = f"vary less than {_SMALL:.0%} of the largest" if variances is None else "have the prior for posterior"
    return (
        f"latent(s) {', '.join(map(str, found))} {why}: if the model does not use them, they still change every score "
        "that ignores scale (mig, dci, ...); name the others with active= (--active)"
    )


def parse_groups(text: str) -> list[list[int]]:
    """Groups as the command line has them: first-last, or one number, with commas between.

    >>> parse_groups("0-3,4,5-6")
    [[0, 1, 2, 3], [4], [5, 6]]
    """
    out = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise BadInput(f"groups={text!r}: {part!r} is not a group; write 0-3,4-7 (columns, counted from 0)")
        out.append(list(range(first, last + 1)))
    return out


def loadings(codes: Array, groups: str | Sequence[Sequence[int]], components: int = 1) -> Loadings:
    """Principal components of each group of columns, and what they keep.

    >>> z = np.array([[3.0, 4.0, 1.0], [-3.0, -4.0, 1.0], [0.0, 0.0, 2.0]])
    >>> loadings(z, [[0, 1], [2]]).weights.round(6).tolist()
    [[0.6, 0.0], [0.8, 0.0], [0.0, 1.0]]
    >>> loadings(np.eye(3), "0-2").notes
    ('group 0 (latents 0-2): 1 component(s) keep 50% of its variance',)
    """
    chosen = parse_groups(groups) if isinstance(groups, str) else [list(map(int, g)) for g in groups]
    check_groups(chosen, codes.shape[1], components)
    columns, owner, notes = [], [], []
    for g, members in enumerate(chosen):
        weights, share = _principal(codes[:, members].astype(np.float64), components)
        column = np.zeros((codes.shape[1], weights.shape[1]))
        column[members] = weights
        columns.append(column)
        owner += [g] * weights.shape[1]
        if share < _VARIANCE:
            where = f"{members[0]}-{members[-1]}" if members == list(range(members[0], members[-1] + 1)) else members
            notes.append(f"group {g} (latents {where}): {components} component(s) keep {share:.0%} of its variance")
    return Loadings(np.hstack(columns), np.array(owner), tuple(notes))


def check_groups(groups: Sequence[Sequence[int]], k: int, components: int) -> None:
    """Every latent in one group and no other."""
    if components < 1:
        raise BadInput(f"components={components} must be at least 1: the numbers that a group becomes")
    mask = [j for group in groups for j in group]
    if not all(groups) or len(set(mask)) < len(mask):
        raise BadInput(f"groups={list(map(list, groups))} must be non-empty and share no latent")
    if any(j < 0 or j >= k for j in mask):
        raise BadInput(f"groups name latent {next(j for j in mask if j < 0 or j >= k)}; the codes have 0..{k - 1}")
    left = sorted(set(range(k)) - set(mask))
    if left:
        raise BadInput(
            f"groups leave out latent(s) {', '.join(map(str, left[:10]))}; give them as groups of their own, or "
            "leave those columns out of the codes"
        )


def _principal(z: Array, components: int) -> tuple[Array, float]:  # (N, p) -> (p, c), share of variance
    """The first axes of largest variance, the largest weight of each positive."""
    _, s, axes = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    axes = axes[: min(components, len(axes))]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    total = (s**2).sum()
    return (axes * np.where(signs == 0, 1.0, signs)[:, None]).T, float(
        (s[: len(axes)] ** 2).sum() / total
    ) if total else 1.0
