"""A row of an exhibit's table: what the source prints, what we measured, what kind of comparison it is, the verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput

Verdict = Literal["agrees", "open", "differs", "not comparable", "holds", "fails", "shown"]
RowKind = Literal["published number", "published ordering", "by construction", "own control", "beyond the paper"]
COMPARED: tuple[Verdict, ...] = ("agrees", "open", "differs", "not comparable")  # in the order of the counts
_OURS: tuple[Verdict, ...] = ("holds", "open", "fails", "shown")
VERDICTS_OF_KIND: dict[RowKind, tuple[Verdict, ...]] = {
    "published number": COMPARED,
    "published ordering": COMPARED,
    "by construction": _OURS,
    "own control": _OURS,
    "beyond the paper": _OURS,
}
ROW_REASONS = {  # why a published row does not agree
    "against the source": "measured, and it does not come out as printed",
    "our limit": "the source prints words; what they come to in numbers is ours, and that is not met",
    "few restarts": "more restarts than were trained would decide it",
    "spread of the source": "the printed deviation is so wide that no number of our restarts decides",
    "not printed": "it hangs on a setting that the source leaves open",
    "stand-in": "measured on smaller data, networks or strengths than the source's",
    "too long here": "the published length takes hours to years of a core; the row says how many",
    "no file": "a data file that is not here",
    "cannot be asked": "these settings cannot decide it, however long they run",
    "slip of the source": "the source's own equations say otherwise",
}
Reason = Literal["against the source", "our limit", "few restarts", "spread of the source", "not printed", "stand-in",
                 "too long here", "no file", "cannot be asked", "slip of the source"]  # fmt: skip
SECOND_KEY = "second: "  # what the key of a row begins with that repeats another on a second study


@dataclass(frozen=True)
class VerdictRow:
    """One line of an exhibit's table; `published` is what the source prints and nothing else."""

    key: str  # its name in the exhibit
    what: str
    published: str
    ours: str
    kind: RowKind
    verdict: Verdict
    note: str = ""
    rule: str = ""  # test, margin, n; and whether it was fixed after a look
    limit: str = ""  # what ours must be to agree, as a few words
    reason: str = ""  # one of ROW_REASONS, of a counted row that does not agree
    why: str = ""  # the same in a sentence

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS_OF_KIND.get(self.kind, ()):
            known = "; ".join(f"{kind}: {', '.join(verdicts)}" for kind, verdicts in VERDICTS_OF_KIND.items())
            raise BadInput(f"row {self.key!r} has kind={self.kind!r} and verdict={self.verdict!r}; known: {known}")
        if self.reason and self.reason not in ROW_REASONS:
            raise BadInput(f"row {self.key!r} has reason={self.reason!r}; known: {', '.join(ROW_REASONS)}")
        if self.reason and not self.wants_reason:
            raise BadInput(f"row {self.key!r} {self.verdict}, so it has no reason; leave reason and why empty")
        if self.counted and not self.published:
            raise BadInput(f"row {self.key!r} is a {self.kind} and prints none; call it beyond the paper")

    @property
    def counted(self) -> bool:
        return VERDICTS_OF_KIND[self.kind] is COMPARED

    @property
    def wants_reason(self) -> bool:
        """A published row that does not agree says why."""
        return self.counted and self.verdict != "agrees"


VerdictRows = Mapping[str, VerdictRow]  # of an exhibit, by key


def counts(rows: Iterable[VerdictRow]) -> tuple[int, int, int, int]:
    """Published rows that agree, are open, differ, cannot be compared; the others are not counted.

    >>> number = VerdictRow("a", "a", "1", "1", "published number", "agrees")
    >>> rows = [number, VerdictRow("b", "b", "", "2", "own control", "fails")]
    >>> counts(rows)
    (1, 0, 0, 0)
    """
    verdicts = [row.verdict for row in rows if row.counted]
    agree, open_, differ, other = (verdicts.count(verdict) for verdict in COMPARED)
    return agree, open_, differ, other


def overall(rows: Iterable[VerdictRow]) -> Verdict:
    """An exhibit differs when a published row does, agrees when another row does, and else is open or not comparable.

    >>> number = VerdictRow("a", "a", "1", "1", "published number", "agrees")
    >>> rows = [number, VerdictRow("b", "b", "", "2", "own control", "fails")]
    >>> overall(rows)
    'agrees'
    """
    agree, open_, differ, _ = counts(rows)
    return "differs" if differ else "agrees" if agree else "open" if open_ else "not comparable"


