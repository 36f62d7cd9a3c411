"""How a row gets its verdict: one policy, printed over every page, and a small function for each way to compare.

A number:    the 95 % interval of (ours - published) inside +- margin: agrees; else without 0: differs; else n is small
An ordering: a one-sided test at 5 % shows it: agrees; does not but could have: differs; could not: n is too small
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, mannwhitneyu, spearmanr, t, wilcoxon

from unseam.axes import Array
from unseam_papers.frame.rows import RowKind, Verdict, VerdictRow, join_parts, plus_minus
from unseam_papers.frame.rows import after_a_look as after_a_look
from unseam_papers.frame.rows import as_kind as as_kind
from unseam_papers.frame.rows import unless as unless

POLICY = (
    "Only rows that compare with something the source prints are counted. The column *published* holds what the source "
    "prints and nothing else.",
    "A *published number* agrees when the 95 % interval of our value minus the published one lies within a margin that "
    "the row states, differs when it does not and leaves out 0, and cannot be compared when it does neither: too few "
    "restarts to tell. The interval is Welch's over restarts where the source prints mean and deviation (its number of "
    "restarts is 10 where it prints none), the central 95 % of our repetitions where it prints one value, and a point "
    "where nothing is random.",
    "A *published ordering* (an order, a direction, or words for which the row states a limit) agrees when a one-sided "
    "test at 5 % shows it, differs when the test does not although it could have with so many restarts, and cannot be "
    "compared when no result could. Words that say there is no effect need an equivalence test: the 95 % interval "
    "within a stated margin.",
    "Neither can be compared after a shorter training than the source's, nor a number on other data or networks; an "
    "ordering that is claimed of all models of a kind is compared on data that stands in, and the row says so. Not to "
    "reject is never to agree.",
    "Not counted: *by construction* (an identity, which only a fault in the program can break), *own control* and "
    "*beyond the paper* (the source prints nothing); they hold, fail, or are only shown.",
)
LEVEL = 0.05
ASSUMED = 10  # restarts of a source that does not print their number
_FEW = "fewer than two restarts: no spread"
Samples = Sequence[float] | Array


def three_way(low: float, high: float, margin: float) -> Verdict:
    """What the interval of a difference says.

    >>> three_way(-0.1, 0.1, 0.2), three_way(0.3, 0.5, 0.2), three_way(-0.1, 0.5, 0.2), three_way(0.05, 0.1, 0.2)
    ('agrees', 'differs', 'not comparable', 'agrees')
    """
    if -margin <= low and high <= margin:
        return "agrees"
    return "differs" if low > 0 or high < 0 else "not comparable"


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
    if len(samples) < 2:
        return VerdictRow(key, what, printed, ours, "published number", "not comparable", note, _FEW)
    low, high = welch(samples, mean, deviation, n or ASSUMED)
    theirs = f"n = {n:g} there" if n else f"n not printed, {ASSUMED} assumed"
    rule = f"Welch's 95 % interval of the difference {low:{form}} to {high:{form}}, margin {margin:g}, {theirs}"
    return VerdictRow(key, what, printed, ours, "published number", three_way(low, high, margin), note, rule)


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

    >>> repeated_value("rate", "rate", 44, [40, 44, 48], margin=10, unit=" %").verdict
    'agrees'
    """
    low, high = central(samples)
    verdict = three_way(low - resolution - value, high + resolution - value, margin)
    ours = f"{np.mean(samples):{form}}{unit} ({low:{form}} to {high:{form}})"
    rule = join_parts(
        f"central 95 % of {len(samples)} repetitions, margin {margin:g}{unit}",
        f"resolution {resolution:.2g}{unit}" if resolution else "",
    )
    return VerdictRow(key, what, f"{value:{form}}{unit}", ours, "published number", verdict, note, rule)


def exact(
    key: str, what: str, published: float, ours: float, margin: float, form: str = ".3g", unit: str = "", note: str = ""
) -> VerdictRow:
    """A printed value against one of ours where nothing is random.

    >>> exact("loss", "loss", 24.5, 24.53, margin=0.05).verdict
    'agrees'
    """
    verdict: Verdict = "agrees" if abs(ours - published) <= margin else "differs"
    rule = f"nothing is random; margin {margin:g}{unit}"
    return VerdictRow(
        key, what, f"{published:{form}}{unit}", f"{ours:{form}}{unit}", "published number", verdict, note, rule
    )


