"""What the tiny runs of L1 to L9 cannot show: what counts, planted effects, and the published numbers."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from unseam.errors import BadInput
from unseam.study.analyse.columns import METHOD_TITLES, METRIC_TITLES
from unseam_papers.frame.exhibit import Work
from unseam_papers.frame.rows import keyed, overall
from unseam_papers.locatello import capacity as l9
from unseam_papers.locatello import downstream_accuracy as l7
from unseam_papers.locatello import impossibility as l1
from unseam_papers.locatello import label_efficiency as l8
from unseam_papers.locatello import metrics_agree as l3
from unseam_papers.locatello import model_selection as l6
from unseam_papers.locatello import models as study
from unseam_papers.locatello import overlapping_scores as l4
from unseam_papers.locatello import total_correlation as l2
from unseam_papers.locatello import variance_explained as l5


def test_what_a_metric_keeps():
    table = {kind: {"mig": [value]} for kind, value in (("perfect", 0.9), ("noise", 0.1), ("0.25", 0.3))}
    assert l1.score_left(table, "0.25", "mig") == pytest.approx(0.25)
    u = l1.sample_code(3, 500, 0)
    assert np.sort(l1.codes_in_axes(u, 0.25, 0), axis=0) == pytest.approx(np.sort(u, axis=0), abs=0.15)
    assert set(l1.METRIC_NAMES) == {"beta-vae", "factor-vae", "mig", "modularity", "dci-disentanglement", "sap"}


def theorem(distance=0.01, auc=0.5, rows=3000):
    kinds = {"perfect": 1.0, "permuted": 1.0, "noise": 0.0, "0.25": 0.2}
    scores = {kind: {name: [value] for name in l1.METRIC_NAMES} for kind, value in kinds.items()}
    tested = {"rows": rows, "distance": [distance], "auc": [auc] * 3, "plain": [0.7] * 3}
    exact = {"least": 1e-3, "log_det": 1e-10, "turn": 1e-16}
    return {"a": [0.25], "d": [4], "scores": scores, "distribution": tested, "derivatives": exact}


def test_a_proved_theorem_counts_nothing():
    rows = keyed(l1.judge(theorem()))
    assert not any(row.counted for row in rows.values())
    assert overall(rows.values()) == "not comparable"
    assert {rows[key].kind for key in ("density", "derivatives")} == {"by construction"}
    assert {rows[name].kind for name in l1.METRIC_NAMES} == {"beyond the paper"}


def test_the_same_distribution_is_shown_or_left_open():
    verdicts = {
        case: {key: row.verdict for key, row in keyed(l1.judge(theorem(**numbers))).items()}
        for case, numbers in {
            "same": {},
            "few rows": {"rows": 100},
            "other": {"distance": 0.2, "auc": 0.6},
        }.items()
    }
    assert [verdicts[case]["marginals"] for case in verdicts] == ["holds", "shown", "fails"]
    assert [verdicts[case]["joint"] for case in verdicts] == ["holds", "shown", "fails"]


def test_the_published_strengths():
    ends = {method: (grid[0], grid[-1]) for method in l2.METHODS for _, grid in [l2.published_strengths(method, 4)]}
    assert ends == {
        "beta-vae": (1, 16),
        "factor-vae": (10, 100),
        "beta-tcvae": (1, 10),
        "dip-vae-i": (1, 50),
        "dip-vae-ii": (1, 50),
        "annealed-vae": (5, 100),
    }


def test_only_the_two_printed_trends_count():
    strength = [1.0, 1.0, 4.0, 4.0, 16.0, 16.0]
    found = {"strength": strength, "sampled": [6, 5, 4, 3, 2, 1], "mean": [6, 5, 4, 3, 2, 1], "active": [5.0] * 6}
    rows = keyed(l2.judge({"beta-vae": found, "annealed-vae": found}))
    assert {key for key, row in rows.items() if row.counted} == {"beta-vae sampled", "beta-vae mean"}
    assert rows["beta-vae sampled"].verdict == "agrees"
    assert rows["beta-vae mean"].verdict == "differs"
    assert rows["above"].kind == "beyond the paper"
    assert not any("minor exceptions" in row.published for row in rows.values())


# L3 to L8: on a study


def a_study(seeds=6, seed=0):
    """Scores = quality of the setting + seed; Modularity is another thing, MIG and DCI are the same to a hair."""
    r = np.random.default_rng(seed)
    cells = [
        (d, m, s, n)
        for d in ("sprites", "sprites-noisy")
        for m in METHOD_TITLES
        for s in (1.0, 2.0)
        for n in range(seeds)
    ]
    frame = pd.DataFrame(cells, columns=["data", "method", "strength", "seed"])
    place = frame.groupby(["method", "strength"]).ngroup().to_numpy()
    q = r.normal(size=place.max() + 1)[place] + r.normal(size=len(frame))
    noise = {metric: 0.7 * r.normal(size=len(frame)) for metric in METRIC_TITLES}
    noise["dci-disentanglement"] = noise["mig"] + 0.1 * r.normal(size=len(frame))
    noise["factor-vae"] = noise["beta-vae"] + 0.1 * r.normal(size=len(frame))
    scores = {f"mean.{metric}": (metric != "modularity") * q + noise[metric] for metric in METRIC_TITLES}
    free = {
        "free.udr": q + r.normal(size=len(frame)),
        "free.dto": q,
        "free.active": 5.0,
        "unsup.kl": r.normal(size=len(q)),
    }
    tc = frame["strength"] + 0.01 * r.normal(size=len(frame))
    codes = {"unsup.tc-sampled": -tc, "unsup.tc-mean": tc}
    accuracy = {f"downstream.trees.{n}": 0.5 + 0.05 * q for n in (100, 10_000)}
    accuracy["downstream.trees.100"] = accuracy["downstream.trees.10000"] * (1 + 0.01 * r.normal(size=len(q)))
    return frame.assign(status="finished", steps=100, **scores, **free, **codes, **accuracy)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "table.parquet"
    a_study().to_parquet(path)
    return study.Settings("random", table=str(path))


def rows_of(module, table, tmp_path):
    numbers = module.compute(table, Work(tmp_path))
    json.dumps(numbers, allow_nan=False)
    return keyed(module.judge(numbers))


def test_a_given_table_is_what_the_exhibits_look_at(table, tmp_path):
    frame = study.trained_models(table, Work(tmp_path))
    assert (
        study.models_text(study.about(frame)) == "144 models (sprites, sprites-noisy; 12 settings, 6 seeds, 100 steps)"
    )
    assert len(study.trained_models(study.Settings("random"), Work(tmp_path))) == 72
    with pytest.raises(BadInput, match="is/not/there"):
        study.trained_models(study.Settings("random", table="is/not/there"), Work(tmp_path))


def test_an_ordering_over_seeds_has_three_ends():
    """The jackknife of a mean is Student's; a limit on either side, and too few seeds."""
    x = np.array([1.0, 2.0, 3.0, 4.0])
    found = {"value": 2.5, "without": [float(np.delete(x, i).mean()) for i in range(4)]}
    error, half = study.t_and_half(found)
    assert error == pytest.approx(x.std(ddof=1) / 2)
    assert half == pytest.approx(3.182446 * error)
    verdicts = [
        study.above("a", "a", "yes", found, limit, sign).verdict for limit, sign in ((0, 1), (2, 1), (5, -1), (0, -1))
    ]
    assert verdicts == ["agrees", "open", "agrees", "differs"]
    assert study.above("a", "a", "yes", {"value": 1.0, "without": []}).verdict == "not comparable"
    frame = a_study(seeds=2)
    assert study.without_each(frame, lambda f: float(len(f))) == {"value": 48.0, "without": []}
    assert study.without_each(a_study(seeds=3), lambda f: float(len(f))) == {"value": 72.0, "without": [48.0] * 3}


