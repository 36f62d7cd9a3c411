"""The command line as a whole: every verb has help with an example, bad input is one line and exit code 2."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from unseam.cli import VERBS, main


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    told = capsys.readouterr().out
    assert f"unseam {verb}" in told


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["trian"], "did you mean 'train'"),
        (["train", "sprits"], "did you mean 'sprites'"),
        (["train", "sprites", "--objective", "betavae"], "did you mean 'beta-vae'"),
        (["train", "sprites", "--betta", "4"], "did you mean --beta"),
        (["train", "sprites", "--stps", "4"], "--steps"),
        (["train", "sprites", "--steps", "many"], "--steps"),
        (["train", "sprites", "--seeds", "a..b"], "--seeds='a..b'"),
        (["train", "sprites", "--data.sise", "32"], "did you mean 'size'"),
        (["train", "missing/array.npy"], "no such file"),
        (["train"], "DATA is missing"),
        (["train", "--resume", "nowhere"], "not a run folder"),
        (["evaluate", "nowhere"], "not a run folder"),
        (["diagnose", "nowhere"], "not a run folder"),
        (["bench", "cohorts"], "did you mean 'cohort'"),
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


def test_python_m_unseam_and_version() -> None:
    done = subprocess.run([sys.executable, "-m", "unseam", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unseam ")
