"""Leases: one holder, whatever clocks, names and pauses; a holder that lost its lease can write nothing."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from study_files import TINY, content

from unseam.atomic import guarded, remove_temporaries, write_atomic
from unseam.errors import BadInput
from unseam.run import load_run
from unseam.study import lease as room
from unseam.study import load_grid
from unseam.study.engine import one_piece, work_on_study
from unseam.study.evaluate import Evaluator
from unseam.study.lease import Lost, claim, is_free, newest
from unseam.study.pieces import Place, advance, places, start_study


def left_by(folder: Path, **other: object) -> Path:
    """The lease of a process that is described by this one's description and `other`."""
    path = folder / "lease-00000001"
    path.write_text(json.dumps({**room._holder(), "token": "t", "beats": 1, "share": 0.5, **other}))
    return path


class Clock:
    """The monotonic clock of an observer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(room.time, "monotonic", lambda: self.now)


def test_one_alone_gets_a_lease_and_the_next_one_has_a_higher_number(tmp_path: Path) -> None:
    first = claim(tmp_path)
    assert first is not None
    assert claim(tmp_path) is None
    first.release(done=False)
    second = claim(tmp_path)
    assert second is not None
    assert second.path.name > first.path.name
    assert newest(tmp_path) == second.path
    second.release(done=True)
    assert list(tmp_path.iterdir()) == []


def test_of_two_that_saw_the_same_dead_holder_one_gets_the_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by(tmp_path, released=True)
    found = []

    def meanwhile(path: Path) -> bool:
        if not found:
            found.append(None)
            found[0] = claim(tmp_path)  # another one, between the look and the claim
        return True

    monkeypatch.setattr(room, "is_free", meanwhile)
    assert claim(tmp_path) is None
    assert found[0] is not None
    found[0].check()


def test_a_process_of_this_machine_that_ended_holds_nothing(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    assert not is_free(left_by(tmp_path))
    assert is_free(left_by(tmp_path, pid=int(gone.stdout)))
    assert is_free(left_by(tmp_path, pid=2**70))  # a number that no process has
    assert is_free(left_by(tmp_path, started=1)) == Path("/proc/self/stat").exists()  # the number went to another one


@pytest.mark.parametrize("other", [{"host": "elsewhere"}, {"space": "pid:[7]"}, {"boot": "another"}, {"pid": "x"}])
def test_a_holder_elsewhere_is_judged_by_its_silence_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, object]
) -> None:
    """Another machine, a container with the same host name, this machine before it was started again."""
    clock = Clock(monkeypatch)
    path = left_by(tmp_path, **{"pid": 2**30, **other})
    assert not is_free(path)
    for age in (-86_400, 86_400):  # clocks behind and ahead: the file's time says nothing
        os.utime(path, (1.7e9 + age, 1.7e9 + age))
        assert not is_free(path)
    clock.now += room.SILENCE - 1
    assert not is_free(path)
    left_by(tmp_path, **{"pid": 2**30, **other, "beats": 2})  # it lives
    clock.now += 2
    assert not is_free(path)
    clock.now += room.SILENCE + 1
    assert is_free(path)


def test_a_pause_of_the_observer_is_no_silence_of_the_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, path = Clock(monkeypatch), left_by(tmp_path, host="elsewhere")
    assert not is_free(path)

    def paused(path: Path) -> bytes:
        found = path.read_bytes()
        clock.now += 3600
        return found

    monkeypatch.setattr(room, "_content", paused)
    assert not is_free(path)


def test_nonsense_in_a_lease_is_silent_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, path = Clock(monkeypatch), tmp_path / "lease-00000001"
    for text in ("", "{", "[]", '{"pid": "x", "share": "y"}', "[" * 100_000):
        path.write_text(text)
        assert not is_free(path)
        assert room.share_of(tmp_path) == 0
    clock.now += room.SILENCE + 1
    assert is_free(path)


def taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> room.Lease:
    with monkeypatch.context() as patch:
        patch.setattr(room, "SILENCE", -1.0)
        found = claim(folder)
    assert found is not None
    return found


def test_a_woken_holder_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = claim(tmp_path)
    assert old is not None
    with guarded(old.check):
        write_atomic(tmp_path / "a.txt", "old")
    new = taken_over(tmp_path, monkeypatch)
    before = new.path.read_bytes()
    with pytest.raises(Lost), guarded(old.check):
        write_atomic(tmp_path / "a.txt", "older")
    old.beat()
    old.release(done=False)
    old.release(done=True)
    assert new.path.read_bytes() == before
    assert (tmp_path / "a.txt").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", new.path.name]


def test_a_file_that_was_allowed_before_the_pause_is_refused_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paused between the question and the rename: the one who took over has deleted the temporary file."""
    old, rename, done = claim(tmp_path), os.replace, []
    assert old is not None

    def paused(source: Path, target: Path) -> None:
        if not done:
            done.append(taken_over(tmp_path, monkeypatch))
            remove_temporaries(tmp_path)
        rename(source, target)

    monkeypatch.setattr("unseam.atomic.os.replace", paused)
    with pytest.raises(Lost), guarded(old.check):
        write_atomic(tmp_path / "a.txt", "late")
    assert not (tmp_path / "a.txt").exists()


