"""The rules of V1 to V3: open settings are asked whether they give a rate, and untrained codes are looked at."""

import numpy as np
import pytest

from unseam_papers import EXHIBITS
from unseam_papers.frame.rows import keyed
from unseam_papers.vu import four_latents, hypothesis, tables, three_latents


def scenario(trained, variants, untrained=50.0):
    """Success rates of both metrics over repetitions, over open settings (pairs), and on untrained codes."""
    found = {metric: [float(r) for r in trained] for metric in tables.TABLE_METRICS}
    before = {metric: [untrained] * len(trained) for metric in tables.TABLE_METRICS}
    others = [{m: [r - 8.0, r, r + 8.0] for m, r in zip(tables.TABLE_METRICS, pair, strict=True)} for pair in variants]
    ways = {"reached": found, "diagonal": before, "equal": before, "exact": before}
    return {"trained": found, "untrained": before, "variants": others, "converged": 100.0, **ways}


@pytest.mark.parametrize(
    ("published", "near", "far"), [(42.0, "agrees", "agrees"), (70.0, "differs", "open"), (90.0, "differs", "differs")]
)
def test_a_rate_that_open_settings_move_is_asked_of_them(published, near, far):
    rates = np.linspace(30, 54, 40)
    for spread, verdict in ((5, near), (30, far)):
        row = tables.rate("I", 0, published, scenario(rates, [(40, 40), (40 + spread, 40)]), 3, best=0)
        assert row.verdict == verdict
        assert row.kind == "published number"


def test_a_rate_that_needs_no_training_is_by_construction():
    always = tables.rate("I", 2, 100.0, scenario([100] * 5, [(100, 50)], untrained=100.0), 3, 0)
    assert (always.kind, always.verdict) == ("by construction", "holds")
    assert tables.rate("I", 2, 100.0, scenario([100] * 5, [(100, 50)], untrained=80.0), 3, 0).kind == "published number"
    assert tables.rate("I", 2, 56.0, scenario([100] * 5, [(100, 50)], untrained=100.0), 3, 0).verdict == "differs"


def test_the_best_setting_gives_most_rates_and_then_lies_nearest():
    both = [scenario([50] * 5, [(40, 20), (42, 60), (43, 60)]) for _ in range(2)]
    assert tables.best_setting({"I": (43.0, 43.0), "SAP": (60.0, 10.0)}, both) == 2  # gives three of four, as does 1
    assert tables.best_setting({"I": (43.0, 43.0), "SAP": (20.0, 20.0)}, both) == 0


def test_an_order_that_settings_turn_round_is_open():
    ahead = scenario([20] * 10, [(40, 60), (45, 50)])
    ahead["trained"]["SAP"] = [50.0] * 10
    table = {"I": (16.0,), "SAP": (40.0,)}
    assert tables.order(0, table, ahead, 3).verdict == "agrees"
    assert tables.order(0, table, ahead, 3).published == "40 % against 16 %"
    assert tables.order(0, {"I": (40.0,), "SAP": (16.0,)}, ahead, 3).verdict == "differs"
    ahead["variants"].append({"I": [60.0], "SAP": [40.0]})
    assert tables.order(0, table, ahead, 3).verdict == "open"


def test_published_tables_and_claims():
    assert three_latents.PUBLISHED == {"I": (16, 64, 100), "SAP": (40, 92, 92)}
    assert four_latents.PUBLISHED == {"I": (44, 60, 56), "SAP": (52, 20, 4)}
    assert "SAP is ahead" in EXHIBITS["V2"].claim  # scenario 1: 3 groups < 4 latents, and yet 44 % < 52 %


def cells(trained, untrained):
    """20 cells: the lead of I_m grows with m - groups on trained codes, and on untrained ones if asked."""
    gaps = [0, 1, 2, 3] * 5
    made = {"s": 3, "n": 4, "m": 4, "converged": 100.0, "diagonal": [50.0, 50.0], "exact": [100.0, 100.0]}
    return {
        "cells": [
            made
            | {
                "groups": 4 - g,
                "trained": [50 + trained * (g - 0.5), 50.0],
                "untrained": [50 + untrained * (g - 0.5), 50.0],
            }
            for g in gaps
        ]
    }


def test_a_hypothesis_that_untrained_codes_fulfil_says_nothing_of_training():
    verdicts = {
        case: [keyed(hypothesis.judge(cells(*case)))[key].verdict for key in ("fewer", "grows", "equal")]
        for case in ((10, 0), (10, 10), (-10, 0), (-10, 10))
    }
    assert verdicts == {
        (10, 0): ["agrees"] * 3,
        (10, 10): ["not comparable"] * 3,
        (-10, 0): ["differs"] * 3,
        (-10, 10): ["differs"] * 3,
    }
    rows = keyed(hypothesis.judge(cells(10, 10)))
    assert "untrained codes show it too" in rows["fewer"].rule
    assert "3 of the three parts are there before anything is learned" in hypothesis.conclude(cells(10, 10), rows)