def shown(p: float, least: float) -> Verdict:
    """The verdict of a one-sided test, given the least p that this many restarts can have.

    >>> shown(0.04, 0.01), shown(0.06, 0.01), shown(0.06, 0.06)
    ('agrees', 'differs', 'not comparable')
    """
    if least >= LEVEL:
        return "not comparable"
    return "agrees" if p < LEVEL else "differs"


def _ordered(
    key: str, what: str, published: str, ours: str, p: float, least: float, note: str, test: str
) -> VerdictRow:
    few = "" if least < LEVEL else "too few restarts for any p below 0.05"
    rule = join_parts(f"{test}, p = {p:.2g}", few)
    return VerdictRow(key, what, published, ours, "published ordering", shown(p, least), note, rule)


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
        return VerdictRow(
            key, what, published, "none", "published ordering", "not comparable", note, "no restarts to compare"
        )
    ours = " against ".join(
        f"{name} {np.mean(group):{form}} (n = {len(group)})".strip()
        for name, group in zip(names, (high, low), strict=True)
    )
    least = p_above(np.arange(len(high)) + len(low), np.arange(len(low)))
    p = p_above(high, low)
    return _ordered(key, what, published, ours, p, least, note, "one-sided Mann-Whitney test of the restarts")


def paired(
    key: str, what: str, published: str, high: Samples, low: Samples, form: str = ".2f", note: str = ""
) -> VerdictRow:
    """One value above another in the same restarts.

    >>> paired("above", "a above b", "yes", [4, 5, 6, 7, 8], [0, 1, 2, 3, 5]).verdict
    'agrees'
    """
    difference = np.subtract(high, low)
    p = float(wilcoxon(difference, alternative="greater").pvalue) if difference.any() else 1.0
    above = f"above in {int((difference > 0).sum())} of {len(difference)} restarts"
    ours = f"mean {np.mean(high):{form}} against {np.mean(low):{form}}, {above}"
    test = "one-sided Wilcoxon signed-rank test"
    return _ordered(key, what, published, ours, p, 0.5 ** len(difference), note, test)


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
    least = 1.0 if len(x) < 5 else 0.0
    ours = f"rank correlation {rho:{form}} over {len(x)} points"
    return _ordered(key, what, published, ours, p, least, note, "one-sided test of Spearman's rank correlation")


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
        return VerdictRow(
            key, what, published, "none", "published ordering", "not comparable", note, "no restarts to compare"
        )
    end, sign, side = (below, -1, "below") if below is not None else (above, 1, "above")
    count, n = int((sign * (np.asarray(samples, float) - float(end or 0)) > 0).sum()), len(samples)
    p = float(binomtest(count, n, alternative="greater").pvalue)
    ours = f"median {np.median(samples):{form}}{unit}, {side} {end:g}{unit} in {count} of {n} restarts"
    test = f"one-sided sign test of a median {side} {end:g}{unit} (our limit)"
    return _ordered(key, what, published, ours, p, 0.5**n, note, test)


def share(
    key: str, what: str, published: str, successes: int, n: int, above: float = 0.5, note: str = ""
) -> VerdictRow:
    """It happens in more than this share of the restarts.

    >>> share("most", "succeeds", "mostly", 9, 10).verdict
    'agrees'
    """
    p, least = (float(binomtest(k, n, above, alternative="greater").pvalue) for k in (successes, n))
    ours, test = f"{successes} of {n} restarts", f"one-sided binomial test of a share above {above:g}"
    return _ordered(key, what, published, ours, p, least, note, test)


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
    if len(samples) < 2:
        return VerdictRow(key, what, published, ours, "published ordering", "not comparable", note, _FEW)
    low, high = welch(samples, expected, 0.0, np.inf)
    rule = (
        f"equivalence: the 95 % interval of the mean, {low + expected:{form}} to {high + expected:{form}}, within "
        f"{expected:{form}} +- {margin:{form}}{unit}"
    )
    return VerdictRow(key, what, published, ours, "published ordering", three_way(low, high, margin), note, rule)


def unrun(
    key: str, what: str, published: str, why: str, ours: str = "not run", kind: RowKind = "published number"
) -> VerdictRow:
    """A published row that cannot be compared, and why."""
    return VerdictRow(key, what, published, ours, kind, "not comparable", why)


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
