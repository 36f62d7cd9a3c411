"""One model's answer, the grades that its factors get, and a certificate for each: every clue that was tested, which
one decides, and under which assumption the axis is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from unseam.axes import Array
from unseam.finding.columns import Prepared
from unseam.finding.stability import AGREES, Agreement, groups

Grade = Literal["found", "pair", "unstable"]
Clue = Literal["independence", "simplicity", "non-negativity", "geometry", "none"]
_CLUES: tuple[Clue, ...] = ("independence", "simplicity", "non-negativity", "geometry")
_ASSUMPTION: dict[Clue, str] = {
    "independence": "The axis is right if the factors are independent of each other.",
    "simplicity": "The axis is right if each factor moves a few of the columns (simple structure).",
    "non-negativity": "The axis is right if every row is a sum of non-negative amounts of non-negative parts.",
    "geometry": "The axis is right if the factors act at right angles.",
    "none": "No clue decides: any other axis in the space of its group fits as well.",
}
_NOT_THIS_PLANE = (
    "The loadings as a whole are simpler than chance, but not in the plane with others of this group: any other axis "
    "there fits as well."
)
SHOWN = 8  # features named for a factor
SAME = 0.95  # rank correlation from which two axes are one
TOO_CLOSE = 0.1  # relative difference of singular values (geometry.degeneracy)
_MOVES = 0.3  # of the largest move: smaller ones are not named
MEANING = {
    "found": "the factor comes back on other rows, and a clue singles out its axis",
    "pair": "the space of these factors comes back on other rows, but not which axes in it are right",
    "unstable": "the factor does not come back on other rows",
}


@dataclass(frozen=True)
class ClueTest:
    """What one clue says about one factor's axis."""

    clue: Clue
    decides: bool  # whether the clue by itself singles out this axis, or one that it would turn it to
    statistic: float | None = None
    null: float | None = None  # the quantile of the statistic where the clue knows nothing
    p_value: float | None = None
    rotates: bool = False  # whether the axis that this clue prefers is another one
    what: str = ""  # the statistic in words

    @property
    def elsewhere(self) -> bool:
        """Whether the clue speaks for other factors of the same table, but not for this one."""
        beyond = self.statistic is not None and self.null is not None and self.statistic > self.null
        return self.clue == "simplicity" and beyond and not self.decides

    def to_json(self) -> dict[str, Any]:
        return {
            "clue": self.clue, "decides": self.decides, "statistic": self.statistic, "null": self.null,
            "p_value": self.p_value, "rotates": self.rotates, "what": self.what,
        }  # fmt: skip

    def __str__(self) -> str:
        """
        >>> str(ClueTest("simplicity", True, 0.6123, 0.41, 0.0025, what="varimax criterion"))
        'simplicity decides (varimax criterion 0.612, chance below 0.410, p = 0.0025)'
        >>> str(ClueTest("independence", False))
        'independence does not decide'
        """
        words = [f"{self.what or 'statistic'} {self.statistic:.3f}"] if self.statistic is not None else []
        words += [f"chance below {self.null:.3f}"] if self.null is not None else []
        words += [f"p = {self.p_value:.2g}"] if self.p_value is not None else []
        text = f"{self.clue} {'decides' if self.decides else 'does not decide'}"
        text += " and would turn it" if self.decides and self.rotates else ""
        return f"{text} ({', '.join(words)})" if words else text


@dataclass(frozen=True)
class Certificate:
    """All tests of one factor's axis."""

    clue: Clue
    tests: tuple[ClueTest, ...] = ()
    sentence: str = ""  # the assumption, where it is another than that of the clue

    @property
    def assumption(self) -> str:
        """One sentence: when is the axis right?

        >>> Certificate("none", (ClueTest("simplicity", False, 0.41, 0.40),)).assumption[:47]
        'The loadings as a whole are simpler than chance'
        """
        if self.clue == "none" and any(test.elsewhere for test in self.tests):
            return _NOT_THIS_PLANE
        return self.sentence or _ASSUMPTION[self.clue]

    @property
    def rotating(self) -> tuple[Clue, ...]:
        """The clues that would turn the axis."""
        return tuple(test.clue for test in self.tests if test.rotates)

    def to_json(self) -> dict[str, Any]:
        return {
            "clue": self.clue, "tests": [test.to_json() for test in self.tests], "rotating": list(self.rotating),
            "assumption": self.assumption,
        }  # fmt: skip

    def __str__(self) -> str:
        """
        >>> print(Certificate("geometry", (ClueTest("independence", False),)))
        independence does not decide. The axis is right if the factors act at right angles.
        """
        tested = "; ".join(map(str, self.tests))
        return f"{tested}. {self.assumption}" if tested else self.assumption


