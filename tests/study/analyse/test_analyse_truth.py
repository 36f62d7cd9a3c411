"""Every statistic of the analysis against a case whose truth is known: closed forms, hand-made tables, simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from synthetic import METRICS, grid, noise, study

from unseam.study.analyse import agreement, downstream, efficiency, overlap, selection, total_correlation
from unseam.study.analyse import transfer as moving
from unseam.study.analyse.columns import DIRECTIONS, finished_models
from unseam.study.analyse.intervals import by_leaving_out, of_mean, of_rank_correlation
from unseam.study.analyse.overlap import beats
from unseam.study.analyse.variance import variance

MEAN = [f"mean.{metric}" for metric in METRICS]


def covered(make, truth, repeats, seed=0):
    """The share of intervals that hold the truth."""
    generator = np.random.default_rng(seed)
    ends = np.array([make(generator) for _ in range(repeats)])
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())


# L3


def correlated(generator, rho, n):
    x = generator.normal(size=(n, 2))
    return x[:, 0], rho * x[:, 0] + np.sqrt(1 - rho**2) * x[:, 1]


@pytest.mark.parametrize(("rho", "n"), [(0.0, 12), (0.7, 40)])
def test_intervals_of_rank_correlations_cover(rho, n):
    truth = 6 / np.pi * np.arcsin(rho / 2)  # Spearman's rho of a bivariate normal

    def make(generator):
        x, y = correlated(generator, rho, n)
        return of_rank_correlation(np.corrcoef(x.argsort().argsort(), y.argsort().argsort())[0, 1], n)

    assert covered(make, truth, 600) == pytest.approx(0.95, abs=0.025)


def test_a_perfect_order_of_few_models_proves_little():
    assert of_rank_correlation(1.0, 5)[0] < 0.4
    assert of_rank_correlation(1.0, 300)[0] > 0.99


def test_agreement_of_a_known_case():
    frame = grid(methods=("beta-vae",), strengths=2, seeds=5)
    x = np.arange(10.0)
    found = agreement.metric_agreement(
        finished_models(frame.assign(**{"mean.mig": x, "mean.sap": -x, "mean.modularity": np.exp(x)}))
    )
    rho = {(row.a, row.b): row.rho for row in found.itertuples()}
    assert rho == {
        ("mean.mig", "mean.modularity"): 1,
        ("mean.mig", "mean.sap"): -1,
        ("mean.modularity", "mean.sap"): -1,
    }
    assert list(agreement.kinds(found)) == ["apart", "mild", "apart"]


# L4


@pytest.mark.parametrize("gap", [0.0, 1.0, 2.5])
def test_beating_against_the_closed_form_of_gaussians(gap):
    """P(a > b) = Phi((mu_a - mu_b) / sqrt(s_a^2 + s_b^2)), and its interval covers it."""
    truth = norm.cdf(gap / np.sqrt(1 + 0.5**2))
    generator = np.random.default_rng(1)
    found = beats(gap + generator.normal(size=4000), 0.5 * generator.normal(size=4000))
    assert found.p == pytest.approx(truth, abs=0.015)
    assert found.low < truth < found.high

    def make(generator):
        return beats(gap + generator.normal(size=20), 0.5 * generator.normal(size=15))[1:3]

    assert covered(make, truth, 400) == pytest.approx(0.95, abs=0.035)


def test_ties_count_half_and_sides_can_be_swapped():
    assert beats([1, 1, 2, 2], [1, 1, 2, 2]).p == 0.5
    assert beats([2, 2], [1, 2]).p == 0.75  # by hand: win, tie, win, tie
    there, back = beats([3, 4, 9], [1, 3, 5, 6]), beats([1, 3, 5, 6], [3, 4, 9])
    assert there.p == pytest.approx(7.5 / 12)  # 3: win, tie; 4: win, win; 9: four wins
    assert (there.p, there.low, there.high) == pytest.approx((1 - back.p, 1 - back.high, 1 - back.low))
    assert (there.n_a, there.n_b) == (3, 4)


def test_separation_and_equality_have_intervals_too():
    apart, same = beats([5, 6, 7], [1, 2, 3, 4]), beats([1, 1, 1], [1, 1])
    assert (apart.p, apart.low, apart.high) == pytest.approx((1, 0.025 ** (1 / 3), 1))
    assert (same.p, same.low, same.high) == pytest.approx((0.5, 0.5 * 0.025**0.5, 1 - 0.5 * 0.025**0.5))


def test_the_better_method_and_the_worse_strength_are_named():
    frame = grid(methods=("beta-vae", "factor-vae"), strengths=2, seeds=4)
    score = (frame["method"] == "factor-vae") * 10 + frame["strength"] + 0.1 * frame["seed"]
    frame = finished_models(frame.assign(**{"mean.mig": score}))
    (row,) = overlap.methods(frame).itertuples()
    assert (row.a, row.b, row.p, row.n_a, row.n_b) == ("beta-vae", "factor-vae", 0.0, 8, 8)
    rows = overlap.strength_overlap(frame)
    assert rows["worst"].tolist() == [1.0, 1.0]
    assert rows["best"].tolist() == [2.0, 2.0]
    assert rows["p"].tolist() == [0.0, 0.0]
    assert not rows["overlap"].any()
    assert overlap.mutual(pd.Series([0.5, 0.0, 0.75])).tolist() == [1.0, 0.0, 0.5]


# L5


def test_pure_noise_explains_its_floor_and_nothing_once_adjusted():
    found = variance(finished_models(noise(grid(seeds=5), MEAN)), permutations=400)
    many = found[found["by"] == "objective x strength"]
    assert (many["n"] == 180).all()
    assert many["explained"].mean() == pytest.approx(35 / 179, abs=0.03)
    assert found["adjusted"].mean() == pytest.approx(0, abs=0.02)
    assert found["null"].to_numpy() == pytest.approx(((found["groups"] - 1) / (found["n"] - 1)).to_numpy(), abs=0.006)


def test_under_noise_one_in_twenty_passes_the_null():
    frame = grid(methods=("beta-vae", "factor-vae", "dip-vae-i"), strengths=1, seeds=6)
    p = []
    for seed in range(20):
        found = variance(finished_models(noise(frame, MEAN, seed)), permutations=39, seed=seed)
        p += found[found["by"] == "objective"]["p"].tolist()
        assert (found["p"] > 0).all()
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.04)
    assert np.mean(p) == pytest.approx(0.5, abs=0.08)


def test_a_planted_effect_is_found_at_its_size():
    """score = method + strength + seed with variances 1, 2, 1 (fixed levels of unit spread): 25 % and 75 %."""
    frame = noise(grid(seeds=60), ["mean.mig"])
    levels = (np.arange(6) - 2.5) / np.arange(6).std()
    method = levels[frame.groupby("method").ngroup()]
    strength = np.sqrt(2) * levels[frame["strength"].astype(int) - 1]
    found = variance(
        finished_models(frame.assign(**{"mean.mig": frame["mean.mig"] + method + strength})), permutations=99
    )
    assert found["adjusted"].tolist() == pytest.approx([0.25, 0.75], abs=0.02)
    assert (found["p"] == 0.01).all()
    assert (found["null_high"] < found["explained"]).all()


# L6, transfer


def two_by_three(scores):
    """Two data sets, one metric, three settings, two seeds: scores[data][setting][seed]."""
    rows = [
        {"data": d, "method": "beta-vae", "strength": float(c), "seed": s, "mean.mig": scores[d][c][s]}
        for d in ("a", "b")
        for c in range(3)
        for s in range(2)
    ]
    return finished_models(pd.DataFrame(rows))


def test_transfer_by_hand():
    """On a, seed 0 chooses setting 2 and seed 1 chooses setting 1; on b they choose 0 and tie between 0 and 2."""
    frame = two_by_three({"a": [[1, 1], [2, 3], [3, 2]], "b": [[9, 5], [7, 1], [8, 5]]})
    found = moving.transfer(frame).set_index("kind")
    # a -> a: setting 2 at seed 1 beats one of two (0.5); setting 1 at seed 0 beats one of two (0.5)
    # b -> b: setting 0 at seed 1 beats 1, ties with 2 (0.75); the tie, at seed 0: 0 beats two, 2 beats one (0.75)
    assert found["rate"]["same metric, same data"] == pytest.approx((0.5 + 0.5 + 0.75 + 0.75) / 4)
    # a -> b: setting 2 at seed 1 (0.75), setting 1 at seed 0 (0); b -> a: 0 at seed 1 (0), the tie at seed 0 (0, 1)
    assert found["rate"]["same metric, other data"] == pytest.approx((0.75 + 0 + 0 + 0.5) / 4)
    assert "other metric, same data" not in found.index
    assert found["comparisons"].tolist() == [4, 4]


def test_transfer_of_noise_is_chance_and_of_a_fixed_order_is_certain():
    chance = moving.transfer(finished_models(noise(grid(data=("a", "b")), MEAN)))
    assert (chance["low"] < 0.5).all()
    assert (chance["high"] > 0.5).all()
    order = grid(data=("a", "b"))
    order = finished_models(order.assign(**{name: order.groupby(["method", "strength"]).ngroup() for name in MEAN[:2]}))
    assert moving.transfer(order)["rate"].tolist() == [1.0] * 4


def test_other_data_and_other_metric_are_not_mixed_up():
    """Metrics share an order on each data set, and data sets reverse it: other metric certain, other data hopeless."""
    frame = grid(data=("a", "b"), seeds=3)
    order = frame.groupby(["method", "strength"]).ngroup() * np.where(frame["data"] == "a", 1, -1)
    rate = moving.transfer(finished_models(frame.assign(**dict.fromkeys(MEAN[:2], order)))).set_index("kind")["rate"]
    assert rate.to_dict() == {
        "same metric, same data": 1,
        "same metric, other data": 0,
        "other metric, same data": 1,
        "other metric, other data": 0,
    }


def test_a_missing_cell_is_left_out_of_transfer():
    frame = two_by_three({"a": [[1, 1], [2, 3], [3, np.nan]], "b": [[9, 5], [7, 1], [8, 5]]})
    found = moving.transfer(frame).set_index("kind")
    # a, seed 0 chooses setting 2, which is missing at seed 1: no comparison; seed 1 chooses setting 1: beats one of two
    assert found["rate"]["same metric, same data"] == pytest.approx((0.5 + 0.75 + 0.75) / 3)


def test_the_jackknife_covers():
    """Of a U-statistic of pairs of nine units, as transfer's rate is."""

    def make(generator):
        x = generator.normal(loc=0.3, size=9)
        pairs = x[:, None] * x[None, :]

        def statistic(kept):
            part = pairs[np.ix_(kept, kept)]
            return (part.sum() - np.trace(part)) / (len(kept) * (len(kept) - 1))

        return by_leaving_out(statistic, 9)

    assert covered(make, 0.09, 600) == pytest.approx(0.95, abs=0.035)


