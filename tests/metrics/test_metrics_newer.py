"""Hand-worked cases of the newer scores, latents that are vectors, latents that do not vote."""

import json
import warnings

import numpy as np
import pytest
from _known import known

from unseam.axes import Factor, FactorSpace
from unseam.cli import main
from unseam.errors import BadInput
from unseam.metrics import consistency, med, med_topk, mig, minimality, omes, restrictiveness, score, sufficiency
from unseam.metrics.dci import concentration
from unseam.metrics.dci_es import es_explicitness, explicit
from unseam.metrics.inputs.latents import USED_STD, USED_VARIANCE, loadings
from unseam.metrics.med import purest, shares
from unseam.metrics.shared.interventions import changed_rows

GRID = np.indices((3, 4, 5)).reshape(3, -1).T  # every combination once


def test_med_is_disentanglement_of_shares_of_information():
    """Latent 0 holds factor 0, latent 1 both: R and the entropies by hand."""
    v = np.indices((2, 2)).reshape(2, -1).T
    z = np.stack([v[:, 0], 2 * v[:, 0] + v[:, 1]], axis=1).astype(float)
    R = np.array([[0.5, 0.5], [0.0, 1.0]])
    H = lambda p: -(p * np.log2(p)).sum()  # noqa: E731
    expected = (0.5 * 1.0 + 1.5 * (1 - H(np.array([1 / 3, 2 / 3])))) / 2
    assert med(z, v).matrix == pytest.approx(R)
    assert med(z, v).value == pytest.approx(expected)
    assert purest(R, 1) == [0, 1]
    assert concentration(shares(np.zeros((2, 3))).T).max() < 1e-9


NEWER = ("med", "med-topk", "minimality", "sufficiency", "consistency", "restrictiveness", "omes")


def test_known_cases_are_ordered_as_they_must_be():
    """perfect, permuted alike, a duplicate forgiven, rotated clearly less, noise at chance and least."""
    found = {}
    for case in ("perfect", "duplicated", "rotated", "noise"):
        z, v = known(case, 1500, (3, 4, 5), 6)
        found[case] = score(z, v, metrics=NEWER, chance=1, ci=4)
    z, v = known("perfect", 1500, (3, 4, 5), 6)
    permuted = score(-z[:, [5, 2, 0, 4, 1, 3]], v, metrics=NEWER)
    for name in NEWER:
        perfect, copy, rotated, noise = (found[case][name] for case in found)
        assert permuted[name].value == pytest.approx(perfect.value, abs=2e-3), name
        assert copy.value > perfect.value - 0.1, name
        assert perfect.value > rotated.value + 0.1 > noise.value + 0.1, name
        assert noise.value == pytest.approx(noise.chance, abs=0.05), name
        assert 0 <= perfect.ci[0] <= perfect.value <= perfect.ci[1] <= 1 + 1e-9, name


def test_top_k_leaves_out_the_impure():
    z = np.hstack([GRID, GRID @ np.array([[1.0], [3.1], [12.7]]), GRID @ np.array([[20.1], [5.3], [1.0]])])
    assert med_topk(z, GRID, k=1).extra["kept"] == [0, 1, 2]
    assert med_topk(z, GRID, k=1).value == pytest.approx(1.0)
    assert med(z, GRID).value < 0.8
    with pytest.raises(BadInput, match="k=0"):
        med_topk(z, GRID, k=0)


def test_minimality_and_sufficiency_by_hand():
    """A latent that holds two factors of 2 and 4 values: H(z) = 3 bits, of which 2 are the better factor's."""
    v = np.indices((2, 4)).reshape(2, -1).T
    z = (4 * v[:, :1] + v[:, 1:]).astype(float)
    assert minimality(z, v).value == pytest.approx(2 / 3)
    assert sufficiency(z, v).value == pytest.approx(1.0)
    half = (v[:, 1:] >= 2).astype(float)  # 1 of the 2 bits of factor 1, none of factor 0
    assert minimality(half, v).value == pytest.approx(1.0)
    assert sufficiency(half, v).value == pytest.approx(0.25)


@pytest.mark.parametrize("degrees", [0, 20, 45])
def test_consistency_and_restrictiveness_of_a_rotation_are_cosines(degrees):
    """z = rotation of two standardised factors: latent 0 has cos^2 of factor 0, and factor 1 moves it by sin^2."""
    z, v = known(f"pairs-{degrees}" if degrees else "perfect", 6000, (5, 5), 2)
    kept = np.cos(np.deg2rad(degrees)) ** 2
    assert consistency(z, v).value == pytest.approx(kept, abs=0.03)
    assert restrictiveness(z, v).value == pytest.approx(kept, abs=0.03)