def test_agreement_is_found_where_it_was_planted(table, tmp_path):
    rows = rows_of(l3, table, tmp_path)
    assert {key: row.verdict for key, row in rows.items() if row.counted} == dict.fromkeys(
        ("lowest", "modularity", "beta-vae-factor-vae", "mig-dci-disentanglement"), "agrees"
    )


def test_published_variances_are_those_of_the_slides_and_cannot_be_compared(table, tmp_path):
    one, two = l5.PUBLISHED["dSprites"]
    assert (min(one), max(one), min(two), max(two)) == (26, 47, 39, 77)
    assert dict(zip(l5.SIX_METRICS, l5.PUBLISHED["Noisy-dSprites"][0], strict=True))["modularity"] == 41
    assert dict(zip(l5.SIX_METRICS, l5.PUBLISHED["Color-dSprites"][1], strict=True))["dci-disentanglement"] == 80
    rows = rows_of(l5, table, tmp_path)
    numbers = [row for row in rows.values() if row.kind == "published number"]
    assert len(numbers) == 4
    assert {row.verdict for row in numbers} == {"not comparable"}
    assert [rows[key].verdict for key in ("objective", "seed", "shuffled")] == ["agrees", "agrees", "holds"]


def test_selection_counts_what_is_printed_and_shows_what_is_ours(table, tmp_path):
    rows = rows_of(l6, table, tmp_path)
    assert {row.published for row in rows.values() if row.kind == "published number"} == {"80.7 %", "59.3 %", "54.9 %"}
    assert rows["same metric, same data"].verdict == rows["same metric, other data"].verdict == "agrees"
    assert rows["patterns"].verdict == "not comparable"
    assert l6.pattern(["unsup.kl"]).verdict == "differs"
    assert rows["restarts free.udr"].verdict == "holds"  # the largest is preferred, and it is better
    assert rows["restarts free.dto"].verdict == "fails"  # the smallest is preferred, and it is worse
    assert rows["restarts labels"].verdict == "shown"
    assert rows["restarts free.udr"].kind == "beyond the paper"
    clear = a_study().assign(**{"unsup.kl": lambda f: -f["mean.mig"]})
    assert l6.patterns(clear) == ["unsup.kl"]


