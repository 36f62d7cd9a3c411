"""Broken members: named and left out by every verb, never called orthogonal; the others are looked at as usual."""

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import unseam
from unseam.cli import main
from unseam.errors import BadInput
from unseam.runs.align import align_members
from unseam.runs.diagnose import chosen_members, diagnose, gap, heading, warned
from unseam.runs.evaluate import evaluate

NOTE = "its loss was not finite at step 3"


@pytest.fixture
def run(tmp_path):
    return unseam.fit("synth-linear", beta=1e-3, seeds=[0, 1, 2], steps=60, network="linear", latents=2, workers=1,
                      data_parameters={"size": 300}, out=tmp_path / "run", show=False)  # fmt: skip


def spoil(run, *members: int) -> None:
    with sqlite3.connect(run.folder / "results.sqlite") as rows:
        marks = ",".join("?" * len(members))
        rows.execute(f"update runs set status='diverged', note=? where member in ({marks})", (NOTE, *members))


def test_a_broken_member_is_named_and_the_others_are_looked_at(run, capsys):
    spoil(run, 1)
    for verb in (diagnose, align_members, evaluate):
        assert sorted(verb(run)) == [0, 2]
        assert f"left out: member 1 diverged: {NOTE}" in capsys.readouterr().err
    assert sorted(diagnose(run, [1])) == [1]  # asked for by name it is shown, and what it is is said
    assert heading(run, 1) == f"member 1 (beta 0.001, seed 1), diverged: {NOTE}"
    assert heading(run, 2) == "member 2 (beta 0.001, seed 2)"


def test_verbs_that_show_name_what_they_leave_out_and_whom_they_take(run, capsys):
    spoil(run, 0)
    for verb, flags in (
        ("match", []),
        ("report", ["--json"]),
        ("traverse", ["--all"]),
        ("export", ["--to", "safetensors"]),
    ):
        assert main([verb, str(run.folder), *flags]) == 0
        told = capsys.readouterr()
        assert f"left out: member 0 diverged: {NOTE}" in told.err
        if verb == "report":  # everything is diagnosed now
            document = json.loads(told.out)
            assert document["chosen"] in (1, 2)
            assert (document["rows"]["count"], document["geometry_rows"]["which"]) == (300, "held-out")
            assert isinstance(document["warnings"], list)
        if verb in ("traverse", "export"):
            assert told.out.startswith(f"member {document['chosen']} (beta")
    assert main(["traverse", str(run.folder), "--member", "0", "--all"]) == 0
    assert f"diverged: {NOTE}" in capsys.readouterr().out


def test_where_none_is_whole_the_way_out_is_said(run, capsys):
    spoil(run, 0, 1, 2)
    with pytest.raises(BadInput, match=r"no finished member .member 0 diverged.*--scale standard"):
        chosen_members(run, None)
    assert main(["diagnose", str(run.folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_unfinished_run_is_looked_at_as_it_stands(run, capsys):
    with sqlite3.connect(run.folder / "results.sqlite") as rows:
        rows.execute("delete from runs")
    assert chosen_members(run, None) == [0, 1, 2]
    assert "unfinished" in capsys.readouterr().err


def test_a_dead_decoder_is_not_called_orthogonal(tmp_path):
    run = unseam.fit("synth-linear", beta=1e4, steps=200, lr=1e-2, network="linear", latents=2, workers=1,
                     data_parameters={"size": 300}, out=tmp_path / "dead", show=False)  # fmt: skip
    verdict = align_members(run)[0][0].verdict
    assert verdict.startswith("align did nothing: no latent is active")
    assert "orthogonal" not in verdict


def test_overfitting_is_named_and_advice_does_not_add_to_it(tmp_path):
    """Forty rows of noise in twelve columns, twelve latents, hardly any beta: learned by heart."""
    x = np.random.default_rng(0).normal(size=(50, 12))
    run = unseam.fit(x, beta=1e-3, s2=0.01, latents=8, steps=800, lr=3e-3, holdout=0.3, encoder=(64,), decoder=(64,),
                     out=tmp_path / "heart", workers=1, show=False)  # fmt: skip
    told = gap(run, run.model(0))
    assert told.overfits
    warnings = diagnose(run, points=14, show=False)[0].warnings
    assert warnings[0] == f"{told}: more rows, fewer latents or steps, or a larger beta"
    without = warned(replace(diagnose(run, points=14, show=False)[0], beta_source="none"), told)
    assert without.warnings[0] == f"{told}: more rows, fewer latents or steps"
    assert not any("add latents" in text or "lower beta" in text for text in warnings[1:])
    plain = warned(replace(diagnose(run, points=14, show=False)[0], warnings=("add latents or lower beta",)), None)
    assert plain.warnings == ("add latents or lower beta",)  # where nothing is overfitted it stands


def test_a_linear_model_of_many_rows_does_not_overfit(tmp_path):
    run = unseam.fit("synth-linear", beta=1e-2, steps=300, network="linear", latents=2, lr=1e-2, workers=1, show=False,
                     out=tmp_path / "fair", data_parameters={"size": 3000})  # fmt: skip
    assert not gap(run, run.model(0)).overfits


def test_a_run_knows_who_finished_and_who_shares_a_setting(tmp_path):
    run = unseam.fit("synth-linear", beta=[1e-3, 1e-2], seeds=[0, 1], steps=3, network="linear", latents=2, workers=1,
                     data_parameters={"size": 100}, out=tmp_path / "run", show=False)  # fmt: skip
    spoil(run, 1)
    assert run.finished_members() == [0, 2, 3]
    by_beta = [[m for m in range(4) if run.members[m].hyper["beta"] == beta] for beta in (1e-3, 1e-2)]
    assert run.same_setting() == by_beta
    assert run.same_setting(run.finished_members()) == [[m for m in group if m != 1] for group in by_beta]
    assert run.label(0) == "member 0 (beta 0.001, seed 0)"
