"""`unseam data`: what it prints, what it writes, and exit code 2 with one line for everything that is wrong."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from unseam.cli import main
from unseam.data import DATASETS


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("unseam.data.sets.idx.DEBIAN", tmp_path / "debian")
    monkeypatch.chdir(tmp_path)


def test_list_names_every_set_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["datasets"]) == set(DATASETS)
    assert document["datasets"]["sprites"]["status"] == "ready"
    assert document["datasets"]["sprites"]["parameters"]["size"] == 64
    assert "unseam data fetch mnist" in document["datasets"]["mnist"]["status"]
    shapes = document["datasets"]["shapes3d"]
    assert (shapes["here"], shapes["needs"], shapes["bytes"]) == (False, ["3dshapes.h5"], 267_573_662)
    assert document["datasets"]["sprites"]["here"]
    assert document["datasets"]["sprites"]["needs"] == []
    assert {"colour", "noise", "without", "share", "correlate", "pad"} <= set(document["any"])
    assert main(["data", "list"]) == 0
    text = capsys.readouterr().out
    assert all(f"{name}: " in text for name in DATASETS)
    assert "needs: 3dshapes.h5 (267.6 MB)" in text
    assert text.split("\nsprites: ")[1].split("\n")[2] == "  here: drawn on demand, or part of an installed package"
    assert "mpi3d_real.npz, real3d_complicated_shapes_ordered.npz (size unknown)" in text


def test_list_says_of_a_set_that_is_here_which_files_are(capsys: pytest.CaptureFixture[str]) -> None:
    """One variant of four, or the unpacked form of an archive, is not all of the files."""
    for name in ("mpi3d/mpi3d_toy.npz", "cars3d/data/cars/list.txt"):
        (Path("data") / name).parent.mkdir(parents=True, exist_ok=True)
        (Path("data") / name).write_bytes(b"")
    assert main(["data", "list"]) == 0
    text = capsys.readouterr().out
    assert "  here: mpi3d_toy.npz; not there, or in another form: mpi3d_realistic.npz, mpi3d_real.npz, real3d" in text
    assert "  here: in another form or place than nips2015-analogy-data.tar.gz\n" in text
    assert main(["data", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"]["mpi3d"]["present"] == ["mpi3d_toy.npz"]


def test_show_says_what_was_read_and_takes_labels(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wine.csv").write_text("ash,kind\n1.5,red\n2.5,white\n3.5,red\n")
    assert main(["data", "show", "wine.csv", "--data.labels", "kind"]) == 0
    out = capsys.readouterr().out
    assert "read: 3 rows, 2 columns: 'ash' as numbers, 'kind' as words" in out
    assert "categorical, 2 values" in out
    assert main(["data", "show", "wine.csv", "--data.labels", "kind", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"].startswith("3 rows, 2 columns")


def test_show_writes_a_sheet_and_says_what_it_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["data", "show", "sprites", "--data.size", "16", "--data.colour", "--json", "--out", "a.png"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["data"]["size"] == 16
    assert document["shape"] == [3, 16, 16]
    assert [f["name"] for f in document["factors"]] == ["shape", "scale", "orientation", "x", "y"]
    assert Path(document["out"]).read_bytes().startswith(b"\x89PNG")


def test_show_takes_the_users_own_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save("mine.npy", np.random.default_rng(0).random((6, 4)))
    Path("f.csv").write_text("hue,size\n" + "".join(f"{i % 3},{i / 7}\n" for i in range(6)))
    assert main(["data", "show", "mine.npy", "--data.factors", "f.csv", "--data.kinds", "hue=cyclic"]) == 0
    out = capsys.readouterr().out
    assert "cyclic, 3 values" in out
    assert "continuous" in out
    assert Path("mine.png").is_file()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["show", "sprits"], "did you mean 'sprites'"),
        (["show", "nowhere.npy"], "no such file"),
        (["show", "sprites", "--data.sise", "3"], "did you mean 'size'"),
        (["show", "sprites", "--data.size", "x"], "not an integer"),
        (["show", "sprites", "--data.size", "3"], "between 8 and 512"),
        (["show", "sprites", "--out", "x.jpg"], "x.jpg"),
        (["show", "nan.npy"], "nan.npy.* NaN"),
        (["show", "object.npy"], "object.npy.*object array"),
        (["show", "wide.npy"], "wide.npy.*Bernoulli"),
        (["show", "fine.npy", "--data.factors", "short.csv"], "short.csv.*2 rows"),
        (["show", "torn.npz"], "torn.npz.*corrupt"),
        (["show", "mnist"], "unseam data fetch mnist"),
        (["show", "dsprites"], "copy it there"),
        (["show", "sprites", "--data.without", "shap=2"], "did you mean 'shape'"),
        (["show", "manifolds", "--data.spread", "1e20"], "finite numbers"),
        (["show", "synth-linear", "--data.size", "1e18"], "between 1 and 100000000"),
        (["show", "words.csv"], "words.csv.*'kind' holds words.*labels=kind"),
        (["show", "hollow.h5"], "hollow.h5.*but stores 0"),
        (["fetch", "faces"], "cannot be fetched"),
        (["fetch", "mpi3d"], "four variants"),
        (["fetch", "smallnorb", "--from", "nowhere"], "no file smallnorb"),
        (["fetch", "mnst"], "did you mean 'mnist'"),
        (["list", "--data.size", "3"], "takes no --data"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    args: list[str], reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import re

    np.save("fine.npy", np.zeros((5, 3)))
    np.save("nan.npy", np.full((5, 3), np.nan))
    np.save("object.npy", np.array([{}]), allow_pickle=True)
    np.save("wide.npy", np.full((5, 8, 8), 7.0))
    Path("short.csv").write_text("a\n1\n2\n")
    Path("words.csv").write_text("a,kind\n1,x\n2,y\n")
    with h5py.File("hollow.h5", "w") as file:
        file.create_dataset("x", (10**9, 1000), np.float32, chunks=(1000, 1000))
    Path("torn.npz").write_bytes(b"PK\x03\x04torn")
    before = sorted(tmp_path.rglob("*"))
    assert main(["data", *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert re.search(reason, captured.err)
    assert sorted(tmp_path.rglob("*")) == before
