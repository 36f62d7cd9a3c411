"""What was computed once is read again, as long as it is the same question about the same weights."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test_house import edges, room
from unseam.geometry import Diagnosis
from unseam.run import Run, load_run
from unseam.runs import cache
from unseam.runs import diagnose as module
from unseam.runs.diagnose import diagnose
from unseam.show.report import collect as views
from unseam.show.report.collect import collect_report, detail
from unseam.train import fit

SPRITES = {"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4}


def trained(folder: Path, **more: Any) -> Run:
    return fit("sprites", beta=0.1, steps=20, out=folder / "run", latents=3, network="mlp", encoder=(8,), decoder=(8,),
               workers=1, show=False, data_parameters=SPRITES, **more)  # fmt: skip


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Members whose diagnosis was computed, not read."""
    calls: list[int] = []
    compute = module.fresh

    def counting(run: Run, member: int, *rest: Any) -> Diagnosis:
        calls.append(member)
        return compute(run, member, *rest)

    monkeypatch.setattr(module, "fresh", counting)
    return calls


def test_a_diagnosis_is_computed_once_and_comes_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = trained(tmp_path), counted(monkeypatch)
    first, again = diagnose(run, show=False)[0], diagnose(load_run(run.folder), show=False)[0]
    assert calls == [0]
    assert again.to_json() == first.to_json()
    assert str(again) == str(first)
    for name in ("cosines", "pair_costs", "costs", "sigma2", "sigma2_law", "singular_values"):
        np.testing.assert_array_equal(again.arrays[name], first.arrays[name])
    with sqlite3.connect(run.folder / "results.sqlite") as connection:
        row = connection.execute("select what, member, version from computed").fetchall()
    assert row == [("diagnosis", 0, cache.__version__)]


def test_another_question_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = trained(tmp_path), counted(monkeypatch)
    for settings in ({}, {"points": 20}, {"seed": 1}, {"points": 20}):
        diagnose(run, show=False, **settings)
    assert calls == [0, 0, 0]
    monkeypatch.setattr(cache, "__version__", "9.9")
    diagnose(run, show=False)
    assert len(calls) == 4
    monkeypatch.setattr(cache, "code", lambda: "changed")
    diagnose(run, show=False)
    assert len(calls) == 5


def test_other_weights_are_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was trained on, or again into the same folder, must not be shown its old diagnosis."""
    run, other, calls = trained(tmp_path / "a"), trained(tmp_path / "b", seeds=[5]), counted(monkeypatch)
    before = diagnose(run, show=False)[0]
    for file in (other.folder / "checkpoints").iterdir():
        (run.folder / "checkpoints" / file.name).write_bytes(file.read_bytes())
    assert diagnose(run, show=False)[0].entanglement_cost != before.entanglement_cost
    assert calls == [0, 0]


def test_damage_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = trained(tmp_path), counted(monkeypatch)
    first = diagnose(run, show=False)[0]
    (file,) = (run.folder / "computed").iterdir()
    file.write_bytes(b"PK")
    assert diagnose(run, show=False)[0].to_json() == first.to_json()
    file.unlink()
    assert diagnose(run, show=False)[0].to_json() == first.to_json()
    assert calls == [0, 0, 0]
    for document in ("[]", "{}", "3", '{"digest": "x"}', "{"):
        with sqlite3.connect(run.folder / "results.sqlite") as connection:
            connection.execute("update computed set document = ?", (document,))
        assert diagnose(run, show=False)[0].to_json() == first.to_json()
    for left in (run.folder / "computed").iterdir():
        left.unlink()
    (run.folder / "computed").rmdir()
    (run.folder / "computed").write_text("in the way")  # nothing can be kept
    assert diagnose(run, show=False)[0].to_json() == first.to_json()


def test_scores_of_a_report_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(tmp_path)
    first = collect_report(run, show=False).shown
    full = detail(run, first)
    assert full is not None
    monkeypatch.setattr(views, "score", lambda *_, **__: pytest.fail("scored again"))
    again = collect_report(load_run(run.folder), show=False).shown
    assert again.mig is not None
    assert first.mig is not None
    assert (again.mig.value, again.factors) == (first.mig.value, first.factors)
    np.testing.assert_array_equal(again.share, first.share)
    np.testing.assert_array_equal(again.codes, first.codes)
    read = detail(run, again)
    assert read is not None
    assert (read.chance, read.ci, dict(read.dci)) == (full.chance, full.ci, dict(full.dci))
    np.testing.assert_array_equal(read.importance, full.importance)


def test_the_key_depends_on_all_code_that_makes_the_numbers() -> None:
    """Every package that `runs` imports, but those that only read, write or report."""
    no_numbers = {"errors", "progress", "atomic", "device", "from_json", "readers", "lazy", "processes"}
    imported = {room(edge.target) for edge in edges() if room(edge.source) == "runs" and edge.how != "types"} - {""}
    assert imported - no_numbers <= set(cache.CODE)
    source = Path(cache.__file__).parents[1]
    assert [part for part in cache.CODE if not ((source / part).is_dir() or (source / f"{part}.py").is_file())] == []