class Model(Protocol):
    """What a finding rests on: rows in model units -> codes and back."""

    def encode(self, x: Array) -> Array: ...  # (N, n) -> (N, k)

    def decode(self, u: Array) -> Array: ...  # (N, k) -> (N, n)


@dataclass(frozen=True)
class Move:
    """What one standard deviation of a factor does to a column, in the column's own unit."""

    name: str
    change: float
    share: float  # of the column's standard deviation

    def __str__(self) -> str:
        return f"{self.name} {self.change:+.3g}"


@dataclass(frozen=True)
class FoundFactor:
    """One factor that `unseam.find` found.

    Parameters
    ----------
    latent : int
        Its position.
    grade : {"found", "pair", "unstable"}
        How sure it is.
    nats : float
        The information that its code carries.
    agreement : float
        How well it comes back in models of other rows or seeds; `measure` says of what.
    chance : float
        The agreement to expect by chance.
    moves : tuple of Move
        The columns that it moves most, largest first.
    with_ : tuple of int
        The other factors of its group, if it is one of a pair.
    separation : float
        Of its singular value from the nearest other one; 0 is a plane.
    by : str
        The clue that gave its axis, in words.
    certificate : Certificate
        Every clue that was tested, and the one that decides.
    determinacy : float, optional
        Squared multiple correlation of the factor with the columns.
    group_agreement : float, optional
        How well its whole group comes back.
    measure : str
        What `agreement` measures.
    bar : float
        From which `agreement` counts: at least the 95 % quantile of chance.

    Examples
    --------
    >>> import numpy as np, unseam
    >>> rows = np.random.default_rng(0).laplace(size=(500, 2)) @ np.array([[2.0, 1.0, 0.5], [0.3, 1.0, 2.0]])
    >>> found = unseam.find(rows + 0.1 * np.random.default_rng(1).normal(size=rows.shape), network=False, show=False)
    >>> found.factors[0].latent
    0
    """

    latent: int
    grade: Grade
    nats: float
    agreement: float
    chance: float
    moves: tuple[Move, ...]
    with_: tuple[int, ...] = ()
    separation: float = 1.0
    by: str = ""
    certificate: Certificate = Certificate("none")
    determinacy: float | None = None
    group_agreement: float | None = None
    measure: str = "rank correlation of codes"
    bar: float = AGREES

    @property
    def features(self) -> list[str]:
        return [move.name for move in self.moves]

    @property
    def clue(self) -> Clue:
        """The clue that gave its axis."""
        return self.certificate.clue

    @property
    def determinacy_root(self) -> float | None:
        """Multiple correlation of the factor with the columns: how well its codes can follow it at all."""
        return None if self.determinacy is None else float(np.sqrt(self.determinacy))

    @property
    def rests_on(self) -> tuple[str, float, float]:
        """The number that the grade rests on: its name, its value, and what it is compared with."""
        if self.grade == "pair" and self.with_ and self.group_agreement is not None:
            return "its group comes back", self.group_agreement, AGREES
        return "comes back", self.agreement, self.bar

    def graded(self) -> str:
        """Its grade, and with whom: up to three others by number; more than two together are a group."""
        if not self.with_:
            return self.grade
        others = ", ".join(map(str, self.with_))
        word = "group" if len(self.with_) > 1 else self.grade
        return f"{word} with {others}" if len(self.with_) <= 3 else f"{word} ({len(self.with_)} others)"

    def to_json(self) -> dict[str, Any]:
        """The factor as plain JSON."""
        return {
            "latent": self.latent, "grade": self.grade, "nats": self.nats, "agreement": self.agreement,
            "chance": self.chance, "features": self.features, "with": list(self.with_),
            "separation": self.separation, "axis_by": self.by, "clue": self.clue, "determinacy": self.determinacy,
            "group_agreement": self.group_agreement, "measure": self.measure, "bar": self.bar,
            "certificate": self.certificate.to_json(),
            "moves": [{"feature": m.name, "change": m.change, "share": m.share} for m in self.moves],
        }  # fmt: skip


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