def keyed(rows: Iterable[VerdictRow]) -> dict[str, VerdictRow]:
    """Rows by key, in order; a key that stands for two rows is an error, and so is a published row that does not agree
    and does not say why.

    >>> keyed([VerdictRow("a", "a", "1", "2", "published number", "open")])
    Traceback (most recent call last):
    unseam.errors.BadInput: row 'a' is open and has no reason; give it one with `because`
    """
    out: dict[str, VerdictRow] = {}
    for row in rows:
        if row.key in out:
            raise BadInput(f"two rows have the key {row.key!r}; give each its own")
        if row.wants_reason and not (row.reason and row.why):
            raise BadInput(f"row {row.key!r} is {row.verdict} and has no reason; give it one with `because`")
        out[row.key] = row
    return out


def as_kind(row: VerdictRow, kind: RowKind) -> VerdictRow:
    """The same comparison as a row that is not counted: agrees -> holds, differs -> fails, open -> open,
    not comparable -> shown.

    >>> as_kind(VerdictRow("a", "slope", "1", "1.01", "published number", "agrees", rule="t"), "own control").verdict
    'holds'
    """
    verdict = dict(zip(COMPARED, _OURS, strict=True))[row.verdict]
    expected = f"expected: {row.published}" if row.published else ""
    why = row.why if row.verdict == "not comparable" else ""
    note = join_parts(expected, why, row.note)
    return replace(row, kind=kind, verdict=verdict, published="", note=note, reason="", why="")


def after_a_look(row: VerdictRow, why: str) -> VerdictRow:
    """The same row, saying that its rule was made when results had been seen."""
    return replace(row, rule=join_parts(row.rule, f"fixed after a look at results: {why}"))


def unless(why: str, row: VerdictRow, reason: Reason = "stand-in") -> VerdictRow:
    """The row, not judged where there is a reason not to (a shorter training, other data): it is the row's reason.

    >>> row = VerdictRow("a", "a", "1", "1", "published number", "agrees")
    >>> unless("5 of 400 epochs", row).verdict, unless("", row).verdict
    ('not comparable', 'agrees')
    """
    if not why:
        return row
    if row.counted:
        return replace(row, verdict="not comparable", reason=reason, why=why)
    return replace(row, verdict="shown", note=join_parts(why, row.note))


def unrun(
    key: str, what: str, published: str, why: str, ours: str = "not run", kind: RowKind = "published number",
    reason: Reason = "stand-in",
) -> VerdictRow:  # fmt: skip
    """A published row that cannot be compared, and why."""
    return VerdictRow(key, what, published, ours, kind, "not comparable", reason=reason, why=why)


def _ours(condition: bool | None) -> Verdict:
    return "shown" if condition is None else "holds" if condition else "fails"


def identity(
    key: str, what: str, ours: str, condition: bool, rule: str, note: str = "", published: str = ""
) -> VerdictRow:
    """True by construction: only a fault in the program can break it."""
    return VerdictRow(key, what, published, ours, "by construction", _ours(bool(condition)), note, rule)


def control(
    key: str, what: str, ours: str, condition: bool | None = None, rule: str = "", note: str = ""
) -> VerdictRow:
    """A control of our own."""
    return VerdictRow(key, what, "", ours, "own control", _ours(condition), note, rule)


def beyond(key: str, what: str, ours: str, condition: bool | None = None, rule: str = "", note: str = "") -> VerdictRow:
    """Something the source does not print."""
    return VerdictRow(key, what, "", ours, "beyond the paper", _ours(condition), note, rule)


def join_parts(*parts: str) -> str:
    """The parts that are not empty.

    >>> join_parts("a", "", "b")
    'a; b'
    """
    return "; ".join(part for part in parts if part)


def ranged(values: Sequence[float] | Array, form: str = ".2f", unit: str = "") -> str:
    """The median and the ends.

    >>> ranged([1, 2, 4], unit=" nats")
    '2.00 nats (1.00 to 4.00)'
    """
    return f"{np.median(values):{form}}{unit} ({min(values):{form}} to {max(values):{form}})"


def plus_minus(values: Sequence[float] | Array, form: str = ".3f") -> str:
    """Mean and standard deviation over restarts.

    >>> plus_minus([1, 2, 3]), plus_minus([1], ".1f"), plus_minus([])
    ('2.000 +- 1.000', '1.0 +- 0.0', 'none')
    """
    if not len(values):
        return "none"
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):{form}} +- {deviation:{form}}"
