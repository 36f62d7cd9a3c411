"""BetaVAE and FactorVAE scores, IRS: by hand, by brute force, and arrays against a sampler."""

from dataclasses import replace

import numpy as np
import pytest

from unseam.axes import Factor, FactorSpace, Representation
from unseam.errors import BadInput
from unseam.metrics import beta_vae, consistency, factor_vae, irs, mig, score_representation
from unseam.metrics.inputs import prepare_inputs
from unseam.metrics.shared import interventions
from unseam.metrics.shared.interventions import Matched, Sampled
from unseam.metrics.shared.uncertainty import half_sample

SPACE = FactorSpace((Factor("a", 3), Factor("b", 4), Factor("c", 5)))
RNG = np.random.default_rng(0)
SMALL = {"train": 1500, "test": 800}


def draw(n):
    return np.stack([RNG.integers(0, f.size, n) for f in SPACE], axis=1)


def rotated(factors):
    q = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    return (factors - factors.mean(axis=0)) @ q


@pytest.mark.parametrize("metric", [beta_vae, factor_vae])
def test_a_perfect_code_scores_one(metric):
    assert metric(space=SPACE, sampler=lambda v: v.astype(float), **SMALL).value == 1.0


@pytest.mark.parametrize("metric", [beta_vae, factor_vae])
def test_noise_scores_one_in_three(metric):
    noise = np.random.default_rng(1)
    score = metric(space=SPACE, sampler=lambda v: noise.normal(size=(len(v), 4)), **SMALL)
    assert score.value == pytest.approx(1 / 3, abs=4 * np.sqrt(2 / 9 / 800))


@pytest.mark.parametrize("metric", [beta_vae, factor_vae])
def test_arrays_and_sampler_agree_within_sampling_error(metric):
    mean = np.array([1.0, 1.5, 2.0])
    q = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]

    def encode(factors):
        return (factors - mean) @ q

    sampled = [metric(space=SPACE, sampler=encode, seed=seed, **SMALL) for seed in range(10)]
    tables = [draw(4000) for _ in range(10)]
    matched = [metric(encode(v), v, SPACE, test_codes=encode(v), test_factors=v, **SMALL).value for v in tables]
    values = np.array([score.value for score in sampled])
    error = np.hypot(values.std(ddof=1), np.std(matched, ddof=1)) / np.sqrt(10)
    assert np.mean(matched) == pytest.approx(values.mean(), abs=4 * error)
    assert 4 * error < 0.1
    binomial = np.sqrt(values * (1 - values) / 800)
    assert [score.extra["test_standard_error"] for score in sampled] == pytest.approx(binomial)


def test_beta_vae_is_fooled_by_a_missing_factor():
    """Kim & Mnih 2018: with all factors but one the BetaVAE score is still 100 %; the FactorVAE score is not."""

    def encode(v):
        return np.column_stack([v[:, :2], np.random.default_rng(len(v)).normal(size=len(v))]).astype(float)

    assert beta_vae(space=SPACE, sampler=encode, **SMALL).value > 0.99
    assert factor_vae(space=SPACE, sampler=encode, **SMALL).value < 0.9


def test_factor_vae_ignores_the_scale_of_latents():
    v = draw(2000)
    z = rotated(v.astype(float))
    scores = [factor_vae(z * s, v, SPACE, **SMALL).value for s in (1.0, np.array([1.0, 100.0, 0.01]))]
    assert scores[0] == scores[1]


def test_factor_vae_prunes_constant_latents():
    v = draw(2000)
    z = np.column_stack([np.full(2000, 7.0), v])
    score = factor_vae(z, v, SPACE, **SMALL)
    assert score.value == 1.0
    assert score.matrix[:, 0].max() == 0
    assert factor_vae(np.ones((2000, 2)), v, SPACE, **SMALL).value == 0.0


def four_of_five(collapsed):
    """Five factors, four latents that hold four of them, and collapsed latents beside them as a trained VAE has."""
    rng = np.random.default_rng(0)
    v = rng.integers(0, 5, (4000, 5))
    return np.hstack([v[:, :4] - 2.0, 1e-3 * rng.normal(size=(4000, collapsed))]), v


