"""What every metric in METRICS must do, walked over the whole registry. Exceptions are named, with the reason."""

import inspect
import re
import subprocess
import sys
import warnings
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from _known import known

from unseam.errors import BadInput
from unseam.metrics import METRICS, mig, sap, score
from unseam.metrics.inputs import prepare_inputs

SIZES = (2, 3, 4)
# the large downstream sizes need more rows than a unit test has
NAMES = [n for n in METRICS if not n.endswith(("-1000", "-10000")) and not n.startswith("efficiency")]
SUPERVISED = [n for n in NAMES if METRICS[n].supervised]
ARRAYS = [n for n in NAMES if n != "gaussian-tc-sampled"]
TREES = {n for n in NAMES if n.startswith("dci-") or "trees" in n}


@cache
def table(case, n=900):
    z, v = known(case, n, SIZES, 4)
    return z.astype(np.float64), v


@cache
def values(case, change="none"):
    """Values of every metric on a known case, its codes changed in some way."""
    z, v = table(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: s.value for name, s in score(CHANGES[change](z), v, metrics=ARRAYS).items()}


CHANGES = {
    "none": lambda z: z,
    "permuted": lambda z: z[:, [2, 0, 3, 1]],
    "negated": lambda z: -z,
    "larger": lambda z: 4 * z,
    "dead": lambda z: np.hstack([z, np.full((len(z), 1), 3.0)]),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_row_cites_its_paper_and_asks_something(name):
    assert re.search(r"\b(19|20)\d\d, (arXiv:|openreview |eq\. )", METRICS[name].paper)
    assert METRICS[name].question.endswith(("?", "."))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_score_says_where_it_comes_from(name):
    z, v = table("noisy-0.3")
    result = score(z, v, metrics=name)[name]
    low, high = METRICS[name].range
    assert low <= result.value <= high + 1e-9
    assert result.name == name
    assert result.settings
    assert result.per_factor is None or result.per_factor.shape == (3,)
    assert result.per_latent is None or result.per_latent.shape == (4,)
    if METRICS[name].supervised and result.matrix is not None:
        assert result.matrix.shape == (3, 4)


@pytest.mark.parametrize("name", ARRAYS)
def test_the_order_of_latents_does_not_matter(name):
    # trees take the first of two latents that split equally well; with 10 labels that happens often
    # the random cosines of es-explicitness look in other directions
    tolerance = {"downstream-trees-10": 0.06, "es-explicitness": 0.02}.get(name, 0.01 if name in TREES else 1e-3)
    assert values("noisy-0.3", "permuted")[name] == pytest.approx(values("noisy-0.3")[name], abs=tolerance)


@pytest.mark.parametrize("name", ARRAYS)
def test_the_sign_of_latents_does_not_matter(name):
    # trees cut between sorted values, and where exactly depends on the side they come from
    tolerance = 0.02 if name in TREES or name == "es-explicitness" else 2e-3
    assert values("noisy-0.3", "negated")[name] == pytest.approx(values("noisy-0.3")[name], abs=tolerance)


@pytest.mark.parametrize("name", ARRAYS)
def test_the_unit_of_the_codes_does_not_matter(name):
    before, after = values("noisy-0.3")[name], values("noisy-0.3", "larger")[name]
    if name == "wasserstein-dependency":  # a squared distance in code space
        before *= 16
    # sap and beta-vae fit regularised linear models on raw codes, as their reference does
    tolerance = {"sap": 0.05, "beta-vae": 0.02}.get(name, 1e-3)
    assert after == pytest.approx(before, abs=tolerance, rel=1e-6)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_dead_latent_changes_nothing(name):
    before, after = values("noisy-0.3")[name], values("noisy-0.3", "dead")[name]
    if METRICS[name].counts:
        assert after != before
    else:
        assert after == pytest.approx(before, abs=1e-3)


@cache
def with_passive():
    """The same codes alone, and beside three latents that know every factor, hardly vary and do not vote."""
    z, v = table("noisy-0.3")
    quiet = 1e-3 * np.stack([v[:, 0] - v[:, 1], v[:, 2], v.sum(1)], axis=1)
    known = {"variances": np.full_like(z, 0.05), "metrics": NAMES}
    alone = score(z, v, **known)
    known["variances"] = np.hstack([known["variances"], np.ones_like(quiet)])
    return (
        alone,
        score(np.hstack([z, quiet]), v, **known),
        score(np.hstack([z, quiet]), v, active=[0, 1, 2, 3], **known),
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_latent_without_a_vote_changes_nothing_but_what_the_metric_says(name):
    """`evaluate`, the report and the explorer score a run so; docs/metrics/inputs.md has the exceptions."""
    alone, _, masked = (found[name].value for found in with_passive())
    if METRICS[name].counts:
        assert masked != pytest.approx(alone, abs=1e-3)
    else:  # two draws of the posterior's noise are not the same one
        assert masked == pytest.approx(alone, abs=0.02 if name == "gaussian-tc-sampled" else 1e-3)


def test_such_latents_would_have_been_heard():
    """Else the test above could not fail: most metrics change when these latents vote."""
    alone, voting, _ = with_passive()
    assert sum(abs(alone[name].value - voting[name].value) > 0.02 for name in NAMES) > len(NAMES) / 2


# (ceiling, tolerance) of a perfect code with one more latent of noise, where it is not 1; docs/metrics has the reasons
CEILING = {
    "mig-sup": (0.75, 0.03),  # three of four latents hold a factor
    "med": (0.95, 0.02),  # plug-in information gives the latent of noise a share of every factor
    "med-topk": (0.95, 0.02),
    "ds": (2.0, 0.35),  # 1, 2 and 3 for 2, 3 and 4 classes, as printed; a second latent guesses a little above chance
    "partition-information": (-1.5 * np.log(1e-9), 0.1),  # three factors at the most nats that a latent can hold
}
WITHOUT_NOISE = (
    "irs",
    "modularity",
    "infom",
    "minimality",
    "omes",
    "es-size",
)  # the latent of noise counts against them: without it they reach 1
TWO_CLASSES = {"sap": 0.5, "downstream-logistic-10": 1.0, "downstream-trees-10": 1.0}  # more need more lines, or labels


@pytest.mark.parametrize("name", SUPERVISED)
def test_a_perfect_code_reaches_the_ceiling(name):
    z, v = table("perfect")
    if name in TWO_CLASSES:
        assert score(z, v[:, :1], metrics=name)[name].value == pytest.approx(TWO_CLASSES[name], abs=0.05)
    elif name in WITHOUT_NOISE:
        assert score(z[:, :3], v, metrics=name)[name].value == pytest.approx(1.0, abs=0.02)
    else:
        ceiling, tolerance = CEILING.get(name, (1.0, 0.03))
        assert values("perfect")[name] == pytest.approx(ceiling, abs=tolerance)


# ratios of the little information that noise has: modularity's, infom's and infoc's chance level is anything
UNSTABLE_ON_NOISE = {"modularity", "infom", "infoc"}


@pytest.mark.parametrize("name", [n for n in SUPERVISED if n not in UNSTABLE_ON_NOISE])
def test_noise_scores_near_chance(name):
    z, v = table("noise")
    result = score(z, v, metrics=name, chance=2)[name]
    assert result.chance is not None
    assert result.value == pytest.approx(result.chance, abs=0.12)


# with 10 labels the draw of the labels matters more than the noise
# es-explicitness is 1 for noise too: no probe helps
MONOTONE = [n for n in SUPERVISED if n not in {*UNSTABLE_ON_NOISE, "es-explicitness"} and not n.endswith("-10")]


@pytest.mark.parametrize("name", MONOTONE)
def test_more_noise_never_scores_clearly_higher(name):
    found = [values(case)[name] for case in ("perfect", "noisy-0.1", "noisy-0.3", "noisy-1", "noise")]
    assert all(later <= earlier + 0.05 for earlier, later in pairwise(found))


@pytest.mark.parametrize("name", ARRAYS)
def test_the_same_seed_gives_the_same_score(name):
    z, v = table("noisy-1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (score(z, v, metrics=name, seed=5)[name].value for _ in range(2))
    assert one == two


@pytest.mark.parametrize("name", ARRAYS)
def test_continuous_factors_are_used_or_refused_with_the_reason(name):
    rng = np.random.default_rng(0)
    v = rng.uniform(size=(400, 2))
    result, reason = value_or_reason(v + 0.01 * rng.normal(size=v.shape), v, name)
    if result is None:
        assert "continuous" in reason
    else:
        assert np.isfinite(result.value)
        assert "equal-width" not in str(result.settings.get("estimator", ""))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_code_without_any_life_gets_a_number_or_a_reason(name):
    v = np.stack([np.arange(240) % 2, np.arange(240) // 2 % 3], axis=1)
    result, reason = value_or_reason(np.ones((240, 3)), v, name)
    assert "constant" in reason if result is None else np.isfinite(result.value)


def value_or_reason(z, v, name):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return score(z, v, metrics=name)[name], ""
    except BadInput as reason:
        return None, str(reason)


def test_importing_the_metrics_does_not_import_torch():
    code = (
        "import sys, unseam.metrics; from unseam.metrics.inputs.read import read_array; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_public_call_names_a_wrong_setting():
    z, v = table("perfect")
    with pytest.raises(BadInput, match="'bin' is unknown; did you mean 'bins'"):
        mig(z, v, bin=10)
    assert str(inspect.signature(mig)).endswith("bins: 'int' = 20, estimator: 'Estimator' = 'histogram')")


def test_the_public_call_and_the_row_are_one_formula():
    """Settings reach the formula, inputs reach the door."""
    z, v = table("noisy-0.3")
    assert mig(z, v).value == METRICS["mig"].compute(prepare_inputs(z, v)).value == mig.of(prepare_inputs(z, v)).value
    assert mig(z, v, bins=5).value == mig.of(prepare_inputs(z, v), bins=5).value != mig(z, v).value
    assert sap(z, v, seed=3).value == sap.of(prepare_inputs(z, v, seed=3)).value != sap(z, v).value


def test_too_few_rows_for_the_labels_say_how_many_are_needed():
    z, v = table("perfect")
    with pytest.raises(BadInput, match=r"needs 1000 training rows, got 600.*at least 1500 rows"):
        score(z, v, metrics="downstream-logistic-1000")


def test_everything_at_once_shares_the_expensive_parts():
    z, v = table("noisy-0.3")
    scores = score(z, v)
    assert scores["mig"].matrix is scores["modularity"].matrix
    assert scores["dci-completeness"].matrix is scores["dci-informativeness"].matrix
    assert set(scores) | set(scores.refused) == set(METRICS)
    assert "needs 10000 training rows" in scores.refused["downstream-trees-10000"]
    assert "variances" in scores.refused["gaussian-tc-sampled"]


def test_the_large_downstream_sizes():
    z, v = known("noisy-0.1", 15_000, (2, 3), 3)
    names = [n for n in METRICS if n.endswith(("-1000", "-10000")) or n.startswith("efficiency")]
    found = score(z, v, metrics=[*names, "dci-informativeness"], test_codes=z[10_000:], test_factors=v[10_000:])
    assert all(0.8 < found[n].value <= 1.01 for n in names)
    rows = prepare_inputs(z[:10_000], v[:10_000], test_codes=z[10_000:], test_factors=v[10_000:])
    shared = METRICS["downstream-trees-10000"].compute(rows)
    assert np.array_equal(shared.per_factor, METRICS["dci-informativeness"].compute(rows).per_factor)


@pytest.mark.parametrize("scale", [1e-7, 1e-30])
def test_small_codes_score_as_large_ones(scale: float) -> None:
    rng = np.random.default_rng(0)
    v = rng.integers(0, 3, (120, 2))
    z = (v + 0.3 * rng.normal(size=v.shape)).astype(np.float32)
    names = "mcc,sap-r2,explicitness,factor-vae,infoe,mig,downstream-logistic-10"
    large, small = (score(k * z, v, metrics=names, workers=1) for k in (np.float32(1), np.float32(scale)))
    assert {n: s.value for n, s in small.items()} == pytest.approx({n: s.value for n, s in large.items()}, abs=2e-3)
