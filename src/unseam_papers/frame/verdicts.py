"""How a row gets its verdict: one policy, printed over every page, and a small function for each way to compare.

A number:    the 95 % interval of (ours - published) inside +- margin: agrees; else without 0: differs; else open
An ordering: a one-sided test at 5 % shows it: agrees; the same test shows the opposite: differs; neither: open
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest, mannwhitneyu, spearmanr, t, wilcoxon

from unseam.axes import Array
from unseam_papers.frame.reasons import Samples, few_numbers, few_of_share, few_of_trend, few_pairs
from unseam_papers.frame.reasons import because as because
from unseam_papers.frame.rows import Verdict, VerdictRow, join_parts, plus_minus
from unseam_papers.frame.rows import after_a_look as after_a_look
from unseam_papers.frame.rows import as_kind as as_kind
from unseam_papers.frame.rows import beyond as beyond
from unseam_papers.frame.rows import control as control
from unseam_papers.frame.rows import identity as identity
from unseam_papers.frame.rows import unless as unless
from unseam_papers.frame.rows import unrun as unrun

LEVEL = 0.05
ASSUMED = 10  # restarts of a source that does not print their number
FEWEST = 5  # restarts that a mean and deviation need; with three, the spread itself is hardly known
_FEW = "fewer than two restarts: no spread"
_NONE = "no restarts to compare"
_SHOWN = "shown at 5 %"
_OUTSIDE = "the interval leaves out what is printed, by more than the margin"
_OPPOSITE = "the same test shows the opposite at 5 %"


def three_way(low: float, high: float, margin: float, deviation: float = 0.0) -> Verdict:
    """What the interval of a difference says; one that contains 0 may also lie within a printed deviation.

    >>> three_way(-0.1, 0.1, 0.2), three_way(0.3, 0.5, 0.2), three_way(-0.1, 0.5, 0.2), three_way(0.05, 0.1, 0.2)
    ('agrees', 'differs', 'open', 'agrees')
    >>> three_way(-0.1, 0.25, 0.2, deviation=0.3), three_way(0.01, 0.25, 0.2, deviation=0.3)
    ('agrees', 'differs')
    """
    if -margin <= low and high <= margin:
        return "agrees"
    if low > 0 or high < 0:
        return "differs"
    return "agrees" if -deviation <= low and high <= deviation else "open"


def welch(samples: Samples, mean: float, deviation: float, n: float) -> tuple[float, float]:
    """Ends of the 95 % interval of mean(samples) - mean.

    >>> [round(end, 3) for end in welch([1.0, 2.0, 3.0], 0.0, 0.0, np.inf)]  # t interval with 2 degrees of freedom
    [-0.484, 4.484]
    """
    a, b = np.var(samples, ddof=1) / len(samples), deviation**2 / n
    d, error = float(np.mean(samples)) - mean, float(np.sqrt(a + b))
    if not error:
        return d, d
    freedom = (a + b) ** 2 / (a**2 / (len(samples) - 1) + (b**2 / (n - 1) if b else 0))
    half = float(t.ppf(1 - LEVEL / 2, freedom)) * error
    return d - half, d + half


def central(samples: Samples, share: float = 1 - LEVEL) -> tuple[float, float]:
    """The ends of the central share of the samples.

    >>> central([0, 1, 2, 3, 4], share=0.5)
    (1.0, 3.0)
    """
    low, high = np.quantile(np.asarray(samples, float), [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


def number(
    key: str,
    what: str,
    published: tuple[float, float, float | None],  # mean, deviation, restarts (None: not printed)
    samples: Samples,
    margin: float,
    form: str = ".2f",
    note: str = "",
) -> VerdictRow:
    """A printed mean and deviation against our restarts.

    >>> number("ds", "DS", (0.5, 0.1, 10), [0.5] * 5, margin=0.1).verdict
    'agrees'
    """
    mean, deviation, n = published
    printed, ours = f"{mean:{form}} +- {deviation:{form}}", f"{plus_minus(samples, form)} (n = {len(samples)})"
    widest = max(margin, deviation)
    within = f"within {margin:g}" + (f", or {widest:g} around 0" if widest > margin else "")
    if len(samples) < 2:
        row = VerdictRow(key, what, printed, ours, "published number", "open", note, _FEW, within)
        return because(row, "few restarts", _FEW)
    low, high = welch(samples, mean, deviation, n or ASSUMED)
    theirs = f"n = {n:g} there" if n else f"n not printed, {ASSUMED} assumed"
    rule = f"Welch's 95 % interval of the difference {low:{form}} to {high:{form}}, {theirs}"
    verdict, few = enough(three_way(low, high, margin, deviation), len(samples))
    row = VerdictRow(key, what, printed, ours, "published number", verdict, note, join_parts(rule, few), within)
    if verdict == "differs" or few:
        return because(row, "few restarts", few) if few else because(row, "against the source", _OUTSIDE)
    spread = deviation**2 / (n or ASSUMED)
    return because(row, *few_numbers(samples, spread, partial(three_way, margin=margin, deviation=deviation), mean))


def enough(verdict: Verdict, n: int) -> tuple[Verdict, str]:
    """A number of fewer than five restarts may differ, but it cannot agree.

    >>> enough("agrees", 5), enough("agrees", 4)[0], enough("differs", 3)
    (('agrees', ''), 'open', ('differs', ''))
    """
    return (
        ("open", f"fewer than {FEWEST} restarts cannot agree") if verdict == "agrees" and n < FEWEST else (verdict, "")
    )


def repeated_value(
    key: str,
    what: str,
    value: float,
    samples: Samples,
    margin: float,
    unit: str = "",
    form: str = ".0f",
    resolution: float = 0.0,  # of the printed value, or of what it counts
    note: str = "",
) -> VerdictRow:
    """One printed value against our repetitions of the same thing.

    >>> repeated_value("rate", "rate", 44, [40, 42, 44, 46, 48], margin=10, unit=" %").verdict
    'agrees'
    """
    low, high = central(samples)
    verdict, few = enough(three_way(low - resolution - value, high + resolution - value, margin), len(samples))
    ours = f"{np.mean(samples):{form}}{unit} ({low:{form}} to {high:{form}})"
    rule = join_parts(
        f"central 95 % of {len(samples)} repetitions",
        f"resolution {resolution:.2g}{unit}" if resolution else "",
        few,
    )
    within = f"within {margin:g}{unit}"
    row = VerdictRow(key, what, f"{value:{form}}{unit}", ours, "published number", verdict, note, rule, within)
    if verdict == "differs":
        return because(row, "against the source", _OUTSIDE)
    wide = "one repetition spreads farther than the margin; more of them do not narrow that"
    return because(row, *(("few restarts", few) if few else ("spread of the source", wide)))


def attained(row: VerdictRow, value: float, settings: Sequence[Samples], best: int) -> VerdictRow:
    """The row of a number that open settings move: do they give it, and does the one that gives most of the table?

    >>> row = VerdictRow("a", "rate", "44 %", "20 %", "published number", "differs")
    >>> attained(row, 44, [[40, 48], [0, 2]], 0).verdict, attained(row, 44, [[40, 48], [0, 2]], 1).verdict
    ('agrees', 'open')
    >>> attained(row, 44, [[0, 2], [0, 3]], 1).verdict
    'differs'
    """
    gives = [low <= value <= high for low, high in map(central, settings)]
    verdict: Verdict = "agrees" if gives[best] else "open" if any(gives) else "differs"
    low, high = central(settings[best])
    rule = join_parts(
        row.rule,
        f"{sum(gives)} of {len(gives)} settings that the source leaves open give it (central 95 % of repetitions); the "
        f"one that gives most of the table: {np.mean(settings[best]):.0f} ({low:.0f} to {high:.0f})",
    )
    best_limit = "given by the open setting that fits the table best"
    row = replace(row, verdict=verdict, rule=rule, limit=best_limit, reason="", why="")
    if any(gives):
        return because(row, "not printed", "another setting that the source leaves open gives it, not the best one")
    return because(row, "against the source", "none of the settings that the source leaves open gives it")


def exact(
    key: str, what: str, published: float, ours: float, margin: float, form: str = ".3g", unit: str = "", note: str = ""
) -> VerdictRow:
    """A printed value against one of ours where nothing is random.

    >>> exact("loss", "loss", 24.5, 24.53, margin=0.05).verdict
    'agrees'
    """
    verdict: Verdict = "agrees" if abs(ours - published) <= margin else "differs"
    printed, found = f"{published:{form}}{unit}", f"{ours:{form}}{unit}"
    within = f"within {margin:g}{unit}"
    row = VerdictRow(key, what, printed, found, "published number", verdict, note, "nothing is random", within)
    return because(row, "against the source", "nothing is random, and the two are not the same")


def shown(p: float, opposite: float) -> Verdict:
    """The verdict of a one-sided test, given its p and that of the same test of the opposite.

    >>> shown(0.04, 0.97), shown(0.97, 0.04), shown(0.06, 0.95)
    ('agrees', 'differs', 'open')
    """
    return "agrees" if p < LEVEL else "differs" if opposite < LEVEL else "open"


def _leaning(p: float, opposite: float) -> str:
    """To which side a test without a result leans.

    >>> _leaning(0.2, 0.8), _leaning(0.8, 0.2), _leaning(0.01, 0.99), _leaning(1.0, 1.0)
    ('leans towards it', 'leans against it', '', 'leans to neither side')
    """
    if shown(p, opposite) != "open":
        return ""
    return f"leans {'towards' if p < opposite else 'against'} it" if p != opposite else "leans to neither side"


def _ordered(
    key: str, what: str, published: str, ours: str, p: tuple[float, float], note: str, test: str, limit: str = _SHOWN,
    least: float = 0.0, needs: str = "", words: bool = False,
) -> VerdictRow:  # fmt: skip
    """A row of a one-sided test; p is that of the ordering and that of its opposite. `needs`: how many restarts would
    decide; `words`: the source prints words and the limit is ours."""
    few = "" if least < LEVEL else "too few restarts for any p below 0.05"
    rule = join_parts(f"{test}, p = {p[0]:.2g} (opposite {p[1]:.2g})", _leaning(*p), few)
    row = VerdictRow(key, what, published, ours, "published ordering", shown(*p), note, rule, limit)
    if row.verdict != "differs":
        return because(row, "few restarts", needs or few)
    if words:
        return because(row, "our limit", f"the source prints words; by our limit ({limit}) {_OPPOSITE}")
    return because(row, "against the source", _OPPOSITE)


def p_above(high: Samples, low: Samples) -> float:
    """p of "`high` is not above `low`": one-sided Mann-Whitney test of the restarts.

    >>> round(p_above([3, 4, 5], [0, 1, 2]), 3)
    0.05
    """
    return float(mannwhitneyu(high, low, alternative="greater").pvalue)


def ordering(
    key: str,
    what: str,
    published: str,
    high: Samples,
    low: Samples,
    form: str = ".2f",
    names: tuple[str, str] = ("", ""),
    note: str = "",
) -> VerdictRow:
    """One group of restarts above another.

    >>> ordering("above", "a above b", "yes", [4, 5, 6, 7], [0, 1, 2, 3]).verdict
    'agrees'
    """
    if not (len(high) and len(low)):
        row = VerdictRow(key, what, published, "none", "published ordering", "not comparable", note, _NONE, _SHOWN)
        return because(row, "few restarts", _NONE)
    ours = " against ".join(
        f"{name} {np.mean(group):{form}} (n = {len(group)})".strip()
        for name, group in zip(names, (high, low), strict=True)
    )
    least = p_above(np.arange(len(high)) + len(low), np.arange(len(low)))
    p, test = (p_above(high, low), p_above(low, high)), "one-sided Mann-Whitney test of the restarts"
    return _ordered(key, what, published, ours, p, note, test, least=least, needs=few_pairs(high, low))


def _p_paired(difference: Array) -> float:
    """p of "these differences are not above 0"; 1 where all are 0."""
    return float(wilcoxon(difference, alternative="greater").pvalue) if difference.any() else 1.0


def paired(
    key: str, what: str, published: str, high: Samples, low: Samples, form: str = ".2f", note: str = ""
) -> VerdictRow:
    """One value above another in the same restarts.

    >>> paired("above", "a above b", "yes", [4, 5, 6, 7, 8], [0, 1, 2, 3, 5]).verdict
    'agrees'
    """
    difference = np.subtract(high, low)
    p, opposite = (_p_paired(each) for each in (difference, -difference))
    above = f"above in {int((difference > 0).sum())} of {len(difference)} restarts"
    ours = f"mean {np.mean(high):{form}} against {np.mean(low):{form}}, {above}"
    test = "one-sided Wilcoxon signed-rank test"
    least, needs = 0.5 ** len(difference), few_of_share(int((difference > 0).sum()), len(difference))
    return _ordered(key, what, published, ours, (p, opposite), note, test, least=least, needs=needs)


def p_trend(x: Samples, y: Samples, sign: int) -> tuple[float, float]:
    """Spearman's rank correlation and its one-sided p for the given sign; 0 and 1 where one of them does not vary.

    >>> p_trend([1, 2, 3], [5, 5, 5], 1)
    (0.0, 1.0)
    """
    if len(x) < 3 or not np.ptp(x) or not np.ptp(y):
        return 0.0, 1.0
    found: Any = spearmanr(x, y, alternative="greater" if sign > 0 else "less")
    return float(found.statistic), float(found.pvalue)


def trend(
    key: str, what: str, published: str, x: Samples, y: Samples, sign: int, form: str = ".2f", note: str = ""
) -> VerdictRow:
    """y rises (sign 1) or falls (sign -1) with x.

    >>> trend("falls", "y falls", "falls", [1, 2, 3, 4, 5], [9, 7, 5, 4, 1], -1).verdict
    'agrees'
    """
    rho, p = p_trend(x, y, sign)
    opposite, few = p_trend(x, y, -sign)[1], len(x) < 5  # SciPy's p of four points is no more than a guess
    ours = f"rank correlation {rho:{form}} over {len(x)} points"
    test, both = "one-sided test of Spearman's rank correlation", (1.0, 1.0) if few else (p, opposite)
    needs = "fewer than five points" if few else few_of_trend(rho, len(x))
    return _ordered(key, what, published, ours, both, note, test, least=float(few), needs=needs)


def limit(
    key: str,
    what: str,
    published: str,
    samples: Samples,
    below: float | None = None,
    above: float | None = None,
    form: str = ".2f",
    unit: str = "",
    note: str = "",
) -> VerdictRow:
    """Words for which we set a limit: the median over restarts lies below, or above, it.

    >>> limit("aligned", "angle", "aligns perfectly", [0.1] * 5, below=1.0).verdict
    'agrees'
    """
    if not len(samples):
        row = VerdictRow(key, what, published, "none", "published ordering", "not comparable", note, _NONE)
        return because(row, "few restarts", _NONE)
    end, sign, side = (below, -1, "below") if below is not None else (above, 1, "above")
    count, n = int((sign * (np.asarray(samples, float) - float(end or 0)) > 0).sum()), len(samples)
    ours = f"median {np.median(samples):{form}}{unit}, {side} {end:g}{unit} in {count} of {n} restarts"
    test, words = "one-sided sign test of the median", f"median {side} {end:g}{unit}"
    needs = few_of_share(count, n)
    return _ordered(key, what, published, ours, _p_share(count, n), note, test, words, 0.5**n, needs, words=True)


def _p_share(count: int, n: int, above: float = 0.5) -> tuple[float, float]:
    """p of "a share above this one" and of "a share below it".

    >>> _p_share(5, 5), _p_share(0, 5)
    ((0.03125, 1.0), (1.0, 0.03125))
    """
    more, less = (float(binomtest(count, n, above, alternative=side).pvalue) for side in ("greater", "less"))
    return more, less


def share(
    key: str, what: str, published: str, successes: int, n: int, above: float = 0.5, note: str = ""
) -> VerdictRow:
    """It happens in more than this share of the restarts.

    >>> share("most", "succeeds", "mostly", 9, 10).verdict
    'agrees'
    """
    ours, test, words = f"{successes} of {n} restarts", "one-sided binomial test", f"in more than {above:.0%} of them"
    least = _p_share(n, n, above)[0]
    p, needs = _p_share(successes, n, above), few_of_share(successes, n, above)
    return _ordered(key, what, published, ours, p, note, test, words, least, needs, words=True)


def alike(
    key: str,
    what: str,
    published: str,
    samples: Samples,
    expected: float,
    margin: float,
    form: str = ".2f",
    unit: str = "",
    note: str = "",
) -> VerdictRow:
    """Words that say "random", "the same" or "no effect": the mean is shown to lie near what they imply.

    >>> alike("chance", "DtO", "random", [0.5, 0.6, 0.5, 0.6], 0.55, margin=0.1).verdict
    'agrees'
    """
    ours = f"{plus_minus(samples, form)}{unit} (n = {len(samples)})"
    within = f"within {expected:{form}} +- {margin:{form}}{unit}"
    if len(samples) < 2:
        row = VerdictRow(key, what, published, ours, "published ordering", "open", note, _FEW, within)
        return because(row, "few restarts", _FEW)
    low, high = welch(samples, expected, 0.0, np.inf)
    rule = f"equivalence: the 95 % interval of the mean is {low + expected:{form}} to {high + expected:{form}}{unit}"
    row = VerdictRow(key, what, published, ours, "published ordering", three_way(low, high, margin), note, rule, within)
    if row.verdict == "differs":
        return because(row, "our limit", f"the source prints words; {_OUTSIDE}, which is ours ({within})")
    return because(row, *few_numbers(samples, 0.0, partial(three_way, margin=margin), expected))
