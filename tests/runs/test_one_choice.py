"""One label-free choice: whoever asks, of whatever page, gets the same member."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unseam.cli import main
from unseam.cli.diagnose import polarized_text, rule
from unseam.geometry import Diagnosis
from unseam.geometry import diagnosis as shapes
from unseam.geometry.diagnosis import Latent, Pair
from unseam.runs import diagnose as module
from unseam.runs.rank_members import Ranking, RankInput, criterion_agreement, rank, stable_active
from unseam.show.demo import Plan, demo

TINY = Plan(betas=(1.0,), seeds=3, steps=3, latents=3, encoder=(8,), decoder=(8,), workers=1, snapshots=0,
            data_parameters={"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4})  # fmt: skip


def member(dto: float, cost: float, contrast: float, active: int = 2, kl: float | None = 1.0) -> Diagnosis:
    latents = tuple(Latent(k, kl, 0.1, 0.1, 1.0, 1.0, k < active) for k in range(3))
    pair = Pair(0, 1, cost, 0.4, 0.5, 1.0, 0.0, mixed=cost > 0.02, degenerate=False)
    arrays = {"cosines": np.eye(3), "pair_costs": np.zeros((3, 3)), "costs": np.full(4, cost), "active": np.ones(3),
              "singular_values": np.ones((4, 3)), "sigma2_law": np.full((4, 3), 0.1)}  # fmt: skip
    told: dict[str, Any] = {"sigma_law_r": 0.9, "sigma_law_error": 0.1, "warnings": (), "verdict": f"DtO {dto}"}
    told |= {"dto_haar": 1.0, "beta": 1.0, "points": 4, "dto_all": dto, "cost_of_active": cost, "pairs": (pair,)}
    return Diagnosis(dto=dto, entanglement_cost=cost, ima_contrast=contrast, active=active, latents=latents,
                     arrays=getattr(shapes, "Arrays", dict)(**arrays), **told)  # fmt: skip


# The mean of three ranks (what `diagnose` went by) prefers member 1, the lowest DtO (what `report` went by) member 2;
# member 0 has the lowest numbers of all because it pruned.
MEMBERS = [member(0.0, 0.0, 0.0, active=1), member(0.25, 0.1, 0.1), member(0.2, 0.3, 0.3)]


def test_every_verb_gives_the_same_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "fresh", lambda run, member, *_: MEMBERS[member])
    folder = tmp_path / "shelf" / "run"
    result = demo(folder, show=False, plan=TINY)
    assert (result.chosen, result.compared, result.active) == (2, 1, 2)
    assert main(["diagnose", str(folder), "--no-figures", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["chosen"], document["order"]) == (2, [2, 1, 0])
    assert document["ranking"]["order"] == document["order"]
    assert main(["diagnose", str(folder), "--no-figures"]) == 0
    assert "chosen without labels: member 2" in capsys.readouterr().out
    for place in (folder, tmp_path / "shelf"):  # one run, and a folder of runs
        assert main(["report", str(place), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["chosen"], document["verdict"]) == (2, "DtO 0.2")
    page = (folder / "report.html").read_text()
    assert "Chosen without labels: member 2 (beta 1, seed 2)" in page
    assert "<th>UDR</th><th>by chance</th><th>centrality</th><th>by chance</th>" in page
    shelf = (tmp_path / "shelf" / "report.html").read_text()
    assert "Geometry prefers member 2 (beta 1, seed 2)" in shelf
    assert re.findall(r"<td>\d</td><td><span.*?</span></td><td>run</td><td><a [^>]*>(member \d)", shelf) == [
        "member 2", "member 1", "member 0"]  # fmt: skip
    assert main(["report", str(folder), "--member", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"] == 2  # shown is 1, chosen stays
    assert main(["diagnose", str(folder), "--member", "1", "--no-figures", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"] is None  # of one member alone nothing is chosen
    # how far the order agrees with labels is one number, too
    assert main(["evaluate", str(folder)]) == 0
    assert main(["report", str(folder)]) == 0
    capsys.readouterr()
    assert main(["diagnose", str(folder), "--no-figures", "--json"]) == 0
    rho = json.loads(capsys.readouterr().out)["ranking"]["agreement"]["rank"]["mig"]
    page = (folder / "report.html").read_text()
    assert re.findall(r"the order of the choice</th><td><span[^>]*>([^<]*)<", page) == [f"{rho:.2f}"]


@pytest.mark.parametrize(
    ("members", "settings", "stable"),
    [
        ([3, 2, 2, 2], "aabb", 2),  # seeds of a disagree: its 3 was chance
        ([2, 2, 1, 1], "aabb", 2),  # both agree: the larger
        ([3, 3, 2, 2], "aabb", 2),  # a keeps all three latents there are, which says nothing
        ([3, 3, 2, 1], "aabb", 3),  # nobody else agrees: then all
        ([3, 2, 2], "abb", 2),  # one seed alone agrees with nobody
        ([3, 2, 2], "abc", 2),  # no setting has two seeds: the commonest
        ([1, 2], "ab", 2),  # a tie: the larger
    ],
)
def test_the_stable_number_of_active_latents(members: list[int], settings: str, stable: int) -> None:
    inputs = [RankInput.of(member(0.5, 0.1, 0.1, active=k)) for k in members]
    assert stable_active(inputs, settings) == stable


def test_an_autoencoder_has_no_say_in_what_is_stable() -> None:
    """It cannot prune, so it keeps all latents at every seed; two of them would outvote every VAE."""
    keep_all = [member(0.9, 0.5, 0.5, active=3, kl=None)] * 2
    vaes = [member(0.5, 0.1, 0.1), member(0.4, 0.1, 0.1)]
    assert rank([*keep_all, *vaes], "aabb").order == [3, 2, 0, 1]


def test_after_the_stable_come_those_with_more_then_those_with_fewer() -> None:
    members = [member(0.0, 0, 0, active=1), member(0.1, 0, 0, active=3), member(0.9, 0, 0), member(0.8, 0, 0)]
    assert rank(members, "abcc").order == [3, 2, 1, 0]


def test_equal_dto_is_told_apart_by_cost_and_one_latent_has_no_axes() -> None:
    found = rank([member(0.5, 0.2, 0), member(0.5, 0.1, 0)], "aa")
    assert (found.order, found.compared) == ([1, 0], 0)
    assert rank([member(0.0, 0.1, 0, active=1)] * 2, "aa").compared is None


def test_agreement_leaves_out_members_without_axes() -> None:
    """One active latent has DtO 0 for want of axes; counted, it would be the most orthogonal of all."""
    alone = replace(member(0.0, 0.1, 0.1, active=1), dto_haar=0.0)
    found = rank([alone, member(0.2, 0.1, 0.1), member(0.4, 0.1, 0.1), member(0.6, 0.1, 0.1)], "abcd")
    assert criterion_agreement(found, {"mig": [0.0, 0.9, 0.5, 0.1]})["dto"]["mig"] == 1.0


def test_scores_beside_the_geometry_count_with_their_own_sign() -> None:
    """More UDR is better, more DtO is worse: both pick as the labels do, and the agreement of both is 1."""
    ranking = rank([member(d, 0.1, 0.1) for d in (0.6, 0.2, 0.4)], "abc", {"udr": [0.1, 0.9, 0.5]})
    found = criterion_agreement(ranking, {"mig": [0.1, 0.9, 0.5], "gaussian-tc": [-0.9, -0.1, -0.5]})
    assert found["udr"] == found["dto"] == {"mig": 1.0, "gaussian-tc": 1.0}
    assert found["rank"]["mig"] == 1.0


def test_two_members_have_no_rank_correlation() -> None:
    """Two points are always in order or in reverse: 1 or -1 would claim more than was measured."""
    ranking = Ranking([0, 1, 2], np.arange(3), {"dto": np.array([np.nan, 0.1, 0.5])})
    found = criterion_agreement(ranking, {"mig": [0.9, 0.6, 0.2]})
    assert found["dto"]["mig"] is None
    assert found["rank"]["mig"] == 1


def test_the_rule_that_is_told_is_the_one_that_chose() -> None:
    """One latent in use has no DtO: the cost decided, and the sentence says so. Shares are of what was logged."""
    assert "DtO" in rule({3: member(0.5, 0.1, 0.1)}, 3)
    assert "DtO" not in rule({3: member(0.0, 0.1, 0.1, active=1)}, 3)
    assert polarized_text({"polarized_since": 1500, "polarized_share": 1 / 16}).endswith(
        "(the last 6% of the logged steps)"
    )
