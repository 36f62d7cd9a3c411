"""Why a published row does not agree: one of a few reasons, and a sentence; and how many restarts would decide it.

Every way to compare (verdicts.py) gives a reason of its own; an exhibit that knows more says so with `because`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.stats import binomtest, norm

from unseam.axes import Array
from unseam_papers.frame.rows import COMPARED, ROW_REASONS, Reason, Verdict, VerdictRow

_MOST = 10_000  # restarts, more than can be trained
_SURE = float(norm.ppf(0.95) + norm.ppf(0.8))  # a one-sided test at 5 % that shows an effect in 80 % of cases
Samples = Sequence[float] | Array


def because(row: VerdictRow, reason: Reason, why: str) -> VerdictRow:
    """The row with this reason, where it does not agree.

    >>> row = VerdictRow("a", "a", "1", "2", "published number", "differs")
    >>> because(row, "slip of the source", "1 does not follow").reason
    'slip of the source'
    """
    return replace(row, reason=reason, why=why) if row.wants_reason else row


def reason_counts(rows: Iterable[VerdictRow]) -> list[tuple[str, str, list[int]]]:
    """Each reason that occurs, what it means, and how many rows are open, differ and cannot be compared for it.

    >>> reason_counts([VerdictRow("a", "a", "1", "2", "published number", "open", reason="few restarts", why="b")])
    [('few restarts', 'more restarts than were trained would decide it', [1, 0, 0])]
    """
    found = [row for row in rows if row.wants_reason]
    counts = {
        name: [sum(row.reason == name and row.verdict == verdict for row in found) for verdict in COMPARED[1:]]
        for name in ROW_REASONS
    }
    return [(name, ROW_REASONS[name], each) for name, each in counts.items() if sum(each)]


def _least(decides: Callable[[int], bool], first: int = 2) -> int | None:
    """The least count, on a grid of 10 % steps, that decides."""
    grid = np.unique(np.geomspace(first, _MOST, 100).round().astype(int))
    return next((int(n) for n in grid if decides(int(n))), None)


def few_numbers(
    samples: Samples, theirs: float, verdict: Callable[[float, float], Verdict], pull: float = 0.0
) -> tuple[Reason, str]:
    """Of a mean: could more of our restarts decide, if mean and spread stay? `theirs` is the other side's variance of
    its mean, `pull` the printed value.

    >>> few_numbers([0.0, 1.0], 0.0, lambda low, high: "agrees" if high < 0.2 else "open", pull=0.5)[0]
    'few restarts'
    >>> few_numbers([0.0, 1.0], 1.0, lambda low, high: "open")[0]
    'spread of the source'
    """
    n, mean = len(samples), float(np.mean(samples)) - pull
    ours = float(np.var(samples, ddof=1)) if n > 1 else 0.0

    def after(count: int) -> Verdict:
        half = float(norm.ppf(0.975)) * float(np.sqrt(ours / count + theirs))
        return verdict(mean - half, mean + half)

    if n < 2:
        return "few restarts", "one restart has no spread"
    needed = _least(lambda count: after(count) != "open", n + 1)
    if needed is None:
        return (
            "spread of the source",
            "its printed deviation, over the restarts it had, leaves the mean too uncertain: "
            f"{_MOST:,} of ours at this mean would not decide it",
        )
    return "few restarts", f"if mean and spread stay, about {needed} restarts decide it ({after(needed)}); here {n}"


def few_pairs(high: Samples, low: Samples) -> str:
    """Of two groups: how many restarts of each show the order in 80 % of cases (Noether's formula).

    >>> few_pairs([1, 2, 3], [0.5, 1.5, 2.5])
    'at the effect seen here about 38 restarts of each show an order in 80 % of cases; here 3 and 3'
    """
    a, b = np.asarray(high, float)[:, None], np.asarray(low, float)[None]
    above = float((a > b).mean() + (a == b).mean() / 2)
    return _told(_SURE**2 / (6 * (above - 0.5) ** 2) if above != 0.5 else np.inf, f"{a.size} and {b.size}", " of each")


def few_of_share(count: int, n: int, above: float = 0.5) -> str:
    """Of a share: how many restarts show that it is above or below, if it stays as it is.

    >>> few_of_share(3, 3)
    'at the share seen here about 5 restarts show it; here 3'
    """
    seen = count / n
    side: Literal["greater", "less"] = "greater" if seen > above else "less"
    needed = None
    if seen != above:
        needed = _least(lambda m: binomtest(round(seen * m), m, above, alternative=side).pvalue < 0.05, n + 1)
    if needed is None:
        return f"the share seen here lies on the limit: {_MOST:,} restarts would show no side; here {n}"
    return f"at the share seen here about {needed} restarts show it; here {n}"


def few_of_trend(rho: float, n: int) -> str:
    """Of a rank correlation: how many points show it in 80 % of cases (Fisher's z).

    >>> few_of_trend(-0.33, 10)
    'at the effect seen here about 56 points show an order in 80 % of cases; here 10'
    """
    z = float(np.arctanh(np.clip(abs(rho), 0.0, 0.999)))
    return _told((_SURE / z) ** 2 + 3 if z else np.inf, str(n), "", "points")


def few_of_t(lead: float, error: float, n: int) -> str:
    """Of a statistic that leads its limit by so many units, with the standard error of n seeds: how many show it.

    >>> few_of_t(1.0, 1.0, 9)
    'at the effect seen here about 56 seeds show an order in 80 % of cases; here 9'
    """
    return _told(n * (_SURE * error / lead) ** 2 if lead else np.inf, str(n), "", "seeds")


def _told(needed: float, here: str, each: str, what: str = "restarts") -> str:
    if needed > _MOST:
        return f"no effect is seen that {_MOST:,} {what}{each} would show; here {here}"
    return (
        f"at the effect seen here about {int(np.ceil(needed))} {what}{each} show an order in 80 % of cases; here {here}"
    )
