"""The command line as a whole: every verb has help with an example, bad input is one line and exit code 2."""

import errno
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import unseam
from unseam.cli import VERBS, main
from unseam.cli.common import parse
from unseam.errors import Failed


def commands(verb: str) -> list[type]:
    """The dataclass of a verb, or those of its sub-verbs."""
    command = import_module(f"unseam.cli.{VERBS[verb][0]}").Command
    return [get_args(part)[0] for part in get_args(command)] or [command]


EXAMPLES = [
    (verb, example)
    for verb in VERBS
    for command in commands(verb)
    for example in re.findall(r"Example: unseam (.*)", command.__doc__ or "") or [""]
]


@pytest.mark.parametrize(("verb", "example"), EXAMPLES)
def test_every_verb_has_help_with_an_example_that_parses(
    verb: str, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(example)
    assert words[:1] == [verb], "every verb's docstring has a line `Example: unseam VERB ...`"
    several = len(commands(verb)) > 1
    with pytest.raises(SystemExit) as stop:
        main([*words[: 2 if several else 1], "--help"])
    assert stop.value.code == 0
    told = " ".join(re.sub("[^\x20-\x7e]+", " ", capsys.readouterr().out).split())
    assert f"Example: unseam {example}" in told
    module = import_module(f"unseam.cli.{VERBS[verb][0]}")
    assert type(parse(module.Command, words[1:], f"unseam {verb}")) in commands(verb)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "sprits"], "did you mean 'sprites'"),
        (["train", "sprites", "--objective", "betavae"], "did you mean 'beta-vae'"),
        (["train", "sprites", "--betta", "4"], "did you mean --beta"),
        (["train", "sprites", "--stps", "4"], "did you mean --steps"),
        (
            ["train", "sprites", "--steps", "many"],
            "--steps='many' is not an integer",
        ),
        (["train", "sprites", "--steps"], "Missing value for argument '--steps'"),
        (["train", "sprites", "--how", "stack"], "'--how'. Expected one of ('auto', 'stacked', 'side-by-side')"),
        (["train", "sprites", "--latents", "0"], "unseam: latents=0 must be at least 1\n"),
        (["train", "sprites", "more"], "'more' is not understood; see unseam train --help"),
        (["train", "sprites", "--device", "gpu"], "device='gpu' is not auto, cpu, cuda, cuda:N or mps"),
        (["train", "sprites", "--devce", "cpu"], "did you mean --device"),
        (["train", "sprites", "--optimiser", "adm"], "did you mean 'adam'"),
        (["score", "codes.npy"], "FACTORS"),
        (["data", "shw"], "{list, show, fetch, pack}"),
        (["train", "sprites", "--seeds", "a..b"], "--seeds='a..b'"),
        (["train", "sprites", "--seeds", "1.5"], "'1.5' is not a whole number"),
        (["train", "sprites", "--seeds", "nan"], "'nan' is not a whole number"),
        (["perturb", "sprites", "--seeds", "0.5,1.5", "--out", "p"], "'0.5' is not a whole number"),
        (["train", "sprites", "--seeds", "0,1,0"], "0 is repeated"),
        (["train", "sprites", "--seeds", str(2**63)], "63 bits"),
        (["train", "sprites", "--seeds", "0..99999999999"], "100,000,000,000 numbers"),
        (["train", "--resume", ".", "--latents", "9"], "--latents cannot be changed with --resume"),
        (["train", "--resume", ".", "--beta=7"], "--beta cannot be changed with --resume"),
        (["train", "sprites", "--resume", "."], "'sprites' cannot be changed with --resume"),
        (["train", "sprites", "--data.sise", "32"], "did you mean 'size'"),
        (["train", "missing/array.npy"], "no such file"),
        (["train"], "DATA is missing"),
        (["train", "nowhere"], "is not a data set, and there is no such file or folder"),
        (["train", "--resume", "nowhere"], "not a run folder"),
        (["evaluate", "nowhere"], "not a run folder"),
        (["evaluate", ".", "--data.factors", "y.csv"], "did you mean --factors?"),
        (["diagnose", "nowhere"], "not a run folder"),
        (["bench", "cohorts"], "did you mean 'cohort'"),
        (["bench", "find-calibration", "--kinds", "item"], "did you mean 'items'"),
        (["reproduce", "V9"], "V9"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    args: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err
    assert list(tmp_path.iterdir()) == []


def test_train_and_evaluate_speak_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--data.size 200 --network linear --latents 2 --beta 1e-4,1e-2 --seeds 0..1 --steps 20 --batch 16 --json"
    assert main(["train", "synth-linear", *flags.split(), "--out", str(tmp_path / "run")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["run"] == str(tmp_path / "run")
    assert [m["beta"] for m in document["members"]] == [1e-4, 1e-4, 1e-2, 1e-2]
    assert {"member", "seed", "beta", "loss", "reconstruction", "kl", "active", "status"} <= set(document["members"][0])
    assert main(["evaluate", str(tmp_path / "run"), "--member", "1", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert 0 <= scores["mig"]["value"] <= 1
    assert len(scores["mig"]["per_factor"]) == 2
    assert main(["diagnose", str(tmp_path / "run"), "--json"]) == 0
    members = json.loads(capsys.readouterr().out)["members"]
    assert {
        "dto",
        "dto_haar",
        "entanglement_cost",
        "ima_contrast",
        "sigma_law_r",
        "active",
        "latents",
        "verdict",
    } <= set(members[0])
    assert {"kl", "sigma2", "jacobian_norm", "active"} <= set(members[0]["latents"][0])


def test_version_is_a_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"unseam {unseam.__version__}\n"


def test_python_m_unseam_and_version() -> None:
    done = subprocess.run([sys.executable, "-m", "unseam", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unseam ")


FLAGS = "--data.size 200 --network mlp --encoder 8,4 --decoder 4 --latents 2 --seeds 0,1 --steps 2e1 --batch 16"


def test_numbers_are_taken_as_people_write_them() -> None:
    command = parse(import_module("unseam.cli.train").Command, ["synth-linear", *FLAGS.split()], "unseam train")
    assert command.architecture.encoder == (8, 4)
    assert command.training.steps == 20


def test_all_members_diverging_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "[red]run")]  # and a path is not markup
    assert main(["train", "synth-linear", *FLAGS.split(), "--lr", "1e30", *out]) == 0
    told = capsys.readouterr().out
    assert told.count("diverged") == 2
    assert "member 1 stopped early: its loss was not finite at step" in told
    assert f"run folder: {tmp_path}/[red]run" in told


def test_adam_without_epsilon_survives_dead_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A relu that never fires has gradient 0, and Adam's 0/0 was not a number."""
    flags = [*FLAGS.split(), "--eps", "0", "--encoder-activation", "relu", "--decoder-activation", "relu", "--json"]
    assert main(["train", "synth-linear", *flags, "--out", str(tmp_path / "run")]) == 0
    assert [m["status"] for m in json.loads(capsys.readouterr().out)["members"]] == ["finished", "finished"]


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/a"),
            1,
            "runs/a: No space left on device; free some space",
        ),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "afile/x"), 2, "afile/x: Not a directory"),
        (sqlite3.OperationalError("database is locked"), 1, "database is locked; see that"),
        (MemoryError(), 1, "out of memory; use"),
        (Failed("a training process died;\ncontinue with: x"), 1, "unseam: a training process died; continue with: x"),
    ],
)
def test_what_the_machine_does_is_one_line(
    error: Exception, code: int, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("unseam.cli.objectives.Command.run", fails)
    assert main(["objectives"]) == code
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert words in told


def test_a_bug_keeps_its_traceback_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("unseam.cli.objectives.Command.run", fails)
    with pytest.raises(ZeroDivisionError) as bug:
        main(["objectives"])
    assert "bug in unseam" in bug.value.__notes__[0]


def test_a_path_that_cannot_be_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "afile").touch()
    assert main(["train", "synth-linear", *FLAGS.split(), "--out", str(tmp_path / "afile/run")]) == 2
    assert "afile" in capsys.readouterr().err


