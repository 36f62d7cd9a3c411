"""Do the members of a cohort agree? On models made to agree, and on a trained cohort, kept and shown."""

import json

import numpy as np
import pytest

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.metrics import model_centrality
from unseam.metrics.centrality import Generative
from unseam.run import Member, Run
from unseam.runs import rank_members as module
from unseam.runs.rank_members import NOTHING, comparable_groups, median_udr, member_agreement
from unseam.runs.represent import EncodedRows

Z = np.random.default_rng(0).normal(size=(600, 4))
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
ALL = np.ones(4, bool)


def model(forth, back, active=ALL):
    return Generative(back, forth, back(forth(Z)), active)


def plain():
    return model(lambda z: z, lambda x: x)


def turned(seed):
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
    return model(lambda z: z @ q.T, lambda x: x @ q)


def noise():
    return model(lambda z: z, lambda x: np.random.default_rng(2).normal(size=x.shape))


CASES = {  # a model among three plain ones: how central it may be
    "perfect": (plain(), 0.95, 1.0),
    "permuted": (model(lambda z: z[:, ::-1], lambda x: x[:, ::-1]), 0.95, 1.0),
    "duplicated": (Generative(lambda x: np.hstack([x, x[:, :1]]), lambda z: z[:, :4], np.hstack([Z, Z[:, :1]]),
                              np.ones(5, bool)), 0.8, 0.99),
    "rotated": (turned(1), 0.6, 0.9),
    "noise": (noise(), 0.4, 0.75),  # it understands nobody, though its own pictures are plain
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_centrality_of_known_cases(case):
    member, low, high = CASES[case]
    found = model_centrality([plain(), plain(), plain(), member])
    assert low <= found[3].value <= high
    assert 0.6 < found[0].chance < 0.95  # the FactorVAE score forgives rotations
    if case in ("rotated", "noise"):
        assert np.argmin([s.value for s in found]) == 3
    assert np.isnan(found[3].matrix[0, 3])


def test_strangers_lie_at_chance_and_passive_latents_have_no_say():
    strangers = model_centrality([turned(seed) for seed in range(6)])
    assert np.mean([s.value for s in strangers]) == pytest.approx(np.mean([s.chance for s in strangers]), abs=0.08)
    half = np.array([True, True, False, False])
    found = model_centrality([model(lambda z: z, lambda x: x, half), model(lambda z: z, lambda x: x, half)])
    assert [s.value for s in found] == pytest.approx([1.0, 1.0], abs=0.03)
    assert found[0].chance > 0.8  # two latents say little: their random axes are understood as well
    with pytest.raises(BadInput, match="at least 2"):
        model_centrality([plain()])


def test_udr_of_seeds_and_its_chance_level():
    rng = np.random.default_rng(0)
    codes = {0: Z, 1: -(Z[:, ::-1] ** 3), 2: Z + 0.1 * rng.normal(size=Z.shape), 3: Z @ TURN}
    found = median_udr(codes, 0)
    assert found[0][0] > 0.85
    assert found[3][0] == pytest.approx(found[3][1], abs=0.15)
    assert found[3][0] < found[0][0] - 0.2
    assert all(0.2 < chance < 0.6 for _, chance in found.values())


def test_a_cohort_is_compared_once_and_told(tmp_path, capsys, monkeypatch):
    u = np.random.default_rng(0).normal(size=(600, 3))
    x = u[:, [0] * 7 + [1] * 4 + [2] * 2]  # principal axes of unlike sizes, which every seed finds
    x = x + 0.1 * np.random.default_rng(1).normal(size=x.shape)
    run = unseam.fit(x, "beta-vae", steps=400, network="linear", latents=3, seeds=[0, 1, 2], beta=0.1, lr=0.02,
                     out=tmp_path / "run", show=False, workers=1)  # fmt: skip
    assert main(["diagnose", str(run.folder), "--no-figures", "--json", "--points", "50"]) == 0
    document = json.loads(capsys.readouterr().out)
    row = document["members"][0]
    assert row["udr"] > row["udr_chance"] > 0
    assert row["centrality"] > row["centrality_chance"]
    assert document["ranking"]["seeds"]["0"]["udr"] == row["udr"]
    monkeypatch.setattr(module, "compare_members", lambda *_: pytest.fail("computed again"))
    assert member_agreement(run, [0, 1, 2])[0].udr == row["udr"]
    assert main(["diagnose", str(run.folder), "--no-figures", "--points", "50"]) == 0
    assert f"UDR {row['udr']:.2f} (random axes {row['udr_chance']:.2f})" in capsys.readouterr().out


def test_passive_latents_of_a_run_are_not_compared(tmp_path, monkeypatch):
    run = unseam.fit("synth-linear", "pcl", steps=2, network="linear", latents=3, seeds=[0, 1], workers=1, show=False,
                     data_parameters={"size": 50}, out=tmp_path / "run")  # fmt: skip
    asked = {}
    monkeypatch.setattr(EncodedRows, "in_use", np.array([True, False, True]))
    monkeypatch.setattr(
        module, "median_udr", lambda codes, seed: asked.update(codes) or dict.fromkeys(codes, (1.0, 0.5))
    )
    assert module.compare_members(run, [0, 1], run.split("all"), 0)[1].udr == 1.0
    whole = run.model(1).encode(run.data.batch(run.split("all"))).mean.detach().numpy()
    np.testing.assert_allclose(asked[1], whole[:, [0, 2]], atol=1e-6)


def test_members_of_one_setting_are_compared_with_each_other():
    class Fake:
        members = tuple(Member(0, {"beta": b}) for b in (1.0, 1.0, 2.0, 2.0, 3.0))
        same_setting = Run.same_setting

    assert comparable_groups(Fake(), [0, 1, 2, 3]) == [[0, 1], [2, 3]]
    assert comparable_groups(Fake(), [0, 1, 2, 3, 4]) == [[0, 1, 2, 3, 4]]
    assert NOTHING.udr is None
