"""What `match` returns: every pair of sets matched, what chance gives, and which directions all sets have."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.matching.coverage import coverage
from unseam.matching.groups import Group

_QUANTILE = 0.99  # of the values by chance: what lies above is more than chance
Of = Literal["directions", "codes"]


class MatchedPair(NamedTuple):
    """Two sets matched: for each direction of the first, its partner in the second (-1: none) and their similarity."""

    one: int
    two: int
    values: Array  # (A,)
    partners: Array  # (A,)
    random: Array  # values that random axes reach
    negatives: Array  # values that directions of the same data reach which are not partners
    loss: float = 0.0  # no matching has a mean value that is larger by more than this
    groups: tuple[Group, ...] = ()

    @property
    def chance(self) -> float:
        """Mean matched value of random axes."""
        return float(self.random.mean()) if len(self.random) else np.nan

    @property
    def limit(self) -> float:
        """99 % of the values of random axes are below."""
        return upper(self.random)

    @property
    def hard_chance(self) -> float:
        """Mean matched value of hard negatives; NaN where there are none."""
        return float(self.negatives.mean()) if len(self.negatives) else np.nan

    @property
    def hard_limit(self) -> float:
        """99 % of the values of hard negatives are below; NaN where there are none."""
        return upper(self.negatives)

    def same(self, at: float) -> Array:  # (A,) bool
        """Directions that are at `at` or more and above what 99 % of random axes reach."""
        return (self.values >= at) & (self.values > self.limit)

    def to_json(self, at: float) -> dict[str, Any]:
        matched = self.values[self.partners >= 0]
        return {
            "one": self.one,
            "two": self.two,
            "mean": float(self.values.mean()),
            "loss": self.loss,
            "chance": self.chance,
            "limit": self.limit,
            "hard_chance": self.hard_chance,
            "hard_limit": self.hard_limit,
            "share": float(self.same(at).mean()),
            "above_chance": float((self.values > self.limit).mean()),
            "above_hard_negatives": float((self.values > self.hard_limit).mean()) if len(self.negatives) else None,
            "coverage": coverage(matched, self.negatives),
            "groups": [group.to_json() for group in self.groups],
            "partners": self.partners,
            "values": self.values,
        }


def upper(values: Array) -> float:
    """The value that 99 % are below; NaN of none.

    >>> upper(np.arange(101.0)), upper(np.zeros(0))
    (99.0, nan)
    """
    return float(np.quantile(values, _QUANTILE)) if len(values) else np.nan


@dataclass(frozen=True)
class Match:
    """Every pair of sets matched, and which directions of the first all the others have."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    of: Of
    signed: bool
    at: float
    method: str
    pairs: tuple[MatchedPair, ...]

    @property
    def stable(self) -> Array:  # (A,) bool
        """Directions of the first set that every other has, at `at` or more and above chance."""
        return np.all([pair.same(self.at) for pair in self.pairs if pair.one == 0], axis=0)

    def to_json(self) -> dict[str, Any]:
        """The document that `unseam match --json` prints."""
        return {
            "sets": [{"name": n, "size": s} for n, s in zip(self.names, self.sizes, strict=True)],
            "of": self.of,
            "signed": self.signed,
            "at": self.at,
            "method": self.method,
            "stable": float(self.stable.mean()),
            "pairs": [pair.to_json(self.at) for pair in self.pairs],
        }

    def table(self) -> Any:
        """A DataFrame with a row for each direction of the first set: its partner in each other, and the similarity."""
        import pandas

        columns: dict[str, Any] = {"direction": np.arange(self.sizes[0]), "stable": self.stable}
        for pair in self.pairs:
            if pair.one == 0:
                columns |= {f"{self.names[pair.two]}": pair.partners, f"{self.names[pair.two]} value": pair.values}
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        """One line: the matched values fill pages."""
        sets = " and ".join(f"{name} ({size})" for name, size in zip(self.names, self.sizes, strict=True))
        return f"Match({self.of} of {sets}: {self.stable.mean():.0%} in all)"

    def _repr_html_(self) -> str:
        """A row for each pair of sets, for notebooks."""
        import pandas

        rows = [{"sets": f"{self.names[p.one]} - {self.names[p.two]}", **p.to_json(self.at)} for p in self.pairs]
        table = pandas.DataFrame(rows)[["sets", "mean", "chance", "hard_chance", "share", "above_chance"]]
        last = str(self).splitlines()[-1]
        return f"{table.to_html(index=False, float_format='{:.3f}'.format, escape=True)}<p>{escape(last)}</p>"

    def __str__(self) -> str:
        what = "|rank correlation|" if self.of == "codes" else "cosine" if self.signed else "|cosine|"
        sizes = " and ".join(f"{size:,}" for size in sorted(set(self.sizes)))
        lines = [f"matched {what} of {sizes} {self.of}: {self.method}"]
        for pair in self.pairs:
            lines += self._lines(pair)
        lines.append(
            f"stable: {self.stable.mean():.1%} of {self.names[0]}'s directions are in every other set, "
            f"at {self.at:g} or more and above chance"
        )
        return "\n".join(lines)

    def _lines(self, pair: MatchedPair) -> list[str]:
        """The report on a pair: how many are the same, quality over coverage, chance, groups."""
        found = pair.to_json(self.at)
        level = f"at {self.at:g} or more" if self.at > pair.limit else (
            f"above {pair.limit:.3f} (random axes reach {self.at:g}, so their limit counts instead)"
        )  # fmt: skip
        best = ", ".join(
            f"{value:.3f} of {'all' if top == 'all' else f'the best {int(top):,}'}"
            for top, value in found["coverage"]["top"].items()
            if value is not None
        )
        hard = (
            f"; other directions of the same data {pair.hard_chance:.3f} (99 % below {pair.hard_limit:.3f}, "
            f"{found['above_hard_negatives']:.1%} are above)"
            if len(pair.negatives)
            else ""
        )
        names = f"{self.names[pair.one]} - {self.names[pair.two]}"
        lines = [
            f"  {names}: {found['share']:.1%} {level}; mean {best or 'of none'}",
            f"    by chance: random axes {pair.chance:.3f} (99 % below {pair.limit:.3f}, "
            f"{found['above_chance']:.1%} are above){hard}",
        ]
        if pair.loss:
            lines.append(f"    the largest possible mean is at most {pair.loss:.4f} higher")
        if pair.groups:
            kinds = Counter(group.kind for group in pair.groups)
            lines.append("    groups: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
        return lines
