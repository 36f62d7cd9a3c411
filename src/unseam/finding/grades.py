"""One model's answer, and the grades that its factors get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.finding.certificates import Certificate
from unseam.finding.columns import Prepared
from unseam.finding.findings import AGREES, SHOWN, FoundFactor, Grade, Model, Move
from unseam.finding.stability import Agreement, groups

SAME = 0.95  # rank correlation from which two axes are one
TOO_CLOSE = 0.1  # relative difference of singular values (geometry.degeneracy)
_MOVES = 0.3  # of the largest move: smaller ones are not named


class Unseen(NamedTuple):
    """What is compared with rivals: the model as fitted on some rows, and how likely it makes the others."""

    model: Model
    train: Array  # the rows that it was fitted on
    test: Array  # others
    given: tuple[Array, Array]  # both as densities are compared on them
    log_likelihood: float | None = None  # nats a row of the second; None without a density of them


@dataclass(frozen=True)
class Answer:
    """One model's axes, what each moves (in model units), and how well they come back."""

    kind: str
    model: Model
    W: Array  # (n, k)
    nats: Array  # (k,)
    separation: Array  # (k,)
    identified: Array  # (k,) bool: one of the clues decides
    by: tuple[str, ...]
    comes_back: Agreement
    unseen: Unseen
    certificates: tuple[Certificate, ...] = ()  # (k,); empty: by independence where identified
    standardised: Array | None = field(default=None, repr=False)  # (n, k) loadings; None: W over the columns' spread
    correlations: Array | None = None  # (k, k) of the factors; None: uncorrelated
    known: Array | None = None  # (k,) determinacy; None: by the nats

    @property
    def determinacy(self) -> Array:  # (k,)
        """Squared multiple correlation of each factor with the columns; of nats I it is 1 - exp(-2 I)."""
        return -np.expm1(-2 * np.asarray(self.nats)) if self.known is None else self.known

    def loadings(self, prepared: Prepared) -> Array:  # (n, k)
        """What one standard deviation of each factor does to each column, in standard deviations of the column."""
        if self.standardised is not None:
            return self.standardised
        return np.asarray(self.W / np.maximum(prepared.x.std(0), 1e-12)[:, None])

    def certificate(self, j: int) -> Certificate:
        """Why factor j has its axis."""
        if self.certificates:
            return self.certificates[j]
        return Certificate("independence" if self.identified[j] else "none")

    def grades(self, enough: bool) -> list[Grade]:
        """A grade for each: found if it comes back and a clue decides, pair if its group does, else unstable."""
        back, bars = self.comes_back, self.bars()
        grouped = np.bincount(back.group)[back.group] > 1
        return [
            grade_of(
                float(back.alone[j]), float(bars[j]), bool(self.identified[j]), float(back.together[j]),
                bool(grouped[j] or not self.identified[j]), enough,
            )
            for j in range(len(self.nats))
        ]  # fmt: skip

    def bars(self) -> Array:  # (k,)
        """From which on each factor counts as coming back: where chance would not bring it back, and it is called the
        same at all. Beside others that are all found the last one cannot turn any more, so that chance gives nothing.
        """
        back = self.comes_back
        bars = np.full(len(self.nats), back.bar)
        short = np.flatnonzero(~(self.identified & (back.alone >= bars)))
        if len(short) == 1 < len(bars):
            bars[short] = back.agrees
        return bars


def join_groups(back: Agreement, linked: Array) -> Agreement:  # (d, d) bool
    """Factors that are one cloud (Gaussian) or depend on each other are one group, however well axes come back."""
    group = groups(linked | (back.group[:, None] == back.group))
    joined = np.bincount(group)[group] > np.bincount(back.group)[back.group]
    return back._replace(group=group, together=np.where(joined, np.maximum(back.together, back.alone), back.together))


def grade_factors(answer: Answer, prepared: Prepared, enough: bool) -> tuple[FoundFactor, ...]:
    """The factors of an answer with their grades."""
    back, out, grades, known = answer.comes_back, [], answer.grades(enough), answer.determinacy
    bars = answer.bars()
    for j, grade in enumerate(grades):
        beside = tuple(int(i) for i in np.flatnonzero(back.group == back.group[j]) if i != j)
        out.append(
            FoundFactor(
                j, grade, float(answer.nats[j]), float(back.alone[j]), back.chance, _moves_of(answer.W[:, j], prepared),
                beside if grade == "pair" else (), float(answer.separation[j]), answer.by[j], answer.certificate(j),
                float(known[j]), float(back.together[j]) if beside else None, back.measure,
                float(bars[j]),
            )
        )  # fmt: skip
    return tuple(out)


def grade_of(alone: float, bar: float, identified: bool, together: float, grouped: bool, enough: bool) -> Grade:
    """
    >>> grade_of(0.99, 0.9, True, 0.99, False, True), grade_of(0.5, 0.9, True, 0.95, True, True)
    ('found', 'pair')
    >>> grade_of(0.99, 0.9, True, 0.99, False, enough=False)
    'unstable'
    """
    if not enough:
        return "unstable"
    if identified and alone >= bar:
        return "found"
    return "pair" if grouped and together >= AGREES else "unstable"


def _moves_of(w: Array, prepared: Prepared) -> tuple[Move, ...]:  # (n,)
    """The columns a factor moves, by the share of their spread, largest first."""
    share = w / np.maximum(prepared.x.std(0), 1e-12)
    order = np.argsort(-np.abs(share), kind="stable")[:SHOWN]
    large = [i for i in order if abs(share[i]) >= _MOVES * abs(share[order[0]])]
    change = (prepared.raw(w[None]) - prepared.raw(0 * w[None]))[0]  # of a row at the mean
    return tuple(Move(prepared.features[i], float(change[i]), float(share[i])) for i in large)