# L6, choosing


def test_a_perfect_and_a_perverse_selector():
    frame = noise(grid(data=("a",), methods=("beta-vae",), strengths=5, seeds=7), ["mean.mig"])
    found = finished_models(
        frame.assign(**{"free.udr": frame["mean.mig"], "free.dto": frame["mean.mig"], "free.rank": 1.0})
    )
    rows = selection.selection(selection.selection_outcomes(found)).set_index(["pool", "selector"])
    for pool in ("restarts", "settings"):
        assert rows["rate"][pool, "free.udr"] == 1.0  # udr: the largest is preferred
        assert rows["gain"][pool, "free.udr"] == 1.0
        assert rows["rate"][pool, "free.dto"] == 0.0  # dto: the smallest
        assert rows["rate"][pool, "free.rank"] == pytest.approx(0.5)  # says nothing: chooses by lot
        assert (pool, "labels") not in rows.index  # the only metric is the judge
    assert rows["pools"].to_dict()["restarts", "free.udr"] == 5
    assert rows["pools"].to_dict()["settings", "free.udr"] == 7


def test_choosing_by_hand_with_ties_and_missing_cells():
    x = np.array([[2.0, 1.0], [2.0, 9.0], [1.0, np.nan], [0.0, 0.0]])
    y = np.array([5.0, 4.0, 4.0, 1.0])
    win, gained, possible = selection.selection_outcome(x, y)
    # column 0: the first two tie; they beat 3 / 3 and (1/2 + 1) / 3. Column 1: model 1 among 0, 1, 3 beats one of two
    assert win == pytest.approx([(1 + 0.5) / 2, 0.5])
    assert gained == pytest.approx([4.5 - 3.5, 4 - 10 / 3])
    assert possible == pytest.approx([1.5, 5 - 10 / 3])


