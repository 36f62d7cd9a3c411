"""Files for use without unseam: they say what the model says, for every family, or nothing is written."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import unseam
from unseam.cli import main
from unseam.errors import Failed
from unseam.runs import export as room

FAMILIES = {"beta-vae": "diagonal", "beta-vae-sigma": "full", "ae": "point", "qlae": "quantised"}


def trained(folder: Path, objective: str = "beta-vae", network: str = "mlp"):
    widths = {"encoder": (8,), "decoder": (8,)}
    return unseam.fit("sprites", objective, steps=2, network=network, latents=3, workers=1, out=folder / "run",
                      data_parameters={"size": 16, "shapes": 1}, **widths)  # fmt: skip


@pytest.mark.parametrize("to", ["pt2", "torchscript", "safetensors"])
@pytest.mark.parametrize("objective", FAMILIES)
def test_every_family_of_posteriors(tmp_path, objective, to):
    told = room.export(trained(tmp_path, objective), 0, to)
    assert told["largest_difference"] < 1e-5
    assert all(path.is_file() for path in told["files"].values())


def test_onnx_runs_elsewhere_with_any_number_of_rows(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    run = trained(tmp_path, network="conv")
    told = room.export(run, 0, "onnx")
    session = onnxruntime.InferenceSession(str(told["files"]["encoder"]))
    x = run.data.batch(torch.arange(37))
    mean, variance = session.run(None, {"x": x.numpy()})
    with torch.no_grad():
        expected = run.model(0).encode(x)
    np.testing.assert_allclose(mean, expected.mean, atol=1e-5)
    np.testing.assert_allclose(variance, expected.variance(), rtol=1e-4)


def test_a_file_that_says_something_else_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(room.EXPORT_FORMATS, "safetensors", lambda *_: ({"weights.safetensors": b""}, 0.3))
    with pytest.raises(Failed, match=r"differ from the model by 0\.3"):
        room.export(trained(tmp_path), 0, "safetensors")
    assert not (tmp_path / "run" / "exported").exists()


def test_the_member_that_was_asked_for(tmp_path):
    run = unseam.fit("synth-linear", steps=2, network="linear", latents=2, workers=1, out=tmp_path / "run", beta=[1, 4],
                     seeds=[7], data_parameters={"size": 50}, show=False)  # fmt: skip
    files = room.export(run, 1, "safetensors")["files"]
    weights, card = load_file(files["weights"]), json.loads(files["card"].read_text())
    assert all(torch.equal(weights[name], value) for name, value in run.weights(1).items())
    assert not all(torch.equal(weights[name], value) for name, value in run.weights(0).items())
    assert (card["hyperparameters"], card["seed"]) == ({"beta": 4.0}, 7)


def test_the_command_and_its_card(tmp_path, capsys):
    run = trained(tmp_path)
    assert main(["export", str(run.folder), "--to", "safetensors", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    card = json.loads(Path(told["files"]["card"]).read_text())
    assert (card["objective"], card["shape"], card["architecture"]["latents"]) == ("beta-vae", [1, 16, 16], 3)
    assert main(["export", str(run.folder), "--member", "5"]) == 2
    with pytest.raises(SystemExit, match="0"):
        main(["help", "export"])
    assert "--to {onnx,pt2,torchscript,safetensors}" in capsys.readouterr().out
