"""The verdict policy at both sides of every threshold."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from unseam.errors import BadInput
from unseam_papers.frame.rows import VerdictRow, after_a_look, as_kind, counts, keyed, overall, unless
from unseam_papers.frame.verdicts import (
    alike,
    attained,
    because,
    beyond,
    central,
    control,
    exact,
    identity,
    limit,
    number,
    ordering,
    p_above,
    p_trend,
    paired,
    repeated_value,
    share,
    shown,
    three_way,
    trend,
    unrun,
    welch,
)


def row(verdict="agrees", kind="published number", key="a"):
    return VerdictRow(key, "what", "1" if kind.startswith("published") else "", "1", kind, verdict)


def test_only_published_rows_are_counted():
    others = [row("fails", "own control"), row("fails", "by construction"), row("fails", "beyond the paper")]
    some = [row("agrees"), row("differs"), row("differs"), row("open"), row("not comparable"), *others]
    assert counts(some) == (1, 1, 2, 1)
    assert overall([row("agrees"), row("not comparable"), *others]) == "agrees"
    assert overall([row("agrees"), row("differs", "published ordering")]) == "differs"
    assert overall([row("not comparable"), row("open"), *others]) == "open"
    assert overall([row("not comparable"), *others]) == overall(others) == "not comparable"


def test_kind_and_verdict_belong_together():
    for kind, verdict in (("own control", "agrees"), ("published number", "holds"), ("a guess", "agrees")):
        with pytest.raises(BadInput, match="known: published number: agrees, open, differs, not comparable"):
            row(verdict, kind)
    with pytest.raises(BadInput, match="prints none"):
        VerdictRow("a", "what", "", "1", "published ordering", "agrees")
    with pytest.raises(BadInput, match="two rows have the key 'a'"):
        keyed([row(), row()])


def test_rows_change_their_kind_openly():
    pairs = (("agrees", "holds"), ("open", "open"), ("differs", "fails"), ("not comparable", "shown"))
    for verdict, other in pairs:
        changed = as_kind(row(verdict), "own control")
        assert (changed.verdict, changed.published, changed.note) == (other, "", "expected: 1")
    assert unless("5 of 400 epochs", row()).verdict == "not comparable"
    assert unless("5 of 400 epochs", row("holds", "own control")).verdict == "shown"
    assert unless("", row()) == row()
    assert after_a_look(row(), "too slow").rule == "fixed after a look at results: too slow"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.2, 0.2, "agrees"),
        (-0.201, 0.2, "open"),
        (-0.2, 0.201, "open"),
        (0.1, 0.19, "agrees"),  # a difference that is shown but lies within the margin
        (0.1, 0.21, "differs"),
        (-0.21, -0.1, "differs"),
        (-0.001, 0.9, "open"),
    ],
)
def test_an_interval_of_a_difference(low, high, verdict):
    assert three_way(low, high, 0.2) == verdict


def test_a_printed_deviation_widens_the_margin_of_an_interval_with_0_alone():
    assert three_way(-0.29, 0.29, 0.1, deviation=0.3) == "agrees"
    assert three_way(-0.29, 0.31, 0.1, deviation=0.3) == "open"
    assert three_way(0.01, 0.2, 0.1, deviation=0.3) == "differs"  # as without it: nothing moves away from differs
    assert three_way(0.01, 0.09, 0.1, deviation=0.0) == "agrees"
    printed, near = (0.5, 0.3, None), [0.2, 0.8, 0.5, 0.4, 0.6] * 8
    assert number("a", "DS", printed, near, margin=0.1).verdict == "agrees"
    assert number("a", "DS", (0.5, 0.05, None), near, margin=0.05).verdict == "open"
    assert number("a", "DS", printed, near, margin=0.1).limit == "within 0.1, or 0.3 around 0"


def test_fewer_than_five_restarts_may_differ_but_not_agree():
    assert number("a", "DS", (0.5, 0.0, 10), [0.5] * 4, margin=0.1).verdict == "open"
    assert number("a", "DS", (0.5, 0.0, 10), [0.5] * 5, margin=0.1).verdict == "agrees"
    assert number("a", "DS", (0.9, 0.0, 10), [0.5] * 4, margin=0.1).verdict == "differs"
    assert repeated_value("a", "rate", 44, [43, 44, 45], margin=10).verdict == "open"
    assert repeated_value("a", "rate", 84, [43, 44, 45], margin=10).verdict == "differs"


def test_a_number_that_open_settings_move():
    first = VerdictRow("a", "rate", "44 %", "20 %", "published number", "differs", rule="old")
    settings = [np.arange(40, 61), np.arange(0, 21)]
    verdicts = [attained(first, value, settings, best).verdict for value in (45, 15, 30) for best in (0, 1)]
    assert verdicts == ["agrees", "open", "open", "agrees", "differs", "differs"]
    changed = attained(first, 45, settings, 1)
    assert "1 of 2 settings" in changed.rule
    assert changed.rule.startswith("old; ")


def test_the_interval_is_that_of_welch():
    a, b = np.random.default_rng(0).normal(size=7), np.random.default_rng(1).normal(2, 3, size=12)
    expected = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert welch(a, b.mean(), b.std(ddof=1), 12) == pytest.approx((expected.low, expected.high))
    assert welch([0.5, 0.5], 0.25, 0.0, 10) == (0.25, 0.25)


def test_a_number_needs_enough_restarts_to_agree():
    near = [0.45, 0.55] * 20
    assert number("a", "DS", (0.5, 0.1, 40), near, margin=0.1).verdict == "agrees"
    assert number("a", "DS", (0.5, 0.1, 40), near, margin=0.03).verdict == "agrees"  # by its deviation
    assert number("a", "DS", (0.5, 0.01, 40), near, margin=0.01).verdict == "open"
    assert number("a", "DS", (0.5, 0.1, 40), near[:2], margin=0.1).verdict == "open"
    assert number("a", "DS", (0.7, 0.1, 40), near, margin=0.1).verdict == "differs"
    assert number("a", "DS", (0.5, 0.1, 40), [0.5], margin=0.1).verdict == "open"
    assumed = number("a", "DS", (0.5, 0.1, None), near, margin=0.1)
    assert assumed.published == "0.50 +- 0.10"
    assert "n not printed, 10 assumed" in assumed.rule
    assert assumed.limit == "within 0.1"
    assert "(n = 40)" in assumed.ours


def test_one_printed_value_against_the_central_95_per_cent():
    assert central(range(101)) == pytest.approx((2.5, 97.5))
    verdicts = {
        value: repeated_value("a", "rate", value, range(101), margin=50).verdict for value in (47.4, 47.6, 52.4, 52.6)
    }
    assert verdicts == {47.4: "open", 47.6: "agrees", 52.4: "agrees", 52.6: "open"}
    assert repeated_value("a", "rate", 97.4, range(101), margin=50).verdict == "open"  # inside, but says little
    assert repeated_value("a", "rate", 97.6, range(101), margin=50).verdict == "differs"
    assert repeated_value("a", "rate", 97.6, range(101), margin=50, resolution=0.2).verdict == "open"


def test_a_value_without_chance():
    assert exact("a", "loss", 24.5, 24.549, margin=0.05).verdict == "agrees"
    assert exact("a", "loss", 24.5, 24.551, margin=0.05).verdict == "differs"


def test_an_ordering_is_shown_at_5_per_cent_or_its_opposite_or_neither():
    assert (shown(0.049, 0.951), shown(0.051, 0.949)) == ("agrees", "open")
    assert (shown(0.951, 0.049), shown(0.949, 0.051)) == ("differs", "open")
    above, below = [3.0, 5, 6, 8, 9], [0.0, 1, 2, 4, 7]
    assert 0.04 < p_above(above, below) < 0.05
    assert ordering("a", "x", "yes", above, below).verdict == "agrees"
    above[0] = -1.0
    assert 0.05 < p_above(above, below) < 0.4
    leaning = ordering("a", "x", "yes", above, below)
    assert leaning.verdict == "open"
    assert "leans towards it" in leaning.rule
    assert "leans against it" in ordering("a", "x", "yes", below, above).rule
    assert ordering("a", "x", "yes", [0, 1, 2, 3], [4, 5, 6, 7]).verdict == "differs"
    few = ordering("a", "x", "yes", [3, 4, 5], [0, 1, 2])  # p is 0.05 at best
    assert few.verdict == "open"
    assert "too few restarts" in few.rule
    assert ordering("a", "x", "yes", [], [1.0]).verdict == "not comparable"
    assert (
        ordering("a", "x", "yes", [4, 5, 6], [1, 2, 3], names=("A:", "B:")).ours
        == "A: 5.00 (n = 3) against B: 2.00 (n = 3)"
    )


def test_pairs_are_compared_restart_by_restart():
    base = np.arange(5) * 10.0
    assert paired("a", "x", "yes", np.add(base, [1, 2, 3, 4, 5]), base).verdict == "agrees"
    assert paired("a", "x", "yes", np.add(base, [1, 2, 3, 4, -5]), base).verdict == "open"
    assert paired("a", "x", "yes", base, np.add(base, [1, 2, 3, 4, 5])).verdict == "differs"
    assert paired("a", "x", "yes", base[:4] + 1, base[:4]).verdict == "open"
    assert paired("a", "x", "yes", base, base).verdict == "open"


def test_a_trend_has_a_sign_and_needs_points_that_vary():
    x = [1, 2, 3, 4, 5]
    assert trend("a", "x", "falls", x, [5, 4, 3, 2, 1], -1).verdict == "agrees"
    assert trend("a", "x", "rises", x, [5, 4, 3, 2, 1], 1).verdict == "differs"
    assert trend("a", "x", "falls", x, [2, 2, 2, 2, 2], -1).verdict == "open"
    assert trend("a", "x", "falls", x[:4], [4, 3, 2, 1], -1).verdict == "open"
    rho, p = p_trend(x, [1, 2, 5, 3, 4], 1)  # rho = 0.7
    assert rho == pytest.approx(0.7)
    assert 0.05 < p < 0.15
    assert trend("a", "x", "rises", x, [1, 2, 5, 3, 4], 1).verdict == "open"


def test_a_limit_is_a_sign_test_of_the_median():
    low, high = [0.5], [1.5]
    assert limit("a", "x", "perfectly", low * 9 + high, below=1.0).verdict == "agrees"  # p = 0.011
    assert limit("a", "x", "perfectly", low * 8 + high * 2, below=1.0).verdict == "open"  # p = 0.055
    assert limit("a", "x", "perfectly", low + high * 9, below=1.0).verdict == "differs"
    assert limit("a", "x", "perfectly", low, below=1.0).limit == "median below 1"
    assert limit("a", "x", "perfectly", low * 5, below=1.0).verdict == "agrees"
    assert limit("a", "x", "perfectly", low * 4, below=1.0).verdict == "open"
    assert limit("a", "x", "almost 1", high * 5, above=1.0).verdict == "agrees"
    assert limit("a", "x", "almost 1", low * 5, above=1.0).verdict == "differs"
    assert limit("a", "x", "at 0", [-0.5] * 5, below=0.0).verdict == "agrees"
    assert limit("a", "x", "almost 1", [], above=1.0).verdict == "not comparable"


def test_a_share_of_restarts():
    assert share("a", "x", "mostly", 9, 10).verdict == "agrees"
    assert share("a", "x", "mostly", 8, 10).verdict == "open"
    assert share("a", "x", "mostly", 1, 10).verdict == "differs"
    assert share("a", "x", "nearly all", 10, 10, above=0.9).verdict == "open"
    assert share("a", "x", "nearly all", 40, 40, above=0.9).verdict == "agrees"


def test_no_effect_must_be_shown():
    spread = [0.45, 0.65] * 10  # half-width 0.048
    assert alike("a", "x", "random", spread, 0.55, margin=0.05).verdict == "agrees"
    assert alike("a", "x", "random", spread, 0.55, margin=0.04).verdict == "open"
    assert alike("a", "x", "random", spread[:4], 0.55, margin=0.05).verdict == "open"
    assert alike("a", "x", "random", spread, 0.75, margin=0.05).verdict == "differs"
    assert alike("a", "x", "random", [0.55], 0.55, margin=0.05).verdict == "open"


def test_rows_that_are_not_counted():
    assert identity("a", "x", "0", True, "below 1").verdict == "holds"
    assert identity("a", "x", "2", False, "below 1").verdict == "fails"
    assert control("a", "x", "0").verdict == beyond("a", "x", "0").verdict == "shown"
    assert (control("a", "x", "0", True).kind, control("a", "x", "0", False).verdict) == ("own control", "fails")
    assert beyond("a", "x", "0", True).verdict == "holds"
    assert unrun("a", "x", "3 %", "no data").verdict == "not comparable"


def test_every_way_to_compare_gives_a_reason_where_it_does_not_agree():
    wide, unlike = [0.0, 2.0] * 3, [5.0, 5.1, 5.2, 5.1, 5.0]
    rows = [
        number("a", "a", (0.5, 0.1, 10), wide, margin=0.1),
        number("a", "a", (0.5, 0.1, 10), unlike, margin=0.1),
        number("a", "a", (0.5, 0.1, 10), [0.5], margin=0.1),
        repeated_value("a", "a", 0.5, wide, margin=0.1),
        repeated_value("a", "a", 0.5, unlike, margin=0.1),
        exact("a", "a", 1.0, 2.0, margin=0.1),
        ordering("a", "a", "yes", [1, 2], [1, 3]),
        ordering("a", "a", "yes", [0, 1, 2, 3], [4, 5, 6, 7]),
        ordering("a", "a", "yes", [], [1]),
        paired("a", "a", "yes", [1, 2], [0, 3]),
        trend("a", "a", "rises", [1, 2, 3, 4, 5], [2, 1, 3, 2, 2], 1),
        limit("a", "a", "small", [0.5, 2.0], below=1.0),
        limit("a", "a", "small", [2.0] * 6, below=1.0),
        limit("a", "a", "small", [], below=1.0),
        share("a", "a", "mostly", 2, 4),
        share("a", "a", "mostly", 0, 9),
        alike("a", "a", "the same", wide, 1.0, margin=0.1),
        alike("a", "a", "the same", unlike, 1.0, margin=0.1),
        unrun("a", "a", "1", "5 of 50 epochs", reason="too long here"),
    ]
    assert all(found.wants_reason and found.reason and found.why for found in rows), [r for r in rows if not r.why]
    assert [found.reason for found in rows[:6]] == [
        "few restarts", "against the source", "few restarts", "spread of the source", "against the source",
        "against the source",
    ]  # fmt: skip
    assert rows[12].reason == rows[15].reason == rows[17].reason == "our limit"
    assert not as_kind(rows[1], "own control").reason
    agrees = number("a", "a", (0.5, 0.1, 10), [0.5] * 6, margin=0.1)
    assert agrees.verdict == "agrees"
    assert not agrees.reason
    assert because(agrees, "no file", "x") == agrees
    with pytest.raises(BadInput, match="row 'a' agrees, so it has no reason"):
        VerdictRow("a", "a", "1", "1", "published number", "agrees", reason="no file", why="none")
    with pytest.raises(BadInput, match="reason='luck'; known: against the source"):
        VerdictRow("a", "a", "1", "1", "published number", "open", reason="luck")


@pytest.mark.parametrize("mean", [0.2, 0.3, 0.4])
def test_the_number_of_restarts_that_a_row_asks_for_decides_it(mean):
    """A row whose mean and spread stay is decided at the number it names, and not much below."""
    found = number("a", "a", (0.0, 0.0, None), np.tile([-1.0, 1.0], 5) + mean, margin=0.05)
    assert found.reason == "few restarts"
    needed = int(found.why.split("about ")[1].split(" ")[0])
    after = [number("a", "a", (0.0, 0.0, None), np.tile([-1.0, 1.0], k // 2) + mean, margin=0.05).verdict
             for k in (int(0.4 * needed) * 2, needed + 8)]  # fmt: skip
    assert after == ["open", "differs"]


def test_a_printed_spread_that_no_restart_of_ours_can_narrow_is_the_reason():
    found = number("a", "a", (0.5, 0.3, 10), np.tile([0.3, 0.45], 500), margin=0.1)
    assert (found.verdict, found.reason) == ("open", "spread of the source")
