"""Z11 to Z13: verdicts on made-up scores, that can fail."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from unseam_papers.frame.exhibit import Work
from unseam_papers.frame.rows import keyed
from unseam_papers.zietlow import broken, perturbed_scores, spread_on_perturbed, stronger_on_perturbed
from unseam_papers.zietlow.broken import METRIC_TABLES, PLACES


def cohort(value, active=3, n=6):
    spread = np.linspace(-0.02, 0.02, n)
    scores = {metric: (value + spread).tolist() for metric in METRIC_TABLES}
    return {**scores, "mig_per_factor": [[value + s] * 3 for s in spread], "active": [active] * n}


def places(original, perturbed, noise):
    return dict(zip(PLACES, map(cohort, (original, perturbed, noise)), strict=True))


@pytest.fixture
def numbers():
    scores = {"beta-vae": places(0.5, 0.2, 0.48), "pcl": places(0.3, 0.31, 0.29)}
    about = {"world": "", "whose": "small sprites stand in", "eps": 0.1}
    return {"scores": scores, "rms": cohort(0.45), "largest": 0.1, "change": 0.09, **about}


def test_scores_that_fall_agree_and_those_that_stay_differ(numbers):
    rows = keyed(perturbed_scores.judge(numbers))
    assert {rows[f"beta-vae-{metric}"].verdict for metric in METRIC_TABLES} == {"agrees"}
    assert rows["pcl-mig-perturbed"].verdict == rows["beta-vae-mig-noise"].verdict == "agrees"
    assert rows["halved"].verdict == rows["size"].verdict == "holds"
    other = copy.deepcopy(numbers)
    other["scores"] = {"beta-vae": places(0.5, 0.5, 0.2), "pcl": places(0.3, 0.1, 0.3)}
    other |= {"rms": cohort(0.2), "largest": 0.12}
    rows = keyed(perturbed_scores.judge(other))
    risen = {**other, "scores": {"beta-vae": places(0.2, 0.5, 0.5)}}
    assert keyed(perturbed_scores.judge(risen))["beta-vae-mig"].verdict == "differs"
    assert {rows[f"beta-vae-{metric}"].verdict for metric in METRIC_TABLES} == {"open"}
    assert rows["pcl-mig-perturbed"].verdict == rows["beta-vae-mig-noise"].verdict == "differs"
    assert rows["halved"].verdict == rows["size"].verdict == "fails"


def test_a_fall_of_less_than_half_is_not_halved(numbers):
    numbers["scores"]["beta-vae"] = places(0.5, 0.3, 0.5)
    rows = keyed(perturbed_scores.judge(numbers))
    assert rows["beta-vae-mig"].verdict == "agrees"
    assert rows["halved"].verdict == "fails"


def test_the_best_strength_counts_and_pruned_models_do_not():
    found = {"original": cohort(0.5), "scaled": {"1": cohort(0.2), "2": cohort(0.9, active=2)}, "latents": 3}
    assert keyed(stronger_on_perturbed.judge(found))["mig"].verdict == "agrees"
    found["scaled"]["2"] = cohort(0.9)
    assert keyed(stronger_on_perturbed.judge(found))["mig"].verdict == "differs"


def test_every_factor_is_judged_by_itself():
    found = {"scores": {"beta-vae": places(0.5, 0.2, 0.5)}, "factors": ["scale", "x", "y"]}
    for row in found["scores"]["beta-vae"]["perturbed"]["mig_per_factor"]:
        row[1] = 0.9
    rows = keyed(spread_on_perturbed.judge(found))
    assert [rows[f"factor-{name}"].verdict for name in ("scale", "x", "y")] == ["agrees", "differs", "agrees"]


def test_both_data_sets_have_rows_of_their_own_at_the_paper_scale(numbers):
    shapes = copy.deepcopy(numbers) | {"world": "Shapes3D", "whose": "", "eps": 0.175, "largest": 0.17}
    shapes["scores"]["beta-vae"] = places(0.6, 0.6, 0.6)
    whole = numbers | {"world": "dSprites", "whose": "our drawing of dSprites", "also": shapes}
    rows = keyed(perturbed_scores.judge(whole))
    assert (rows["beta-vae-mig"].published, rows["beta-vae-mig"].verdict) == ("0.23 -> 0.07 dSprites", "agrees")
    assert rows["beta-vae-mig"].note == "our drawing of dSprites"
    other = rows["Shapes3D beta-vae-mig"]
    assert (other.published, other.verdict, other.note) == ("0.60 -> 0.09 Shapes3D", "open", "")
    assert rows["Shapes3D size"].verdict == "holds"
    assert "Shapes3D: Mean MIG" in perturbed_scores.conclude(whole, rows)
    assert len(perturbed_scores.draw(whole).axes) == 8


@pytest.mark.parametrize(("world", "eps", "ensemble"), [("dSprites", 0.1, 1), ("Shapes3D", 0.175, 4)])
def test_the_change_is_learned_as_printed_at_the_paper_scale(world, eps, ensemble, tmp_path, monkeypatch):
    asked = {}

    def learn(data, folder, game, **told):
        asked.update(told, data=data.name, game=game)
        return SimpleNamespace(data=data)

    monkeypatch.setattr(broken, "perturb", learn)
    broken.broken(broken.printed(world), Work(tmp_path, tmp_path))
    game = asked["game"]
    assert (game.eps, game.gap, game.samples, game.lr) == (eps, "reconstruction", 5, 1e-4)
    assert (asked["how"], asked["ensemble"]) == ("restart", ensemble)
    assert (asked["network"], asked["small_kernels"], asked["steps"]) == ("conv", True, 300_000)
    assert asked["latents"] == sum(factor.size != 1 for factor in broken.base(broken.printed(world)).space)
