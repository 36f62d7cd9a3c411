"""`unseam bench choose-models`: its rules, its fusion and its arithmetic on representations whose answer is known."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import choose_models
import numpy as np
import pytest

RNG = np.random.default_rng(0)


def test_the_examples_hold() -> None:
    found = doctest.testmod(choose_models)
    assert found.attempted
    assert not found.failed


def seed(quality: float, rule: float | None) -> dict[str, Any]:
    judged = dict.fromkeys((*choose_models.JUDGES, *choose_models.COMPARED, "linear", "random features"), quality)
    rules = dict.fromkeys((*choose_models.RULES, "ModelCentrality among seeds", "our ranking among seeds"), rule)
    return {**rules, "quality": {**judged, "latents": 3.0}}


def cohort(data: str, qualities: list[float], rules: list[float | None], fused: float) -> dict[str, Any]:
    return {"data": data, "seeds": [seed(q, r) for q, r in zip(qualities, rules, strict=True)],
            "fused": seed(fused, 0)["quality"]}  # fmt: skip


def test_a_rule_that_orders_as_labels_do_is_best_and_one_that_says_nothing_is_chance() -> None:
    qualities = [[0.1, 0.2, 0.3, 0.4, 0.5], [0.6, 0.5, 0.4, 0.3, 0.2]]
    good = [cohort("sprites", q, list(q), 0.0) for q in qualities]
    silent = [cohort("sprites", q, [1.0] * 5, 0.0) for q in qualities]
    pools = [[c["seeds"] for c in each] for each in (good, silent)]
    rate = [{row["rule"]: row["rate"] for row in choose_models.rates(pool)} for pool in pools]
    assert rate[0]["recurrence of latents"] == 1
    assert rate[1]["recurrence of latents"] == pytest.approx(0.5)
    assert rate[1]["labels: one other metric"] == 1


def test_pools_are_the_settings_of_a_seed_and_the_seeds_of_a_setting() -> None:
    rising = [0.1 * s for s in range(5)]
    documents = [cohort(data, rising, [0.0] * 5, 0.0) for data in choose_models.DATA for _ in range(3)]
    central = {data: {s: [10.0 * s, 10.0 * s + 1, 10.0 * s + 2] for s in range(5)} for data in choose_models.DATA}
    found = choose_models.pools(documents, central)
    assert [len(pool) for pool in found["settings"]] == [3] * 10
    assert [len(pool) for pool in found["seeds"]] == [5] * 6
    assert [one["ModelCentrality"] for one in found["settings"][4]] == [40, 41, 42]


def test_fused_is_compared_with_the_seed_that_a_rule_takes() -> None:
    documents = [cohort("sprites", [0.1, 0.3, 0.2], [0.0, 1.0, None], f) for f in (0.25, 0.15)]
    row = next(r for r in choose_models.compared(documents) if r["what"] == "mig")
    assert (row["fused"], row["mean seed"], row["best seed"]) == pytest.approx((0.2, 0.2, 0.3))
    assert row["the seed of our ranking"] == pytest.approx(0.3)
    assert (row["cohorts where fused beats the mean seed"], row["cohorts where fused beats the best seed"]) == (1, 0)


def test_recurring_latents_are_fused_and_others_are_left_out() -> None:
    truth, seeds = RNG.normal(size=(600, 3)), []
    for order, sign in (((0, 1, 2), 1), ((2, 0, 1), -1), ((1, 2, 0), 1), ((0, 2, 1), -1)):
        turned = truth[:, 1:] @ np.linalg.qr(RNG.normal(size=(2, 2)))[0]
        codes = np.column_stack([truth[:, 0], turned]) + 0.05 * RNG.normal(size=truth.shape)
        seeds.append(sign * codes[:, order])
    fused = choose_models.fuse(seeds)
    rho = np.abs(choose_models.rank_correlations(fused, truth))
    assert rho[:, 0].max() > 0.99
    assert choose_models.fuse([RNG.normal(size=(600, 2)) for _ in range(4)]).shape == (600, 0)


def test_what_a_decoder_explains() -> None:
    z = RNG.normal(size=(800, 2))
    assert choose_models.explained(z, z @ RNG.normal(size=(2, 6))) > 0.99
    assert choose_models.explained(z, RNG.normal(size=(800, 6))) < 0.05
    curved = np.sin(2 * z)
    assert choose_models.explained(z, curved, features=200) > choose_models.explained(z, curved) + 0.2
    assert choose_models.explained(z[:, :0], curved) == 0


def test_the_page_shows_the_results() -> None:
    root = Path(__file__).parents[2]
    results = json.loads((root / "benchmarks" / "results" / "choose-models.json").read_text())
    page = (root / "docs" / "choose.md").read_text().partition("## Rules that need the models")[2]
    lines = {line.split(" | ")[0].strip("| *"): line for line in page.splitlines() if line.startswith("| ")}
    for kind in ("settings", "seeds"):
        for row in results[f"among the {kind}"]:
            cells = f"{100 * row['rate']:.0f} % | {100 * row['low']:.0f} to {100 * row['high']:.0f}"
            assert cells in lines[row["rule"]]
    for row in results["fusion"]:
        chosen = ("fused", "the seed of our ranking", "the seed whose latents recur most", "mean seed", "best seed")
        assert " | ".join(f"{row[name]:.2f}" for name in chosen) in page