def test_collapsed_latents_of_a_run_do_not_vote():
    z, v = four_of_five(6)
    alone = factor_vae(z[:, :4], v)
    beside = score_representation(Representation(z, factors=v), metrics="factor-vae")["factor-vae"]
    assert beside.value == pytest.approx(alone.value, abs=0.03)
    assert beside.settings["prune"] == 0.05
    assert beside.settings["pruned"] == [4, 5, 6, 7, 8, 9]
    assert factor_vae(z, v, prune=0.05).value == beside.value


def test_arrays_have_no_unit_and_are_not_pruned():
    z, v = four_of_five(6)
    assert factor_vae(z, v).value > factor_vae(z[:, :4], v).value + 0.1
    assert factor_vae(1e-3 * z[:, :4], v).value == factor_vae(z[:, :4], v).value


def test_every_metric_takes_a_sampler():
    assert mig(sampler=lambda v: v.astype(float), space=SPACE).value == pytest.approx(1.0, abs=0.01)
    with pytest.raises(BadInput, match="space"):
        mig(sampler=lambda v: v.astype(float))


def test_matched_rows_share_the_value():
    v = draw(300)
    table = prepare_inputs(np.column_stack([np.arange(300.0), v]), v, SPACE)
    source = Matched(table.rows)
    which = np.array([0, 1, 2, 0])
    batch = source.codes(source.fixed(which, 16, RNG))
    one, two = map(source.codes, source.pairs(which, 16, RNG))
    for p, f in enumerate(which):
        assert len(np.unique(batch[p, :, 1 + f])) == 1
        assert np.array_equal(one[p, :, 1 + f], two[p, :, 1 + f])
    assert len(np.unique(one[0, :, 0])) > 8


def test_matched_partners_are_uniform_over_the_group():
    v = np.array([[0], [0], [0], [1]])
    source = Matched(prepare_inputs(np.arange(4.0), v).rows)
    batch = source.codes(source.fixed(np.zeros(4000, int), 3, RNG))[..., 0]
    counts = np.bincount(batch[batch < 3].astype(int))
    assert counts.min() > 0.95 * counts.mean()


def test_a_sampler_holds_the_factor():
    source = Sampled(lambda v: v, SPACE)
    batch = source.fixed(np.array([2, 0]), 20, RNG)
    assert len(np.unique(batch[0, :, 2])) == len(np.unique(batch[1, :, 0])) == 1
    one, two = source.pairs(np.array([1]), 50, RNG)
    assert np.array_equal(one[0, :, 1], two[0, :, 1])
    assert not np.array_equal(one[0, :, 0], two[0, :, 0])
    assert len(np.unique(one[0, :, 1])) > 1


@pytest.mark.parametrize("metric", [beta_vae, factor_vae])
def test_draws_are_made_once_for_all_codes_of_the_same_factors(metric, monkeypatch):
    v = draw(300)
    codes = [rotated(v) + 0.3 * np.random.default_rng(seed).normal(size=v.shape) for seed in (0, 1)]
    first, second = (prepare_inputs(z, v, SPACE) for z in codes)
    metric.of(first, **SMALL)
    expected = metric.of(second, **SMALL)
    monkeypatch.setattr(Matched, "partners", None)  # nothing is drawn again
    monkeypatch.setattr(Matched, "pairs", None)
    found = metric.of(replace(second, for_factors=first.for_factors), **SMALL)
    assert found.value == expected.value
    assert found.per_factor.tolist() == expected.per_factor.tolist()


@pytest.mark.parametrize("metric", [beta_vae, factor_vae])
def test_draws_of_all_rows_are_not_used_for_half_of_them(metric):
    v = draw(300)
    inputs = prepare_inputs(rotated(v), v, SPACE, test_codes=rotated(v), test_factors=v)
    metric.of(inputs, **SMALL)
    half = half_sample(inputs, np.random.default_rng(0))
    rows, held_out = half.rows, half.held_out
    alone = prepare_inputs(rows.codes, rows.values, SPACE, test_codes=held_out.codes, test_factors=held_out.values)
    assert metric.of(half, **SMALL).value == metric.of(alone, **SMALL).value


