"""The success rate that a report quotes is that of the shipped study's table."""

from pathlib import Path

import choose
import numpy as np
import pandas as pd
import pytest

from unseam.runs.rank_members import LABELS_BEAT, SEEDS_BEATEN, SETTINGS_BEATEN


def test_the_rates_that_are_quoted_are_those_of_the_tables() -> None:
    models = choose.tables()
    settings, restarts = (choose.outcomes(models, pool).mean() for pool in ("settings", "restarts"))
    assert round(100 * settings["free.rank"]) == SETTINGS_BEATEN
    assert round(100 * restarts["free.rank"]) == SEEDS_BEATEN
    assert round(100 * settings["labels: one other metric"]) == LABELS_BEAT


ROOT = Path(__file__).parents[2]


def test_the_rates_of_the_models_trained_again_are_those_of_their_table() -> None:
    models = choose.finished_models(pd.read_parquet(ROOT / "studies" / "sprites16-xla.parquet")).assign(table="again")
    page = (ROOT / "docs" / "choose.md").read_text()
    page = page[page.index("## The same study trained again") : page.index("## On a second study")]
    both = [{row["rule"]: row for row in choose.summary(choose.outcomes(models, pool))} for pool in choose.POOLS]
    names = {"labels: one other metric": "*labels: one other metric*", "DtO / chance": "DtO over chance"}
    for rule in ("labels: one other metric", "DtO / chance", "ELBO", "our ranking", "UDR"):
        cells = [names.get(rule, rule)]
        for found in both:
            rate, low, high = (100 * found[rule][name] for name in ("rate", "low", "high"))
            cells += [f"{rate:.0f} %", f"{low:.0f} to {high:.0f}"]
        assert f"| {' | '.join(cells)} |" in page


def test_chance_is_one_half_and_a_judge_that_chooses_wins() -> None:
    values = np.random.default_rng(0).integers(0, 4, (9, 3)).astype(float)  # with ties
    won = choose.wins(values)
    assert won.mean(axis=0) == pytest.approx(0.5)
    for i in range(9):
        others = np.delete(values[:, 0], i)
        expected = ((values[i, 0] > others) + 0.5 * (values[i, 0] == others)).mean()
        assert won[i, 0] == pytest.approx(expected)
    assert choose.taken(values[:, 0], won[:, 0]) == won[:, 0].max()
    assert choose.taken(np.full(9, np.nan), won[:, 0]) != choose.taken(values[:, 0], won[:, 0])
