"""What is said: two sentences that a person can repeat, and the choices that led to them."""

from __future__ import annotations

from collections.abc import Sequence

from unseam.find.density import Gain
from unseam.find.findings import FoundFactor

DEPENDS = "depends on others that are not correlated with it: a linear model does not separate them"


def clue(independent: bool, same: bool, apart: bool) -> str:
    """Which clue gives a factor its axis: independence of the codes, or unequal singular values (geometry).

    >>> clue(True, True, True), clue(True, False, False)
    ('both clues agree', 'independence decides, geometry is indifferent')
    """
    if same and independent:
        return "both clues agree"
    if independent:
        return "independence decides, geometry " + ("would turn it" if apart else "is indifferent")
    return "geometry decides, independence is indifferent" if apart else "neither clue decides"


def sentence(factors: Sequence[FoundFactor], kind: str, N: int, n: int, knows: int, notes: Sequence[str]) -> str:
    """How many, how sure; and what the strongest does."""
    if knows > N:
        return (
            f"{N} rows are too few to know: {plural(len(factors), 'direction')} of these {n} columns "
            f"{'varies' if len(factors) == 1 else 'vary'} together, and nobody can say from so few which factors they "
            f"are. Give at least {knows} rows, better 1,000."
        )
    grades = [factor.grade for factor in factors]
    counted = [
        f"{grades.count('found')} found" if "found" in grades else "",
        f"{grades.count('pair')} known only together (their axes are not identified)"
        if "pair" in grades else "",
        f"{grades.count('unstable')} unstable" if "unstable" in grades else "",
    ]  # fmt: skip
    first = (
        f"{N:,} rows of {n} columns are made of {plural(len(factors), 'factor')}: "
        f"{', '.join(part for part in counted if part)}, by a {kind} model."
    )
    found = [factor for factor in factors if factor.grade == "found"]
    if not found:
        return f"{first} No single axis can be believed."
    best = max(found, key=lambda factor: factor.nats)
    moved = " and ".join(map(str, best.moves[:3]))
    return f"{first} The strongest found, factor {best.latent}, moves {moved} per standard deviation."


def nothing(N: int, n: int, knows: int) -> str:
    said = f"No factors: in these {N:,} rows the {n} columns share no more than the same columns shuffled."
    if knows > N:
        return f"{said} But {N} rows are too few to know; give at least {knows}."
    return f"{said} Each column stands for itself."


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def network(better: Gain, line: float, rows: int, seeds: int) -> str:
    """The network against the linear model."""
    by = f"{better.mean:+.2f} nats a row (standard error {better.error:.2f}) over a linear model's {line:.2f}"
    return f"a network ({plural(seeds, 'seed')}) gains {by} on {rows:,} unseen rows"


def clues(chosen: str, back: float, other: float, less: Gain) -> str:
    """Which clue was taken, and what the other said."""
    rest = "independence" if chosen == "geometry" else "geometry"
    decided = "independence prefers its own axes" if less.sure() else "independence is indifferent between them"
    return (
        f"axes by {chosen}: they come back {back:.2f} over seeds, those by {rest} {other:.2f}; {decided} "
        f"({less.mean:+.3f} nats of total correlation)"
    )
