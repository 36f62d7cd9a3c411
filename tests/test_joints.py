"""Joints between parts that are tested once on their first choice: the second choice must arrive as well."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unseam
from unseam.estimators import FactorFinder
from unseam.finding import network
from unseam.finding.columns import prepare
from unseam.finding.encoding import mix
from unseam.finding.read import read
from unseam.metrics import score
from unseam.runs.evaluate import evaluate, rows_for
from unseam.runs.represent import represent, without_constants
from unseam.train import fit


class Asked(Exception):
    pass


@pytest.mark.parametrize("seed", [0, 7, 100])
def test_networks_of_find_follow_its_seed(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another seed trains another cohort, of as many members."""
    seeds: list[int] = []

    def record(*args: Any, **settings: Any) -> Any:
        seeds.extend(settings["seeds"])
        raise Asked

    monkeypatch.setattr(network, "fit", record)
    g = np.random.default_rng(0)
    s = g.uniform(-1, 1, (600, 2))
    x = np.column_stack([s, s**2, s[:, :1] * s[:, 1:]]) + 0.01 * g.normal(size=(600, 5))
    with pytest.raises(Asked):
        unseam.find(x, effort="thorough", seed=seed, show=False)
    assert seeds == list(range(seed, seed + network.EFFORTS["thorough"].seeds))


def wards(order: tuple[str, ...]) -> pd.DataFrame:
    g = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "height": g.normal(size=300),
            "ward": np.array(["a", "b", "c"])[g.integers(3, size=300)],
            "colour": np.array(["r", "g", "b", "k"])[g.integers(4, size=300)],
            "visits": g.poisson(4.0, size=300),
        }
    )[list(order)]


@pytest.mark.parametrize("order", list(itertools.permutations(("height", "ward", "colour", "visits"))), ids="-".join)
def test_classes_of_a_mixed_table_are_cut_by_column_wherever_the_columns_stand(order: tuple[str, ...]) -> None:
    table = wards(order)
    p = prepare(read(table).table, kinds={"ward": "categorical", "colour": "categorical", "visits": "counts"})
    encoded = mix(p, 2)
    sizes = {"ward": 2, "colour": 3}  # one column a class but the first
    assert [word for word in encoded.columns if word.startswith("categorical")] == [
        f"categorical:{sizes[name]}" for name in order if name in sizes
    ]
    assert np.allclose(encoded.back(encoded(p.x, p.gaps)), p.x)


def test_a_finder_names_the_columns_of_a_frame_in_their_own_order() -> None:
    g = np.random.default_rng(0)
    s = g.uniform(-1, 1, size=(400, 2))
    x = pd.DataFrame(0.02 * g.normal(size=(400, 4)), columns=["weight", "arm", "height", "girth"])
    x[["weight", "girth"]] += s[:, :1]  # the first and last in the table, neither the first nor last of the alphabet
    x[["arm", "height"]] += s[:, 1:]
    found = FactorFinder().fit(x).findings_
    moved = [{move.name for move in factor.moves[:2]} for factor in found.factors]
    assert sorted(map(sorted, moved)) == [["arm", "height"], ["girth", "weight"]]


def test_chance_of_signed_directions_is_signed() -> None:
    """Cosines of random directions are symmetric about 0, so the best signed one is below the best |cosine|."""
    g = np.random.default_rng(0)
    a, b = g.normal(size=(2, 6, 12))
    signed, unsigned = unseam.match(a, b, signed=True).pairs[0], unseam.match(a, b).pairs[0]
    assert signed.chance < unsigned.chance
    mirrored = unseam.match(a, -b, signed=True).pairs[0]
    assert mirrored.chance != signed.chance  # the sign of a set matters to it
    assert unseam.match(a, -b).pairs[0].chance == pytest.approx(unsigned.chance)


def test_evaluate_hands_posterior_variances_to_the_metrics(tmp_path: Path) -> None:
    run = fit("synth-linear", beta=0.3, steps=300, network="linear", latents=2, lr=0.01, out=tmp_path / "run",
              show=False, data_parameters={"size": 1500})  # fmt: skip
    name = "gaussian-tc-sampled"  # refuses codes without variances, and differs with them
    taken = rows_for(run, name)
    seen = without_constants(represent(run.model(0), run.data, taken.rows))
    truth = score(seen.codes, seen.factors, seen.space, name, variances=seen.variances, active=seen.active)[name].value
    assert evaluate(run, name)[0][name].value == truth
    wider = score(seen.codes, seen.factors, seen.space, name, variances=4 * seen.variances, active=seen.active)[name]
    assert wider.value != truth