def test_restrictiveness_sees_latents_that_follow_another_factor_and_consistency_does_too():
    follower = np.stack([GRID[:, 0], GRID[:, 1], GRID[:, 2] + 10 * GRID[:, 0]], axis=1).astype(float)
    found = restrictiveness(follower, GRID)
    assert found.per_factor[1:] == pytest.approx([1.0, 1.0])
    assert found.per_factor[0] < 0.6
    assert consistency(follower, GRID).per_factor[2] < 0.1
    few = consistency(follower[:, :2], GRID)
    assert few.extra["latent_of"][2] == -1
    assert few.per_factor[2] == 0.0


def test_omes_by_hand_on_the_whole_grid():
    assert omes(GRID.astype(float), GRID).value == pytest.approx(1.0)
    doubled = np.hstack([GRID, GRID[:, :1]]).astype(float)  # two latents for factor 0
    found = omes(doubled, GRID)
    assert found.matrix == pytest.approx(np.eye(3)[:, [0, 1, 2, 0]], abs=1e-6)
    assert found.per_factor == pytest.approx([0.5 + 0.5 * 0.75, 1.0, 1.0], abs=1e-6)
    assert omes(doubled, GRID, alpha=1.0).value == pytest.approx(1.0)
    two = np.indices((2, 30)).reshape(2, -1).T
    assert omes(two.astype(float), two).value == pytest.approx(
        1.0, abs=0.02
    )  # 1 - |corr| would call a binary latent blind


def test_pairs_that_differ_in_one_factor_are_uniform_over_partners():
    labels = GRID[:, [0, 2]][np.argsort(GRID[:, 1], kind="stable")]  # every combination four times
    one, two = changed_rows(labels, 0, 30_000, np.random.default_rng(0))
    assert (labels[one, 1] == labels[two, 1]).all()
    assert (labels[one, 0] != labels[two, 0]).all()
    counts = np.bincount(two[one == one[0]], minlength=len(labels))
    assert (counts > 0).sum() == 8  # two other values, four rows each
    assert len(changed_rows(np.arange(100)[:, None].repeat(2, 1), 0, 10, np.random.default_rng(0))[0]) == 0


def test_a_sampler_changes_one_factor_too():
    space = FactorSpace(tuple(Factor(f"f{i}", s) for i, s in enumerate((3, 4, 5))))
    assert omes(sampler=lambda v: v.astype(float), space=space).value == pytest.approx(1.0, abs=0.02)
    assert restrictiveness(sampler=lambda v: v.astype(float), space=space).value == pytest.approx(1.0)
    with pytest.raises(BadInput, match="differ in factor 'factor0' alone"):
        omes(np.arange(300.0), np.stack([np.arange(300), np.arange(300)], axis=1))


def test_explicitness_is_an_area():
    capacity = np.array([0.0, 1.0, 3.0])
    assert explicit(capacity, np.array([0.4, 0.2, 0.0]), 0.8) == pytest.approx(1 - 2 * (0.3 + 0.2) / (3 * 0.8))
    assert explicit(capacity, np.array([0.2, 0.9, 0.2]), 0.8) == 1.0  # more capacity never counts against a code
    rng = np.random.default_rng(0)
    v = rng.uniform(-1, 1, (1500, 1))
    found = [es_explicitness(z, v, kinds=["continuous"]).value for z in (v, np.hstack([np.cos(3 * v), np.sin(3 * v)]))]
    assert found[0] == pytest.approx(1.0, abs=0.01)
    assert found[1] < 0.9


def test_groups_become_their_first_component_and_any_metric_reads_them():
    z, v = known("perfect", 900, (3, 4), 2)
    vectors = np.hstack([z[:, :1] * [1.0, -2.0, 0.5], z[:, 1:] * [0.3, 3.0]])
    found = score(vectors, v, metrics="mig,mcc,omes", groups="0-2,3-4", variances=np.full(vectors.shape, 0.1))
    plain = score(z, v, metrics="mig,mcc,omes")
    assert {n: s.value for n, s in found.items()} == pytest.approx({n: s.value for n, s in plain.items()}, abs=1e-6)
    assert not found.notes
    assert found.inputs.variances == pytest.approx(np.full((900, 2), 0.1))