def test_downstream_rises_and_efficiency_does_not(table, tmp_path):
    assert rows_of(l7, table, tmp_path)["mean"].verdict == "agrees"
    rows = rows_of(l8, table, tmp_path)
    assert "accuracy(100) / accuracy(10,000), trees" in rows["mean"].what
    assert rows["mean"].verdict in ("agrees", "open")
    for without, verdict in (
        ([0.1, 0.1, 0.11], "agrees"),
        ([0.6, 0.61, 0.59], "differs"),
        ([0.1, 0.5, 0.3], "open"),
    ):
        assert l8.equivalent("", {"value": float(np.mean(without)), "without": without}).verdict == verdict


def test_overlap_of_methods_and_strengths(table, tmp_path):
    rows = rows_of(l4, table, tmp_path)
    assert rows["methods"].kind == rows["strengths"].kind == "published ordering"
    pair = {"data": "d", "a": "beta-vae", "b": "factor-vae", "p": 0.2, "low": 0.1, "high": 0.3}
    assert l4.beating(pair) == "d: FactorVAE beats β-VAE in 80 % (70 to 90)"


def test_total_correlation_from_a_study(table):
    numbers = l2.compute(l2.Settings(seeds=1, steps=1, table=table.table), None)
    assert set(numbers) == set(METHOD_TITLES)
    assert len(numbers["beta-vae"]["mean"]) == 12  # one data set
    rows = keyed(l2.judge(numbers))
    assert rows["beta-vae sampled"].verdict == rows["beta-vae mean"].verdict == "agrees"
    assert not rows["annealed-vae mean"].counted


@pytest.mark.parametrize("module", [l3, l5, l8])
def test_a_second_study_stands_beside_the_first_and_is_not_counted(module, table, tmp_path):
    both = replace(table, second=table.table)
    alone, rows = rows_of(module, table, tmp_path), rows_of(module, both, tmp_path)
    counted = {key for key, row in rows.items() if row.counted}
    assert counted == {key for key, row in alone.items() if row.counted}
    again = {key.removeprefix("second: "): row for key, row in rows.items() if key.startswith("second: ")}
    assert set(again) == counted
    assert {row.kind for row in again.values()} == {"beyond the paper"}
    assert all(row.what == f"second study: {alone[key].what}" for key, row in again.items())
    assert all(row.ours == alone[key].ours for key, row in again.items())  # the same table twice
    numbers = module.compute(both, Work(tmp_path))
    assert module.conclude(numbers, rows).count(module.conclude(module.compute(table, Work(tmp_path)), alone)) == 2


def test_the_mean_codes_total_correlation_is_compared_with_the_number_of_active_latents():
    found = {
        "strength": [1.0, 2.0, 3.0],
        "sampled": [3.0, 2.0, 1.0],
        "mean": [1.0, 2.0, 3.0],
        "active": [9.0, 5.0, 2.0],
    }
    assert l2.with_active({"beta-vae": found, "annealed-vae": found}) == {"beta-vae": pytest.approx(-1)}


# L9


def test_capacity_orders_by_the_first_snapshot_that_holds_enough():
    shares = np.zeros((5, 4, 4))  # restarts, snapshots, factors
    shares[:, 1:, 0], shares[:, 3:, 1] = 0.2, 0.2  # place from the second, scale from the fourth
    numbers = {"capacity": [5.0, 10.0, 15.0, 25.0], "shares": shares.tolist(), "steps": 4, "size": 8}
    assert l9.onsets(numbers) == {"place": [10] * 5, "scale": [25] * 5, "shape": [np.inf] * 5, "rotation": [np.inf] * 5}
    rows = keyed(l9.judge(numbers))
    verdicts = [rows[key].verdict for key in ("place before scale", "scale before shape", "shape before rotation")]
    assert verdicts == ["agrees", "open", "not comparable"]  # never is not yet later
    assert {rows[name].verdict for name in l9.PUBLISHED} == {"not comparable"}
    turned = {**numbers, "shares": shares[:, :, [1, 0, 2, 3]].tolist()}
    assert keyed(l9.judge(turned))["place before scale"].verdict == "differs"


def test_the_large_scale_reads_the_study_that_comes_with_the_package(tmp_path, monkeypatch):
    """From any working folder, where other models were trained without a word; and never a table that lies there."""
    from unseam_papers.locatello import models, total_correlation

    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "sprites16.parquet").write_text("not a study")
    monkeypatch.setattr("unseam.study.engine.study", lambda *_: pytest.fail("nothing is trained"))
    frame = models.trained_models(models.SCALES["large"], None)
    assert len(frame) == 972
    assert total_correlation.SCALES["large"].table == models.SCALES["large"].table
    with pytest.raises(BadInput, match="did not come with this installation"):
        models.packaged_study("another.parquet")
