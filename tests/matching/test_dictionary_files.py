"""Files as SAELens, sparsify, dictionary_learning and Gemma Scope write them, from Python as from the command line."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from unseam import match
from unseam.cli import main
from unseam.errors import BadInput
from unseam.matching import open_set

W = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)  # 12 directions in 5 dimensions


def tensors(style):
    rows, columns = torch.tensor(W), torch.tensor(W.T.copy())
    biases = {"b_dec": torch.zeros(5), "b_enc": torch.zeros(12)}
    if style == "parameters":  # SAELens, and JumpReLU and Matryoshka of dictionary_learning
        return {"W_enc": columns, "W_dec": rows, **biases, "threshold": torch.ones(12)}
    if style == "sparsify":
        return {"encoder.weight": rows.clone(), "encoder.bias": torch.zeros(12), "W_dec": rows, "b_dec": torch.zeros(5)}
    return {"bias": torch.zeros(5), "encoder.weight": rows, "encoder.bias": torch.zeros(12), "decoder.weight": columns}


@pytest.mark.parametrize(
    ("style", "file"),
    [("parameters", "sae_weights.safetensors"), ("sparsify", "sae.safetensors"), ("linear", "ae.pt"),
     ("parameters", "ae.pt"), ("linear", "model.safetensors"), ("parameters", "params.npz")],
)  # fmt: skip
def test_directions_are_found_whatever_the_library(tmp_path, style, file):
    path = tmp_path / file
    if file.endswith(".safetensors"):
        save_file(tensors(style), path)
    elif file.endswith(".npz"):
        np.savez(path, **{name: t.numpy() for name, t in tensors(style).items()})
    else:
        torch.save(tensors(style), path)
    assert np.array_equal(open_set(path), W)
    assert match(path, W).stable.all()
    if file != "model.safetensors":
        assert np.array_equal(open_set(tmp_path), W)  # the folder
    name = "decoder.weight" if style == "linear" else "W_dec"
    found = match(f"{path}:{name}", W, signed=True)
    assert found.stable.all()
    assert found.names[0].startswith(file)
    assert main(["match", str(path), f"{path}:{name}"]) == 0


def test_a_checkpoint_of_training_is_read_and_what_is_stated_wins(tmp_path):
    torch.save({"step": 3, "ae": tensors("linear"), "optimizer": {}}, tmp_path / "ae.pt")
    assert np.array_equal(open_set(tmp_path / "ae.pt"), W)
    assert np.array_equal(open_set(tmp_path / "ae.pt", columns=True), W)  # not transposed twice
    assert np.array_equal(open_set(tmp_path / "ae.pt", columns=False), W.T)


def test_what_cannot_be_read_is_refused_in_a_line(tmp_path):
    (tmp_path / "bad.pt").write_bytes(b"nothing")
    torch.save({"step": 3}, tmp_path / "empty.pt")
    torch.save({"a": torch.ones(2, 3), "b": torch.ones(2, 3)}, tmp_path / "two.pt")
    for place, why in [("bad.pt", "cannot be read"), ("empty.pt", r"\(none\)"), ("two.pt", "pick one"),
                       ("two.pt:c", "no tensor 'c'"), ("none.pt", "does not exist")]:  # fmt: skip
        with pytest.raises(BadInput, match=why):
            match(str(tmp_path / place), W)