def test_a_full_disk_behind_stdout_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "unseam", "objectives"], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


@pytest.mark.parametrize("words", [["--help"], [], ["--version"], ["train", "--help"], ["data", "list"]])
def test_a_reader_that_left_is_no_error(words: list[str]) -> None:
    """As with `unseam --help | head -0`: the pipe has no other end before a word is written."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "unseam", *words], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("steer", ["\x1b]52;c;aGk=\x07", "\x1b[2J", "\x9b31m", "\r"])
def test_nothing_that_is_printed_steers_the_terminal(steer: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A column's name or a server's words could set the clipboard (OSC 52), or hide what was said before."""
    from io import StringIO

    from rich.table import Table

    from unseam.progress import SafeConsole

    out = StringIO()
    console = SafeConsole(file=out, markup=False, highlight=False, force_terminal=False)
    table = Table(f"name{steer}")
    table.add_row(f"cell{steer}end")
    console.print(table)
    console.print(f"said{steer}", soft_wrap=True)
    assert main(["evaluate", f"nowhere{steer}x"]) == 2
    for text in (out.getvalue(), capsys.readouterr().err):
        assert not [c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
        assert text.isprintable() is False  # it has its own line ends
    assert "cell" in out.getvalue()
    assert "end" in out.getvalue()