def test_noise_chooses_by_chance_and_its_interval_covers_one_half():
    frame = grid(methods=("beta-vae", "factor-vae"), strengths=6, seeds=5)
    hits = []
    for seed in range(16):
        found = selection.selection(
            selection.selection_outcomes(finished_models(noise(frame, ["mean.mig", "mean.sap", "free.udr"], seed)))
        )
        hits += [row.low <= 0.5 <= row.high for row in found.itertuples() if row.selector == "free.udr"]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.08)


def test_labels_choose_by_the_metrics_that_do_not_judge_and_are_compared_in_pairs():
    """Two metrics agree, a third is noise; a selector that is the first has their rate against the second."""
    frame = noise(grid(data=("a",), seeds=6), ["mean.mig", "mean.sap"])
    frame = finished_models(frame.assign(**{"mean.beta-vae": frame["mean.mig"], "free.udr": frame["mean.sap"]}))
    chosen = selection.selection_outcomes(frame)
    rate = selection.by_metric(chosen).set_index(["pool", "selector", "metric"])["rate"]
    assert rate["restarts", "labels", "mean.mig"] == pytest.approx(0.75, abs=0.1)  # beta-vae 1, sap about 1/2
    assert rate["restarts", "labels", "mean.sap"] == pytest.approx(0.5, abs=0.15)
    assert rate["restarts", "free.udr", "mean.sap"] == 1.0
    rows = selection.selection(chosen).set_index(["pool", "selector"])
    gap = rows["rate"]["restarts", "free.udr"] - rows["rate"]["restarts", "labels"]
    assert rows["behind"]["restarts", "free.udr"] == pytest.approx(gap)
    assert rows["behind_low"]["restarts", "free.udr"] < gap < rows["behind_high"]["restarts", "free.udr"]