def test_codes_are_reduced_in_blocks_as_they_are_at_once(monkeypatch):
    v = draw(300)
    source = Matched(prepare_inputs(RNG.normal(size=(300, 4)).astype(np.float32), v, SPACE).rows)
    rows = source.fixed(RNG.integers(0, 3, 50), 16, RNG)
    whole = source.codes(rows)
    monkeypatch.setattr(interventions, "_CACHE", 7 * 16 * 4)  # seven points
    assert np.array_equal(interventions.by_point(source, lambda z: z.max(0), rows), whole.max(1))
    found = interventions.by_point(source, lambda z: z.mean(0), rows)
    np.testing.assert_allclose(found, whole.mean(1), rtol=1e-5, atol=1e-6)


def test_more_draws_than_fit_are_not_kept(monkeypatch):
    v = draw(300)
    inputs = prepare_inputs(rotated(v), v, SPACE)
    few = [metric.of(inputs, **SMALL).value for metric in (beta_vae, factor_vae)]
    monkeypatch.setattr(interventions, "_CHUNK", 10_000)
    fresh = prepare_inputs(rotated(v), v, SPACE)
    many = [metric.of(fresh, **SMALL).value for metric in (beta_vae, factor_vae)]
    assert fresh.for_factors == {}
    assert few == pytest.approx(many, abs=4 * np.hypot(0.018, 0.018))


@pytest.mark.parametrize("metric", [beta_vae, factor_vae, irs])
def test_continuous_factors_are_refused(metric):
    with pytest.raises(BadInput, match="continuous"):
        metric(RNG.normal(size=(50, 2)), RNG.uniform(size=(50, 2)))


def brute_irs(z, v, quantile):
    z = z[:, z.var(axis=0) > 0]
    spread = np.abs(z - z.mean(axis=0)).max(axis=0)
    moved = np.zeros((z.shape[1], v.shape[1]))
    for f in range(v.shape[1]):
        groups = [z[v[:, f] == c] for c in np.unique(v[:, f])]
        moved[:, f] = np.mean(
            [np.percentile(np.abs(g - g.mean(axis=0)), 100 * quantile, axis=0) for g in groups], axis=0
        )
    return np.average((1 - moved / spread[:, None]).max(axis=1), weights=spread)


@pytest.mark.parametrize("quantile", [0.5, 0.99, 1.0])
def test_irs_is_the_brute_force_one(quantile):
    v = draw(700)
    z = np.column_stack([v + 0.2 * RNG.normal(size=v.shape), RNG.normal(size=700), np.ones(700)])
    assert irs(z, v, SPACE, quantile=quantile).value == pytest.approx(brute_irs(z, v, quantile), abs=1e-6)


def test_irs_cuts_a_fine_factor_into_twenty():
    v = RNG.integers(0, 40, (2000, 1))
    z = np.column_stack([v, RNG.normal(size=2000)]).astype(float)
    coarse = np.digitize(v[:, 0], np.histogram(v[:, 0], 20)[1][1:-1])[:, None]
    assert irs(z, v).value == pytest.approx(brute_irs(z, coarse, 0.99), abs=1e-6)


def test_irs_of_a_constant_code_is_zero():
    assert irs(np.ones((60, 2)), draw(60)).value == 0.0


@pytest.mark.parametrize("values", [10, 100])
def test_noise_is_not_consistent(values):
    """A row was paired with itself once in (rows of its value) times: noise of 100 values in 400 rows scored 0.255."""
    rng = np.random.default_rng(0)
    v, z = rng.integers(0, values, (400, 2)), rng.normal(size=(400, 2))
    raw = [1 - float(x) for x in _moved(v, z)]
    assert abs(np.mean(raw)) < 0.12
    assert consistency(z, v).value < 0.12
    assert consistency(v.astype(float), v).value == pytest.approx(1)


def _moved(v, z):
    """E |z - z'|^2 over pairs of different rows that share a value, every one of them, over that of all pairs."""
    for f in range(2):
        same = (v[:, None, f] == v[None, :, f]) & ~np.eye(len(v), dtype=bool)
        gap = (z[:, None, f] - z[None, :, f]) ** 2
        weight = same / np.maximum(same.sum(1, keepdims=True), 1)  # every row that has a partner counts once
        yield (gap * weight).sum() / (weight.sum() * 2 * z[:, f].var())


def test_rows_that_share_nothing_are_refused():
    v = np.stack([np.arange(40), np.arange(40) % 2], 1)
    with pytest.raises(BadInput, match="no two rows share a value of factor 0"):
        consistency(np.random.default_rng(0).normal(size=(40, 2)), v)
