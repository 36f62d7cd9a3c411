"""A run used like a transformer: own units in and out, without the training file; and made longer."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from unseam import BadInput
from unseam.cli import main
from unseam.run import Run, load_run
from unseam.train import fit, resume
from unseam.train.loop import exploded

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"ash": RNG.normal(2, 0.1, 200), "proline": RNG.normal(700, 300, 200), "kind": ["a", "b"] * 100})
SMALL = {"network": "linear", "latents": 2, "batch": 16, "workers": 1, "show": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trained on a file that is gone since."""
    place = tmp_path_factory.mktemp("own")
    TABLE.to_csv(place / "wine.csv", index=False)
    few = {"steps": 300, "lr": 0.01, "beta": 1e-3, "s2": 0.05, **SMALL}
    run = fit(place / "wine.csv", scale="standard", data_parameters={"labels": "kind"}, out=place / "run", **few)
    shutil.move(place / "wine.csv", place / "elsewhere.csv")
    return load_run(run.folder)


def test_a_run_encodes_and_decodes_in_the_datas_units_without_its_file(run: Run) -> None:
    x = TABLE[["ash", "proline"]].to_numpy()
    z = run.encode(x)
    assert z.shape == (200, 2)
    back = run.decode(z)
    assert back == pytest.approx(run.reconstruct(x))
    assert np.abs(back - x).mean(0) / x.std(0) == pytest.approx([0, 0], abs=0.3)  # in units of ash, and of proline
    model, standard = run.model(0), (x - x.mean(0)) / x.std(0)
    truth = model.encode(torch.as_tensor(standard, dtype=torch.float32)).mean
    np.testing.assert_allclose(z, truth.detach(), atol=1e-4)


def test_what_goes_in_comes_out(run: Run) -> None:
    frame = TABLE.set_index(np.arange(200) + 7)[["proline", "kind", "ash"]]  # other order, more columns
    codes = run.transform(frame)
    assert list(codes.columns) == ["z0", "z1"]
    assert codes.index[0] == 7
    assert list(run.reconstruct(frame).columns) == ["ash", "proline"]
    x = torch.tensor(TABLE[["ash", "proline"]].to_numpy())
    assert isinstance(run.encode(x), torch.Tensor)
    np.testing.assert_allclose(run.encode(x), codes, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (TABLE[["ash"]], "no column 'proline'"),
        (np.zeros((3, 5)), r"takes \('N', 2\)"),
        (np.full((3, 2), np.nan), "NaN or infinity"),
        ([["a", "b"]], "must be numbers"),
    ],
)
def test_what_does_not_fit_is_refused(run: Run, x: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        run.encode(x)


def test_other_data_takes_the_runs_own_scaling(run: Run) -> None:
    with pytest.raises(BadInput, match="no such file"):
        _ = run.data
    other = TABLE[["ash", "proline"]].to_numpy()[:50] * 2
    given = load_run(run.folder, data=other)
    assert len(given.data) == 50
    shift, factor = np.array(run.config.scaling.shift), np.array(run.config.scaling.factor)  # type: ignore[union-attr]
    np.testing.assert_allclose(given.data.batch(torch.arange(50)), (other - shift) / factor, atol=1e-4)
    with pytest.raises(BadInput, match="trained on"):
        load_run(run.folder, data=np.zeros((9, 7)))


def test_a_table_trained_unscaled_is_warned_about_by_column(tmp_path: Path) -> None:
    x = TABLE[["ash", "proline"]]
    with pytest.warns(UserWarning, match="'proline' has a standard deviation of .* 'ash'"):
        fit(x, out=tmp_path / "a", steps=2, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(x, out=tmp_path / "b", steps=2, scale="none", **SMALL)
        fit(x, out=tmp_path / "c", steps=2, scale="unit", **SMALL)
    assert load_run(tmp_path / "c").data.batch(torch.arange(200)).amax(0).tolist() == [1, 1]


def test_losses_that_explode_are_a_status(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(0, [1, 10], (200, 2))
    run = fit(x, out=tmp_path / "run", steps=20, scale="none", lr=1.0, **SMALL)
    assert run.table()["status"].tolist() == ["exploded"]
    assert "scale" in run.table()["note"][0]
    assert exploded(-1e3, 50.0, -2.0) == exploded(3.0, 1e4, 2.0) == ""
    assert "KL is 1e+06" in exploded(3.0, 1e6, 2.0)


def test_a_longer_run_is_the_run_that_was_long_from_the_start(tmp_path: Path) -> None:
    settings = {**SMALL, "network": "mlp", "encoder": (4,), "decoder": (4,), "seeds": [0, 1], "log_every": 8}
    whole = fit("synth-linear", out=tmp_path / "whole", steps=40, data_parameters={"size": 100}, **settings)
    short = fit("synth-linear", out=tmp_path / "run", steps=17, data_parameters={"size": 100}, **settings)
    assert main(["train", "--resume", str(short.folder), "--steps", "40"]) == 0
    long = load_run(short.folder)
    for member in (0, 1):
        for name, tensor in whole.weights(member).items():
            assert torch.equal(tensor, long.weights(member)[name])
    drop = ["seconds"]
    pd.testing.assert_frame_equal(whole.table().drop(columns=drop), long.table().drop(columns=drop))
    pd.testing.assert_frame_equal(whole.latents(), long.latents())
    with pytest.raises(BadInput, match="only become longer"):
        resume(long.folder, steps=39)


def test_old_folders_open(run: Run, tmp_path: Path) -> None:
    import json

    folder = Path(shutil.copytree(run.folder, tmp_path / "old"))
    document = json.loads((folder / "config.json").read_text())
    for name in ("shape", "features", "scaling"):
        document.pop(name)
    (folder / "config.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match="no such file"):  # it must ask its data for the shape
        load_run(folder).model(0)
    x = TABLE[["ash", "proline"]]
    assert load_run(folder, data=x).model(0).shape == (2,)