def test_a_holder_woken_while_another_scores_changes_no_byte(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was paused in its training; the other took over, trained to the end and is at its second model."""
    monkeypatch.setattr(room, "SILENCE", -1.0)
    monkeypatch.setattr(room, "BEAT", 3600.0)
    start_study(tmp_path, load_grid(TINY))
    place = places(tmp_path, load_grid(TINY))[0]
    paused, woken = threading.Event(), threading.Event()
    states: dict[str, str] = {}

    def stop() -> bool:
        """Asked at every step: at the 50th this holder is paused, until the other one scores."""
        calls.append(1)
        if len(calls) == 50:
            paused.set()
            assert woken.wait(60)
        return False

    calls: list[int] = []
    old = threading.Thread(target=lambda: states.update(old=advance(place, stop=stop)))
    row = Evaluator.row

    def scoring(self: Evaluator, member: int) -> dict[str, object]:
        if member == 1:
            woken.set()
            old.join(60)
        return row(self, member)

    monkeypatch.setattr(Evaluator, "row", scoring)
    old.start()
    assert paused.wait(60)
    states["new"] = advance(place)
    old.join(60)
    assert states == {"old": "held", "new": "done"}
    name = place.piece.name
    assert (place.folder / "rows.json").read_bytes() == (done / "pieces" / name / "rows.json").read_bytes()
    assert (place.folder / "codes.npy").read_bytes() == (done / "pieces" / name / "codes.npy").read_bytes()
    run, truth = (load_run(folder / "pieces" / name / "run") for folder in (tmp_path, done))
    assert run.step(0) == 120
    for member in range(4):
        ours, theirs = run.weights(member), truth.weights(member)
        assert all((ours[key] == theirs[key]).all() for key in theirs)
    assert newest(place.folder) is None


def test_a_checkpoint_before_the_last_step_is_trained_on_and_never_scored(done: Path, tmp_path: Path) -> None:
    """As an earlier version could leave it: results of the end, weights of the middle."""
    start_study(tmp_path, load_grid(TINY))
    place = places(tmp_path, load_grid(TINY))[0]
    calls: list[int] = []
    assert advance(place, stop=lambda: calls.append(1) or len(calls) > 60) == "later"  # type: ignore[func-returns-value]
    early = (place.folder / "run/checkpoints/group-000.safetensors").read_bytes()
    source = done / "pieces" / place.piece.name
    shutil.rmtree(place.folder)
    shutil.copytree(source, place.folder)
    (place.folder / "run/checkpoints/group-000.safetensors").write_bytes(early)
    with pytest.raises(BadInput, match=r"its checkpoint is at step 6\d, its results at step 120"):
        Evaluator(load_run(place.folder / "run"), place.piece).row(0)
    (place.folder / "rows.json").unlink()
    shutil.rmtree(place.folder / "scores")
    assert advance(place) == "done"
    assert (place.folder / "rows.json").read_bytes() == (source / "rows.json").read_bytes()


def test_a_held_piece_is_left_alone(tmp_path: Path) -> None:
    place = Place(load_grid(TINY).pieces[0], tmp_path)
    path = left_by(tmp_path, host="elsewhere")
    assert advance(place) == "held"
    assert place.running()
    assert place.share() == 0.5
    assert list(tmp_path.iterdir()) == [path]


def test_a_piece_that_was_ended_between_two_looks_is_done(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    place = places(tmp_path, load_grid(TINY))[0]
    looks = iter((False, True, True))

    class Late(Place):
        @property
        def done(self) -> bool:
            return next(looks)

    assert advance(Late(place.piece, place.folder)) == "done"
    assert newest(place.folder) is None


def test_a_task_watches_the_lease_of_another_machine(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job array is started again after a node died: one look cannot tell, so it looks until it can."""
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    place = places(tmp_path, load_grid(TINY))[0]
    (place.folder / "rows.json").unlink()
    path = left_by(place.folder, host="elsewhere")
    monkeypatch.setattr("unseam.study.engine.LOOK", 0.02)
    monkeypatch.setattr(room, "SILENCE", 0.2)
    assert one_piece(tmp_path, 0) == "done"
    (place.folder / "rows.json").unlink()
    left_by(place.folder, host="elsewhere")
    monkeypatch.setattr(room, "SILENCE", 60.0)
    timer = threading.Timer(0.3, lambda: left_by(place.folder, host="elsewhere", beats=2))
    timer.start()
    assert one_piece(tmp_path, 0) == "held"  # it beats: somebody works at it
    timer.join()
    assert path.exists()


def test_one_bad_piece_does_not_stop_the_others(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    todo = places(tmp_path, load_grid(TINY))
    for place in todo:
        (place.folder / "rows.json").unlink()
    (todo[0].folder / "run" / "config.json").write_text("{")
    told: list[tuple[str, str]] = []
    work_on_study(str(tmp_path), report=lambda *problem: told.append(problem))
    assert [place.done for place in todo] == [False, True, True]
    assert [name for name, _ in told] == [todo[0].piece.name]
    assert "config.json" in told[0][1]
    assert "\n" not in told[0][1]
    assert not todo[0].running()
    (todo[0].folder / "run" / "config.json").write_bytes(
        (done / "pieces" / todo[0].piece.name / "run" / "config.json").read_bytes()
    )
    work_on_study(str(tmp_path))
    assert content(tmp_path) == content(done)
