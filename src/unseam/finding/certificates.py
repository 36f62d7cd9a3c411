"""Why a factor has the axis it has: every clue that was tested, which one decides, and under which assumption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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
        said = f"{self.clue} {'decides' if self.decides else 'does not decide'}"
        said += " and would turn it" if self.decides and self.rotates else ""
        return f"{said} ({', '.join(words)})" if words else said


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