def test_directions_turn_the_correlations():
    frame = noise(grid(data=("a",), methods=("beta-vae",)), ["mean.mig"])
    quality = frame["mean.mig"]
    columns = {name: sign * quality for name, sign in DIRECTIONS.items()}
    found = selection.scores_against_metrics(finished_models(frame.assign(**columns)))
    assert found["rho"].tolist() == [1.0] * len(DIRECTIONS)
    assert DIRECTIONS["unsup.elbo"] == DIRECTIONS["free.udr"] == 1
    assert {DIRECTIONS[f"free.{name}"] for name in ("dto", "dto-over-chance", "entanglement-cost", "rank")} == {-1}


# L7, L8, L2


def test_downstream_efficiency_and_total_correlation_know_their_columns():
    frame = grid(data=("a",), methods=("beta-vae",), strengths=3, seeds=4)
    x = np.arange(12.0)
    numbers = {
        "mean.mig": x,
        "mean.sap": -x,
        "downstream.trees.100": 1 + x,  # rises with mig
        "downstream.trees.10000": 10 + x**2,  # faster: few / many falls
        "unsup.tc-sampled": -frame["strength"],
        "unsup.tc-mean": 2 * frame["strength"],
    }
    found = finished_models(frame.assign(**numbers))
    rho = downstream.downstream_agreement(found).set_index(["a", "b"])["rho"]
    assert rho["downstream.trees.100", "mean.mig"] == 1
    assert rho["downstream.trees.10000", "mean.sap"] == -1
    with_it = efficiency.with_efficiency(found)["efficiency.trees"]
    assert with_it.to_numpy() == pytest.approx((1 + x) / (10 + x**2))
    expected = pd.Series(x).corr(with_it, method="spearman")
    assert efficiency.efficiency(found)["rho"].tolist() == pytest.approx([expected, -expected])
    codes = total_correlation.total_correlation(found).set_index("code")
    assert codes["rho"].to_dict() == {"sampled": -1, "mean": 1}
    assert (codes["weakest"]["mean"], codes["strongest"]["mean"]) == (2.0, 6.0)


def test_efficiency_takes_100_and_the_most_labels():
    columns = {f"downstream.{kind}.{n}": [0.5] for kind, n in (("logistic", 10), ("logistic", 100), ("logistic", 1000))}
    assert efficiency.sizes(pd.DataFrame(columns)) == {"logistic": (100, 1000)}
    assert efficiency.sizes(pd.DataFrame({"downstream.trees.100": [0.5]})) == {}


def test_means_have_students_interval():
    def make(generator):
        return of_mean(generator.random(8))

    assert covered(make, 0.5, 1500) == pytest.approx(0.95, abs=0.02)
    assert all(np.isnan(of_mean([1.0])))


def test_what_diverged_is_infinite_or_stands_twice_does_not_count():
    frame = study(data=("a",), methods=("beta-vae",), strengths=2, seeds=3)
    frame.loc[0, "status"], frame.loc[1, "mean.mig"], frame.loc[3, "status"] = "diverged", np.inf, "exploded"
    found = finished_models(pd.concat([frame, frame[frame["seed"] == 2]]))
    assert len(found) == 4
    assert found["mean.mig"].isna().sum() == 1


def test_worst_against_best_of_pure_noise_is_told_with_what_noise_gives():
    """Chosen by the scores that are compared, the worst of noise wins in a quarter of cases, not in half."""
    rng = np.random.default_rng(0)
    rows = [{"data": "d", "method": m, "strength": s, "seed": seed, "mean.mig": rng.normal()}
            for m in "abcdef" for s in range(6) for seed in range(10)]  # fmt: skip
    noise = overlap.strength_overlap(pd.DataFrame(rows))
    assert noise["p"].mean() < 0.4
    assert noise["p"].mean() == pytest.approx(noise["null"].mean(), abs=0.12)
    real = pd.DataFrame(rows)
    real["mean.mig"] += 10 * real["strength"]
    found = overlap.strength_overlap(real)
    assert found["p"].max() == 0
    assert found["null"].mean() > 0.15