def test_several_components_are_read_by_some_metrics_and_refused_by_the_others():
    v = np.random.default_rng(0).integers(0, 4, (600, 2))
    one_hot = np.hstack([np.eye(4)[v[:, 0]], np.eye(4)[v[:, 1]]])  # no single direction holds a factor
    settings = {"groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "kinds": ["categorical"]}
    with pytest.warns(UserWarning, match=r"1 component\(s\) keep 3\d% of its variance"):
        score(one_hot, v, metrics="irs", **settings)
    many = score(one_hot, v, components=3, **settings)
    assert many["dci-disentanglement"].per_latent.shape == (2,)
    assert many["dci-disentanglement"].matrix.shape == (2, 2)
    assert many["dci-disentanglement"].value > 0.95
    assert many["dci-informativeness"].value > 0.99
    assert (
        "mig reads one number per latent; give components=1. Vectors are read by explicitness, dci"
        in many.refused["mig"]
    )
    with pytest.raises(BadInput, match="reads one number per latent"):
        mig(one_hot, v, components=2, **settings)


@pytest.mark.parametrize(
    ("groups", "why"),
    [("0-1", "leave out latent"), ("0-1,1-3", "share no latent"), ("0-4", "the codes have 0..3"),
     ("3-1", "not a group"),
     ("a", "not a group"), ([[0, 1], []], "non-empty")],
)  # fmt: skip
def test_groups_that_are_none_are_refused(groups, why):
    with pytest.raises(BadInput, match=why):
        loadings(np.eye(4), groups)


def passive_codes(n=4000):
    """Two factors in two latents, and two latents that nobody uses, whose tiny means know a factor all the same."""
    rng = np.random.default_rng(0)
    v = rng.integers(0, 8, (n, 2))
    return np.hstack([v, 1e-3 * (v + 0.3 * rng.normal(size=(n, 2)))]).astype(float), v


def test_passive_latents_are_named_and_do_not_vote_when_told():
    z, v = passive_codes()
    with pytest.warns(UserWarning, match=r"latent\(s\) 2, 3 vary less than 5% of the largest"):
        before = score(z, v, metrics="mig")
    after = score(z, v, metrics="mig", active=[0, 1])
    assert before["mig"].value < 0.6
    assert after["mig"].value > 0.99
    assert after["mig"].matrix.shape == (2, 4)  # they keep their place
    assert before.to_json()["passive"] == after.to_json()["passive"] == [2, 3]
    assert score(z, v, metrics="mig", active=[True, True, False, False])["mig"].value == after["mig"].value
    for bad in ([0, 4], [True], "01", [0.5]):
        with pytest.raises(BadInput, match="active="):
            score(z, v, metrics="mig", active=bad)


def test_variances_say_which_latents_are_passive_by_the_one_rule():
    from unseam.geometry import polarized

    assert (USED_STD, USED_VARIANCE) == (polarized.ACTIVE_STD, polarized.ACTIVE_VARIANCE)
    z, v = passive_codes(200)
    z[:, :2] *= 0.01  # small codes, of a sharp posterior: in use
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = score(z, v, metrics="mig", variances=np.tile([1e-4, 1e-4, 0.99, 1.0], (200, 1)))
    assert found.inputs.suspects == (2, 3)


def test_the_command_line_knows_groups_and_active(tmp_path, capsys):
    z, v = passive_codes(300)
    np.save(tmp_path / "z.npy", np.hstack([z[:, :2], z[:, :2] * 2]))
    np.save(tmp_path / "v.npy", v)
    files = [str(tmp_path / "z.npy"), str(tmp_path / "v.npy"), "--metrics", "mig", "--json"]
    assert main(["score", *files, "--active", "0,1"]) == 0
    assert json.loads(capsys.readouterr().out)["passive"] == [2, 3]
    assert main(["score", *files, "--groups", "0,2,1,3"]) == 0
    assert len(json.loads(capsys.readouterr().out)["scores"]["mig"]["matrix"][0]) == 4
    assert main(["score", *files, "--groups", "0-1,2-3", "--components", "2"]) == 2
    assert "reads one number per latent" in capsys.readouterr().err


def test_explicitness_of_noise_says_that_nothing_was_read() -> None:
    """1 by definition, for no probe helps: the number must not stand alone."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 5, (900, 2))
    codes = np.stack([factors[:, 0], rng.normal(size=900)], axis=1)
    with pytest.warns(UserWarning, match="no probe reads factor1 much better"):
        noisy = score(codes, factors, metrics="es-explicitness")["es-explicitness"]
    assert noisy.value > 0.95
    assert score(factors.astype(float), factors, metrics="es-explicitness")["es-explicitness"].notes == ()
