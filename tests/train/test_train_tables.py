"""What results.sqlite may hold, asked once when a run is opened: tables, their columns and types, whole rows."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from unseam.cli import main
from unseam.errors import BadInput
from unseam.run import Run, load_run
from unseam.run.results import Results
from unseam.train import fit, resume

ENDLESS = "with recursive t(n) as (select 1 union all select n + 1 from t) select n as member"
DAMAGE = {
    "a view over an endless query": (
        f"alter table runs rename to r; create view runs as {ENDLESS} from t",
        "a view 'runs'",
    ),
    "a trigger": ("create trigger t after insert on log begin delete from runs; end", "a trigger 't'"),
    "a virtual table": ("create virtual table x using fts5(y)", "a virtual table 'x'"),
    "a column that is computed": (
        "drop table scores; create table scores (member integer, name text, detail text, "
        "value real generated always as (length(zeroblob(1000000000))))",
        "computes columns",
    ),
    "no table of latents": ("drop table latents", "no table 'latents'"),
    "no key": ("drop table log; create table log (step integer, name text, value real)", "no column 'member'"),
    "a latent is missing": ("delete from latents where latent = 1 and member = 0", "2 latents of member 0"),
    "all latents of a member are missing": ("delete from latents where member = 1", "no row of member 1"),
    "a latent too many": ("insert into latents (member, step, latent) values (0, 6, 2)", "2 latents of member 0"),
    "a member too many": ("insert into runs (member, hyper) values (2, '{}')", "not one of the 2 of config.json"),
    "a member twice": (
        "create table r as select * from runs; insert into r select * from runs; drop table runs; "
        "alter table r rename to runs",
        "two rows of the same member",
    ),
    "a word for a number": ("update latents set kl = 'x'", "column 'kl' of table 'latents'"),
    "a word for a step": ("update runs set step = 'x'", "column 'step' of table 'runs'"),
    "bytes for a word": ("update runs set status = x'00'", "column 'status' of table 'runs'"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    few = {"network": "linear", "latents": 2, "steps": 6, "batch": 8, "show": False, "workers": 1, "seeds": [0, 1]}
    run = fit("synth-linear", data_parameters={"size": 60}, out=tmp_path_factory.mktemp("tables") / "run", **few)
    with closing(sqlite3.connect(run.rows.path)) as connection:
        connection.execute("pragma journal_mode=delete")
    return run


@pytest.fixture
def folder(made: Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.folder, tmp_path / "run"))


def damaged(folder: Path, script: str) -> Path:
    with closing(sqlite3.connect(folder / "results.sqlite")) as connection, connection:
        connection.executescript(script)
    return folder


@pytest.mark.parametrize(("script", "words"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_table_is_refused_when_a_run_is_opened(
    folder: Path, script: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged(folder, script)
    with pytest.raises(BadInput, match=r"results\.sqlite is damaged") as error:
        load_run(folder)
    assert words in str(error.value)
    assert main(["report", str(folder), "--out", str(folder.parent / "r.html")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "delete it, then `unseam train --resume" in told


def test_the_remedy_that_is_named_works(folder: Path, made: Run) -> None:
    (folder / "results.sqlite").unlink()
    assert resume(folder, show=False).table()["loss"].tolist() == made.table()["loss"].tolist()


def test_bytes_changed_inside_are_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "results.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(content)
    assert main(["evaluate", str(folder)]) == 2
    assert "results.sqlite is damaged" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory")
def test_a_view_takes_no_memory(folder: Path) -> None:
    """As a process with 4 GB of addresses, of which torch takes most of the first two."""
    damaged(folder, DAMAGE["a view over an endless query"][0])
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 31, 1 << 31))  # noqa: E731
    command = [sys.executable, "-m", "unseam", "export", str(folder), "--out", str(folder.parent / "out")]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, timeout=300)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@pytest.mark.parametrize("words", [("evaluate",), ("diagnose", "--no-figures"), ("report",), ("export",), ("match",)])
def test_verbs_that_read_make_no_table(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "results.sqlite").unlink()
    before = sorted(os.listdir(folder))
    out = ["--out", str(folder.parent / "out")] if words[0] in ("report", "export") else []
    main([*words, str(folder), *out])
    capsys.readouterr()
    assert "results.sqlite" not in os.listdir(folder)
    assert set(before) <= set(os.listdir(folder))


def test_only_create_makes_the_file(tmp_path: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(sqlite3.OperationalError):
            Results(tmp_path).open(read_only=read_only)
    with pytest.raises(BadInput, match=r"results\.sqlite is missing.*--resume"):
        Results(tmp_path).read("runs")
    assert os.listdir(tmp_path) == []
    Results(tmp_path).create()
    assert Results(tmp_path).read("runs").empty
