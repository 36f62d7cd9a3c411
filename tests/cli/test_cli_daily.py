"""What a person stumbles over: names of runs, a missing folder said at once, help by its natural word."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import unseam
from unseam.cli import ON_RUNS, VERBS, main


def test_what_is_missing_is_said_before_anything_large_is_loaded():
    asked = [["diagnose", "nowhere"], ["train", "--resume", "nowhere"], ["train", "no/wine.csv"], ["find", "wine.csv"]]
    code = f"import sys; from unseam.cli import main; print(*map(main, {asked}), 'tyro' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.split() == ["2", "2", "2", "2", "False"]
    run, resumed, path, table = told.stderr.splitlines()
    assert "run='nowhere' is not a run folder" in run
    assert resumed == run
    assert "data='no/wine.csv': no such file or folder" in path
    assert "data='wine.csv': no such file or folder" in table


def test_help_by_its_natural_words(capsys):
    for words, said in ((["help", "train"], "usage: unseam train"), (["help", "data", "show"], "unseam data show")):
        with pytest.raises(SystemExit) as stop:
            main(words)
        told = capsys.readouterr().out
        assert stop.value.code == 0
        assert said in told
        assert "None}" not in told  # a flag that may be left out takes INT, not {None}|INT
    assert main(["help", "nosuch"]) == 2
    assert "did you mean" not in capsys.readouterr().err  # nothing is near


@pytest.mark.parametrize("verb", ON_RUNS)
def test_every_verb_on_runs_says_so_in_one_line(verb, capsys):
    assert verb in VERBS
    assert main([verb, "no/such/run"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_runs_are_named_after_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).random((60, 3)).astype(np.float32)
    np.save("wine.npy", x)
    assert main(["train", "wine.npy", "--steps", "2"]) == 0
    small = {"steps": 2, "network": "linear", "latents": 2, "show": False}
    folders = [unseam.fit(data, **small).folder for data in (torch.as_tensor(x), "wine.npy")]
    assert [str(f) for f in folders] == ["runs/array-beta-vae", "runs/wine-beta-vae-2"]
    assert [repr(unseam.load_run(f)).split(" on ")[1] for f in folders] == ["array, 2 steps)", "wine.npy, 2 steps)"]
    assert "run folder: runs/wine-beta-vae\nnext: unseam report runs/wine-beta-vae\n" in capsys.readouterr().out


def test_fit_says_where_it_writes_unless_it_was_told(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    small = {"steps": 2, "network": "linear", "latents": 2, "workers": 1, "data_parameters": {"size": 50}}
    run = unseam.fit("synth-linear", **small)
    assert f"run folder: {run.folder}" in capfd.readouterr().err
    unseam.fit("synth-linear", out="told", **small)
    unseam.fit("synth-linear", show=False, **small)
    assert main(["train", "synth-linear", "--data.size", "50", "--network", "linear", "--steps", "2"]) == 0
    assert capfd.readouterr().err == ""


def test_a_torch_dataset_is_no_array():
    rows = torch.utils.data.TensorDataset(torch.rand(5, 3))
    with pytest.raises(unseam.BadInput, match=r"data is a TensorDataset; .*tensors\[0\]"):
        unseam.load_data(rows)


def test_a_run_shows_itself_in_a_notebook(tmp_path):
    run = unseam.fit("synth-linear", seeds=[0, 1], steps=2, network="linear", latents=2, workers=1, show=False,
                     out=tmp_path / "<b>run", data_parameters={"size": 100})  # fmt: skip
    assert repr(run).endswith("2 x beta-vae on synth-linear, 2 steps)")
    page = run._repr_html_()
    assert page.count("<tr") == 3
    assert "<b>" not in page


def test_a_likelihood_asked_for_is_the_datas_too(tmp_path, monkeypatch, capsys):
    """The message said `likelihood=gaussian`, and with it said the same again."""
    monkeypatch.chdir(tmp_path)
    pixels = (255 * np.random.default_rng(0).random((40, 4, 4, 1))).astype(np.float32)
    np.save("pixels.npy", pixels)
    assert main(["train", "pixels.npy", "--steps", "2"]) == 2
    assert "--likelihood gaussian" in capsys.readouterr().err
    assert main(["train", "pixels.npy", "--steps", "2", "--likelihood", "gaussian"]) == 0
    assert "values up to 25" in capsys.readouterr().err  # and such a scale is not passed over
    with pytest.warns(UserWarning, match="divide by 255"):
        run = unseam.fit(pixels, likelihood="gaussian", steps=2, out="fitted", show=False)
    assert run.data.likelihood == "gaussian"


def test_bytes_are_said_to_be_pixels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", np.random.default_rng(0).poisson(5, (40, 3)).astype(np.uint8))
    assert main(["train", "counts.npy", "--network", "linear", "--steps", "2"]) == 0
    assert "bytes divided by 255" in capsys.readouterr().out


def test_a_strange_flag_is_named_not_taken_for_a_value(tmp_path, capsys):
    assert main(["explore", str(tmp_path), "--no-browser"]) == 2
    assert "'--no-browser' is not understood" in capsys.readouterr().err
    assert main(["explore", str(tmp_path), "--no-opn"]) == 2
    assert "did you mean --no-open?" in capsys.readouterr().err


def test_values_that_cannot_be_read_are_told_in_plain_words(capsys):
    assert main(["train", "sprites", "--steps", "1e4x"]) == 2
    assert capsys.readouterr().err == "unseam: --steps='1e4x' is not an integer\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["diag"], "diagnose"),
        (["train", "--see"], "--seeds"),
        (["train", "--bet"], "--beta"),
        (["data", "--lic"], "--licence"),
    ],
)
def test_the_shell_completes_verbs_and_flags(typed, offered, capsys):
    assert main(["completion", "bash"]) == 0
    words = " ".join(["unseam", *typed])
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _unseam; echo ${{COMPREPLY[@]}}"
    told = subprocess.run(["bash", "-c", capsys.readouterr().out + ask], capture_output=True, text=True, check=True)
    assert told.stdout.split() == [offered]


def test_completion_for_other_shells_names_every_verb(capsys):
    for shell in ("zsh", "fish"):
        assert main(["completion", shell]) == 0
        told = capsys.readouterr().out
        assert [verb for verb in VERBS if f" {verb}" not in told] == []


def test_scores_are_a_table_that_shows_itself():
    v = np.array([[i, j] for i in range(3) for j in range(4)])
    scores = unseam.score(v.astype(float), v, metrics="mig,irs", names=("<shape>", "x"))
    frame = scores.table()
    assert frame.loc["mig"].tolist() == [1.0, 1.0, 1.0]
    assert list(frame.columns) == ["value", "<shape>", "x"]
    assert str(scores).splitlines()[0].split() == ["metric", "value", "<shape>", "x"]
    page = scores._repr_html_()
    assert page.count("<tr") == 3
    assert "<shape>" not in page


def test_scores_that_say_nothing_of_one_factor_say_so():
    noise, one = np.random.default_rng(0).normal(size=(300, 3)), np.arange(300) % 4
    with pytest.warns(UserWarning, match="with one factor med is 1 for any codes"):
        scores = unseam.score(noise, one[:, None], metrics="med,mig")
    assert scores["med"].value == 1
    assert not scores["mig"].notes


def test_a_model_says_what_it_takes():
    model = unseam.load_data("synth-linear", size=10)
    from unseam.models import Architecture

    net = Architecture(network="linear", latents=2, likelihood="gaussian").build(model.shape, seed=0)
    with pytest.raises(unseam.BadInput, match=r"x is a ndarray.*run\.encode"):
        net.encode(np.zeros((2, 3), np.float32))
    posterior, z, _ = net(torch.zeros(2, 3))
    assert torch.equal(z, posterior.mean)


def test_score_asks_a_few_different_questions_by_default(tmp_path, capsys):
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 3, size=(120, 2))
    np.save(tmp_path / "factors.npy", factors)
    np.save(tmp_path / "codes.npy", factors + 0.1 * rng.normal(size=factors.shape))
    assert main(["score", str(tmp_path / "codes.npy"), str(tmp_path / "factors.npy"), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert list(scores) == [
        "mig", "mig-sup", "mcc", "dci-disentanglement", "dci-completeness", "dci-informativeness",
    ]  # fmt: skip
