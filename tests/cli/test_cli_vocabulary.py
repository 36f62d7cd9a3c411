"""What is the same for every verb: -q, -v, -V, `-`, pipes, completion of values, and old spellings for one release."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unseam.cli import RENAMED, VERBS, main
from unseam.cli.common import flags_of, parse
from unseam.cli.completion import script
from unseam.progress import log

SRC = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    v = np.array([[i, j] for i in range(4) for j in range(5)] * 3)
    np.save("codes.npy", v + 0.01 * np.random.default_rng(0).normal(size=v.shape))
    np.savetxt("factors.csv", v, delimiter=",", header="a,b", comments="")
    return tmp_path


def test_quiet_has_no_notes_and_the_same_answer(codes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "codes.npy", "factors.csv", "--metrics", "mig"]
    assert main(words) == 0
    loud = capsys.readouterr()
    assert "note: factor 'a' holds whole numbers only" in loud.err
    for quiet in (["-q", *words], [*words, "--quiet"]):
        assert main(quiet) == 0
        told = capsys.readouterr()
        assert (told.out, told.err) == (loud.out, "")
    assert main([*words, "-v"]) == 0
    assert log.isEnabledFor(10)
    assert main(words) == 0
    assert not log.isEnabledFor(10)


def test_short_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-V"]) == 0
    assert capsys.readouterr().out.startswith("unseam ")


@pytest.mark.parametrize("verb", RENAMED)
def test_an_old_spelling_is_no_flag_any_more_and_its_new_one_is(verb: str) -> None:
    from importlib import import_module

    command = import_module(f"unseam.cli.{VERBS[verb.split()[0]][0]}").Command
    flags = flags_of(command)
    for old, new in RENAMED[verb].items():
        assert old not in flags
        assert new is None or new in flags


def test_an_old_spelling_is_understood_with_a_warning(codes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "codes.npy", "factors.csv", "--metrics", "mig", "--workers=1", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["scores"]
    assert "warning: --workers of `unseam score` is now called --threads" in told.err
    assert main(["match", "codes.npy", "codes.npy", "--columns"]) == 0
    assert "is now called --transpose" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):  # --help
        main(["find", "codes.npy", "--network", "--help"])
    assert "--network of `unseam find` is the default" in capsys.readouterr().err


def unseam(*words: str, data: bytes = b"", cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "unseam", *words], input=data, capture_output=True, cwd=cwd,
        env={**os.environ, "PYTHONPATH": SRC},
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_standard_input(kind: str, codes: Path) -> None:
    content = {"csv": (codes / "factors.csv").read_bytes(), "npy": (codes / "codes.npy").read_bytes()}[kind]
    other = {"csv": ("codes.npy", "-"), "npy": ("-", "factors.csv")}[kind]
    done = unseam("score", *other, "--metrics", "mig", "--json", "-q", data=content, cwd=codes)
    assert done.returncode == 0, done.stderr
    whole = unseam("score", "codes.npy", "factors.csv", "--metrics", "mig", "--json", "-q", cwd=codes)
    assert json.loads(done.stdout)["scores"] == json.loads(whole.stdout)["scores"]


def test_standard_input_that_cannot_be_used(codes: Path) -> None:
    empty = unseam("score", "-", "factors.csv", cwd=codes)
    assert (empty.returncode, b"standard input is empty" in empty.stderr) == (2, True)
    train = unseam("train", "-", data=b"a,b\n1,2\n", cwd=codes)
    assert (train.returncode, b"cannot read standard input" in train.stderr) == (2, True)


@pytest.mark.parametrize("words", ["--help", "find --help", "score codes.npy factors.csv --metrics mig"])
def test_a_reader_that_leaves_is_no_error(words: str, codes: Path) -> None:
    """`unseam --help | head -1`: no traceback, whatever was still to be written."""
    program = f"{sys.executable} -m unseam {words} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, cwd=codes, env={**os.environ, "PYTHONPATH": SRC}
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.stdout.strip() == "0"


def completed(shell: str, typed: str) -> list[str]:
    words = f"unseam {typed}".split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _unseam; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", shell + ask], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_shell_completes_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wine.csv").touch()
    bash = script("bash")
    assert completed(bash, "train spr") == ["sprites"]
    assert completed(bash, "train --objective beta-t") == ["beta-tcvae"]
    assert completed(bash, "reproduce --size ") == ["large", "paper", "quick"]
    assert completed(bash, "train --optimiser a") == ["adam", "adagrad"]
    assert completed(bash, "score --metrics mig-") == ["mig-sup"]
    assert completed(bash, "data f") == ["fetch", "faces", "fashion-mnist"]
    assert completed(bash, "help fi") == ["find"]
    assert completed(bash, "find wi") == ["wine.csv"]
    assert completed(bash, "find --dev") == ["--device"]
    assert "-l objective -x -a 'ae vae" in script("fish")


def test_every_verb_has_json() -> None:
    from importlib import import_module

    for verb, (module, _) in VERBS.items():
        assert "--json" in flags_of(import_module(f"unseam.cli.{module}").Command), verb
    command = parse(import_module("unseam.cli.completion").Command, ["fish", "--json"], "unseam completion")
    assert command.json


WRITERS = {  # verbs whose --out is a new folder
    "find": "codes.npy --no-network",
    "train": "synth-linear --data.size 60 --steps 1 --network linear --latents 2",
    "align": "run --points 20",
    "export": "run --to safetensors",
    "data pack": "run --samples 20",
}


def test_out_is_a_new_folder_or_one_of_a_killed_command(codes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *WRITERS["train"].split(), "--out", "run"]) == 0
    for verb, words in WRITERS.items():
        command = [*verb.split(), *words.split(), "--out", "there"]
        (codes / "there").mkdir()
        (codes / "there" / "mine.txt").write_text("kept")
        assert main(command) == 2, verb
        assert "out='there' exists already and is not an empty folder; choose another" in capsys.readouterr().err
        assert [path.name for path in (codes / "there").iterdir()] == ["mine.txt"]
        (codes / "there" / ".unfinished").touch()  # as a killed command leaves it
        assert main(command) == 0, (verb, capsys.readouterr().err)
        assert not (codes / "there" / ".unfinished").exists()
        assert main(command) == 2, verb
        shutil.rmtree(codes / "there")
        assert main(command) == 0, verb
        shutil.rmtree(codes / "there")


def test_out_is_a_file_that_is_replaced(codes: Path) -> None:
    (codes / "there.csv").write_text("old")
    assert main(["match", "codes.npy", "codes.npy", "--out", "there.csv"]) == 0
    assert (codes / "there.csv").read_text() != "old"
