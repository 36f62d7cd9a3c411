"""How many latents a network needs: as few as leave unseen rows as likely.

Linear evidence counts the dimensions that a curve spans, and a network that is offered as many latents fills them: it
then describes an arc by its two coordinates, a minimum of the loss that training does not leave. Fewer latents for the
same rows are likelier under the bound on log p(x), because no prior is spent on places where there are no rows. So
cohorts with one latent fewer each are trained while their bound on unseen rows is not surely worse than the best, and
the smallest of these is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from unseam.axes import Array
from unseam.finding.density import gain

if TYPE_CHECKING:
    from unseam.run import Run

LATENTS = 10  # of a network, at most
BETTER = 0.05  # nats a row by which one model must surely beat another


class NetworkCohort(NamedTuple):
    """Networks with one number of latents."""

    latents: int
    run: Run
    bounds: dict[int, Array]  # (M,) log p of unseen rows at least, of each member that was trained
    used: dict[int, int]  # latents in use

    @property
    def best(self) -> int | None:
        """The likeliest member with latents in use; None without one."""
        members = [m for m, count in self.used.items() if count]
        return max(members, key=lambda m: float(self.bounds[m].mean()), default=None)


@dataclass(frozen=True)
class Choice:
    """The cohort that is taken, and the bounds of all that were tried."""

    cohort: NetworkCohort | None
    tried: dict[int, float]  # latents -> nats a row of the best member

    def says(self) -> str:
        if self.cohort is None or len(self.tried) < 2:
            return ""
        listed = ", ".join(f"{k} {value:.2f}" for k, value in sorted(self.tried.items()))
        return f"unseen rows by the number of latents, nats a row: {listed}; {self.cohort.latents} taken"


def fewest_latents(most: int, trained: Callable[[int], NetworkCohort]) -> Choice:
    """Fewer and fewer latents, until unseen rows are surely less likely than by the best so far.

    Parameters
    ----------
    most : int
        Latents to begin with.
    trained : callable
        A number of latents -> the cohort with so many.

    Returns
    -------
    Choice
        The smallest cohort that no other surely beats by `BETTER` nats a row, and every bound.

    >>> import numpy as np
    >>> def trained(k):
    ...     return NetworkCohort(k, None, {0: np.full(50, -float(max(3 - k, 0)))}, {0: min(k, 5)})
    >>> choice = fewest_latents(8, trained)
    >>> choice.cohort.latents, sorted(choice.tried)
    (3, [2, 3, 4, 5])
    """
    cohorts: list[NetworkCohort] = []
    latents = most
    while latents:
        found = trained(latents)
        if found.best is None:
            break
        cohorts.append(found)
        top = max(cohorts, key=_level)
        if _beats(top, found):
            break
        latents = min(latents, found.used[found.best]) - 1
    if not cohorts:
        return Choice(None, {})
    top = max(cohorts, key=_level)
    smallest = min((c for c in cohorts if not _beats(top, c)), key=lambda c: c.latents)
    return Choice(smallest, {_in_use(c): _level(c) for c in cohorts})


def _in_use(cohort: NetworkCohort) -> int:
    assert cohort.best is not None
    return cohort.used[cohort.best]


def _level(cohort: NetworkCohort) -> float:
    assert cohort.best is not None
    return float(cohort.bounds[cohort.best].mean())


def _beats(one: NetworkCohort, other: NetworkCohort) -> bool:
    assert one.best is not None
    assert other.best is not None
    return gain(one.bounds[one.best] - other.bounds[other.best]).sure(BETTER)
