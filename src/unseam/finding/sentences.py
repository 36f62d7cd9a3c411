"""The words of the answer: two sentences that a person can repeat, and the choices that led to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unseam.finding.density import Gain
from unseam.finding.grades import FoundFactor

_GEOMETRY = "by geometry alone, which is right only if factors act at right angles: independence is indifferent"
PARTS = "non-negativity decides"
MIXED = "depends on another part, so that both may be mixtures: non-negativity alone does not separate them"
LINKED = "depends on other factors: axes that are both independent and at right angles were not found"
SIMPLE = "each column is moved by few factors in these axes, more so than by chance"
UNSETTLED = "the network had not settled, so none of its axes is identified yet"
DEPENDS = "depends on others that are not correlated with it: a linear model does not separate them"
HIDES = "independence prefers it, but a weaker factor could hide in the noise, so that it may be a mixture"
FEW = "independence prefers it on unseen rows, which are too few to tell it from a Gaussian one"


def clue_sentence(independent: bool, same: bool, apart: bool) -> str:
    """Which clue gives a factor its axis: independence of the codes, or unequal singular values (geometry).

    >>> clue_sentence(True, True, True), clue_sentence(True, False, False)
    ('both clues agree', 'independence decides, geometry is indifferent')
    >>> clue_sentence(False, False, True)
    'by geometry alone, which is right only if factors act at right angles: independence is indifferent'
    """
    if same and independent:
        return "both clues agree"
    if independent:
        return "independence decides, geometry " + ("would turn it" if apart else "is indifferent")
    return _GEOMETRY if apart else "neither clue decides"


class Size(NamedTuple):
    """Of the data: N rows of n columns, or images."""

    N: int
    n: int
    images: bool = False

    def __str__(self) -> str:
        return f"{self.N:,} {self.row}s of {plural(self.n, self.column)}"

    @property
    def row(self) -> str:
        return "image" if self.images else "row"

    @property
    def column(self) -> str:
        return "pixel" if self.images else "column"


_LITTLE = 0.25  # share of the variance of the columns below which little is shared


def findings_headline(factors: Sequence[FoundFactor]) -> str:
    """The title of the page."""
    found = sum(factor.grade == "found" for factor in factors)
    if not factors:
        return "No factors"
    many = "none of them found" if not found else "all found" if found == len(factors) else f"{found} found"
    return f"{plural(len(factors), 'factor')}, {many if len(factors) > 1 else 'found' if found else 'not found'}"


def sentence(factors: Sequence[FoundFactor], kind: str, size: Size, knows: int, kept: float | None = None) -> str:
    """How many, how sure; and what the strongest does. `kept` is the share of the columns' variance that they hold."""
    N = size.N
    if knows > N:
        vary = "varies" if len(factors) == 1 else "vary"
        return (
            f"{N} {size.row}s are too few to know: {plural(len(factors), 'direction')} of these {size.n} "
            f"{size.column}s {vary} together. Which factors they are cannot be determined from so few rows: "
            f"give at least {knows} {size.row}s, better 1,000."
        )
    grades = [factor.grade for factor in factors]
    if grades == ["pair"]:
        return (
            f"{size} share one direction, by a {kind} model. It may be one factor, or several that move together: "
            "these rows do not tell."
        )
    together = "known only together (their axes are not identified)"
    together = together if grades.count("pair") > 1 else "that comes back, but not on an axis of its own"
    counted = [
        f"{grades.count('found')} found" if "found" in grades else "",
        f"{grades.count('pair')} {together}" if "pair" in grades else "",
        f"{grades.count('unstable')} unstable" if "unstable" in grades else "",
    ]
    first = (
        f"{size} are made of {plural(len(factors), 'factor')}: "
        f"{', '.join(part for part in counted if part)}, by a {kind} model."
    )
    little = kept is not None and kept < _LITTLE and not size.images
    last = f" Little is shared: together they hold {100 * max(kept or 0, 0):.0f} % of the columns' variance." * little
    found = [factor for factor in factors if factor.grade == "found"]
    if not found:
        return f"{first} No single axis is identified.{last}"
    best = max(found, key=lambda factor: factor.nats)
    does = "is shown on the page" if size.images else f"moves {_listed(best.moves[:3])} per standard deviation"
    return f"{first} The strongest found, factor {best.latent}, {does}.{last}"


def _listed(things: Sequence[object]) -> str:
    """
    >>> _listed("a"), _listed("abc")
    ('a', 'a, b and c')
    """
    *most, last = map(str, things)
    return f"{', '.join(most)} and {last}" if most else last


def no_factors_sentence(size: Size, knows: int) -> str:
    text = (
        f"No factors: in these {size.N:,} {size.row}s the {size.n} {size.column}s share no more than the same "
        f"{size.column}s shuffled."
    )
    if knows > size.N:
        return f"{text} But {size.N} {size.row}s are too few to know; give at least {knows}."
    return f"{text} Each {size.column} stands for itself."


def plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def network(better: Gain, line: float) -> str:
    """The network against the linear model."""
    return f"gains {better.mean:+.2f} nats a row (standard error {better.error:.2f}) over a linear model's {line:.2f}"


def variance_sentence(ours: float, line: float, k: int) -> str:
    """Images: shares of the variance of unseen rows."""
    share = f"{100 * ours:.0f} % of the variance with {plural(k, 'latent')}"
    return f"keeps {share}, as many principal components {100 * line:.0f} %"


def witnesses(seeds: int, stayed: int, nats: float) -> list[str]:
    left = seeds - stayed
    return [f"{left} of {seeds} seeds ended more than {nats:g} nats worse, left out"] if left else []


def turning(least: float, steps: int, still: bool) -> str:
    """Whether the axes, too, had come to rest."""
    text = f"over the last {steps:,} steps each factor's rank correlation with itself is at least {least:.2f}"
    return f"axes still turning: {text}" if still else f"axes had settled: {text}"


def parts(d: int, better: Gain, poisson: bool, back: float, other: float, won: bool) -> str:
    """The non-negative model against the linear one."""
    unit = "nats" if poisson else "squared units"
    text = f"{plural(d, 'non-negative part')} against a linear model: hidden cells {better.mean:+.3g} {unit} a cell"
    return (
        f"{text} (standard error {better.error:.2g}), come back {back:.2f} and {other:.2f}: "
        f"{'parts' if won else 'the linear model'} taken"
    )


def clue_choice_sentence(chosen: str, back: float, other: float, less: Gain) -> str:
    """Which clue was taken, and how the axes of the other fared."""
    rest = "geometry" if chosen == "independence" else "independence"
    decided = "independence prefers its own axes" if less.sure() else "independence is indifferent between them"
    return (
        f"axes by {chosen}: they come back {back:.2f} over seeds, those by {rest} {other:.2f}; {decided} "
        f"({less.mean:+.3f} nats of total correlation)"
    )
