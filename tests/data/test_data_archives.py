"""Official formats: right when right, by rows, and one line naming the file when not."""

import contextlib
import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from data_makers import (
    ROOMS,
    SIZES,
    norb_bytes,
    write_cars3d,
    write_celeba,
    write_dsprites,
    write_mpi3d,
    write_shapes3d,
    write_smallnorb,
)
from PIL import Image

from unseam import BadInput
from unseam.data import load_data
from unseam.data.archives import cars3d, dsprites, mpi3d, shapes3d, smallnorb
from unseam.data.base import Dataset
from unseam.data.sets.rooms import Rooms
from unseam.data.sets.sprites import Sprites
from unseam.readers import Hdf5Rows


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    for cache in (
        dsprites.packed_images,
        shapes3d.read_shapes3d,
        mpi3d.read_mpi3d,
        cars3d.read_cars3d,
        smallnorb.part_of,
    ):
        cache.cache_clear()
    return tmp_path / "data"


def refused(match: str, name: str, **options: object) -> None:
    with pytest.raises(BadInput, match=match) as error:
        load_data(name, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["dsprites", "shapes3d", "mpi3d", "cars3d", "smallnorb", "celeba"])
def test_a_missing_file_says_where_it_belongs_and_how_to_fetch_it(folder: Path, name: str) -> None:
    refused(f"{name}.* in {folder / name}; run: unseam data fetch {name}", name)


@pytest.mark.parametrize("ending", ["npz", "hdf5"])
def test_dsprites_is_read_by_rows_without_its_pickle(folder: Path, ending: str) -> None:
    members = write_dsprites(folder / f"dsprites_small.{ending}")
    data = load_data("dsprites")
    index = torch.randperm(len(data))
    np.testing.assert_array_equal(data.batch(index)[:, 0].numpy(), members["imgs"][index.numpy()])
    np.testing.assert_array_equal(data.factors(index), members["latents_classes"][index.numpy(), 1:])
    assert data.space.sizes == SIZES[1:]
    (cache,) = (folder / "cache").iterdir()
    assert cache.stat().st_size < members["imgs"].nbytes / 7
    before = cache.stat().st_mtime_ns
    dsprites.packed_images.cache_clear()
    load_data("dsprites").batch(index)
    assert cache.stat().st_mtime_ns == before
    cache.write_bytes(cache.read_bytes()[:90])
    dsprites.packed_images.cache_clear()
    np.testing.assert_array_equal(load_data("dsprites").batch(index)[:, 0].numpy(), members["imgs"][index.numpy()])


@pytest.mark.parametrize("ending", ["npz", "hdf5"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"imgs": np.zeros((360, 20, 20), np.float32)}, "float32"),
        ({"imgs": np.full((360, 20, 20), 2, np.uint8)}, "holds 2"),
        ({"imgs": np.zeros((359, 20, 20), np.uint8)}, "classes"),
        ({"latents_classes": np.zeros((360, 6), int)}, "full grid"),
        ({"latents_classes": np.indices(SIZES).reshape(6, -1).T[::-1]}, "full grid"),
        ({"latents_classes": np.zeros((360, 6))}, "float64"),
    ],
)
def test_other_dsprites_files_are_refused_by_name(folder: Path, ending: str, changes: dict, reason: str) -> None:
    write_dsprites(folder / f"dsprites_small.{ending}", **changes)
    refused(f"dsprites_small.{ending}.*{reason}", "dsprites")
    assert not list((folder / "cache").glob("*"))


@pytest.mark.parametrize(
    "path", ["dsprites/dsprites_small.npz", "dsprites/dsprites_small.hdf5", "shapes3d/3dshapes.h5"]
)
@pytest.mark.parametrize("part", [0.0, 0.5, 0.98])
def test_truncated_files_are_refused_by_name(folder: Path, path: str, part: float) -> None:
    (write_shapes3d if "shapes3d" in path else write_dsprites)(folder / path)
    whole = (folder / path).read_bytes()
    (folder / path).write_bytes(whole[: int(part * len(whole))])
    refused(f"{Path(path).name}.* is (damaged|corrupt)", path.split("/")[0])


def test_dsprites_without_a_member_is_refused(folder: Path) -> None:
    (folder / "dsprites").mkdir(parents=True)
    np.savez_compressed(folder / "dsprites" / "dsprites_small.npz", pictures=np.zeros((3, 2, 2), np.uint8))
    refused("dsprites_small.npz.*imgs", "dsprites")


@pytest.mark.parametrize("chunk", [1, 48, (100, 4, 4, 1), (100, 5, 16, 3)])
def test_shapes3d_rows_and_factors(folder: Path, chunk: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes3d, "COSTLY", 10_000)
    members = write_shapes3d(folder / "shapes3d" / "3dshapes.h5", chunk)
    data = load_data("shapes3d")
    index = torch.randperm(len(data))
    truth = np.float32(members["images"][index.numpy()]).transpose(0, 3, 1, 2) / np.float32(255)
    np.testing.assert_array_equal(data.batch(index).numpy(), truth)
    np.testing.assert_array_equal(data.factors(index), members["grid"][index.numpy()])
    assert data.space.sizes == ROOMS
    assert data.space.names == Rooms(size=16).space.names
    assert (folder / "cache").exists() == (chunk != 1)  # large chunks are unpacked once; small ones read in place


def test_no_chunk_of_a_file_is_unpacked_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """h5py's own chunks hold pieces of many rows (15,000 x 4 x 4 x 1 of the official size), more than a step reads."""
    monkeypatch.setattr(shapes3d, "COSTLY", 10_000)
    monkeypatch.setattr("unseam.data.archives.rows.ROW_BLOCK", 10 * 16 * 16 * 3)
    write_shapes3d(folder / "shapes3d" / "3dshapes.h5", (100, 4, 4, 1))
    asked: list[slice] = []
    real = Hdf5Rows.__getitem__

    def counted(self: Hdf5Rows, index: object) -> np.ndarray:
        asked.append(index)  # type: ignore[arg-type]
        return real(self, index)

    monkeypatch.setattr(Hdf5Rows, "__getitem__", counted)
    load_data("shapes3d")
    assert [s for s in asked if s != slice(None)] == [slice(0, 100), slice(100, 200), slice(200, 300)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"images": np.zeros((288, 8, 8, 3), np.float32)}, "float32"),
        ({"images": np.zeros((287, 8, 8, 3), np.uint8)}, "labels has shape"),
        ({"labels": np.zeros((288, 6))}, "full grid"),
    ],
)
def test_other_shapes3d_files_are_refused(folder: Path, changes: dict, reason: str) -> None:
    write_shapes3d(folder / "shapes3d" / "3dshapes.h5", **changes)
    refused(f"3dshapes.h5.*{reason}", "shapes3d")


@pytest.mark.parametrize("compressed", [False, True])
def test_mpi3d_rows_are_where_the_grid_says(folder: Path, compressed: bool) -> None:
    axes = (4, 4, 2, 3, 3, 40, 40)
    images = write_mpi3d(folder / "mpi3d" / "mpi3d_toy.npz", compressed=compressed, axes=axes if compressed else ())
    data = load_data("mpi3d")
    assert data.space.sizes == axes
    index = torch.tensor([0, 460_799, 77, 230_400])
    np.testing.assert_array_equal(data.batch(index).flatten(1).numpy() * 255, images[index.numpy()].reshape(4, 3))
    assert data.factors(torch.tensor([40 * 40 * 3 + 41])).tolist() == [[0, 0, 0, 1, 0, 1, 1]]
    assert (folder / "cache").exists() == compressed  # a stored member is mapped in place


def test_mpi3d_variants_are_different_files(folder: Path) -> None:
    write_mpi3d(folder / "mpi3d" / "mpi3d_real.npz", 1_036_800)
    write_mpi3d(folder / "mpi3d" / "real3d_complicated_shapes_ordered.npz")
    assert load_data("mpi3d", variant="real").space.sizes == (6, 6, 2, 3, 3, 40, 40)
    assert len(load_data("mpi3d", variant="real-complex")) == 460_800
    refused("unseam data fetch mpi3d-toy", "mpi3d")
    refused("did you mean 'realistic'", "mpi3d", variant="realstic")


def test_other_mpi3d_files_are_refused(folder: Path) -> None:
    path = folder / "mpi3d" / "mpi3d_toy.npz"
    write_mpi3d(path, 4608)
    refused(r"mpi3d_toy.npz.*\(4608, 1, 1, 3\)", "mpi3d")
    write_mpi3d(path, compressed=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    assert mpi3d.complaint(path)
    refused("mpi3d_toy.npz.*damaged", "mpi3d")
    assert not list((folder / "cache").glob("*"))


def test_a_cache_that_would_fill_the_disk_is_refused_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mpi3d(folder / "mpi3d" / "mpi3d_toy.npz", compressed=True)
    from collections import namedtuple

    monkeypatch.setattr("shutil.disk_usage", lambda path: namedtuple("usage", "free")(1000))
    refused("needs 1,382,400 bytes .* 1,000 are free", "mpi3d")


def test_a_disk_that_fills_half_way_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mpi3d(folder / "mpi3d" / "mpi3d_toy.npz", compressed=True)

    def full(path: Path, key: str, where: str, axes: int) -> Iterator[np.ndarray]:
        yield np.zeros((10, 1, 1, 3), np.uint8)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mpi3d, "npz_blocks", full)
    refused("unpacking mpi3d-mpi3d_toy into .* failed: No space left on device", "mpi3d")
    assert not list((folder / "cache").iterdir())


def test_cars_are_in_the_order_of_the_list(folder: Path) -> None:
    im = write_cars3d(folder / "cars3d" / "data" / "cars")
    data = load_data("cars3d", size=8)
    assert data.space.names == ("elevation", "azimuth", "type")
    assert data.space.sizes == (4, 24, 3)
    for elevation, azimuth, model in [(0, 0, 0), (3, 23, 2), (1, 7, 1)]:
        seen = data.observe(torch.tensor([[elevation, azimuth, model]]))[0] * 255
        np.testing.assert_array_equal(seen.permute(1, 2, 0).round().numpy(), im[model, :, :, :, azimuth, elevation])
    small = load_data("cars3d", size=4).observe(torch.tensor([[2, 5, 1]]))[0] * 255
    truth = Image.fromarray(im[1, :, :, :, 5, 2]).resize((4, 4), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(small.permute(1, 2, 0).round().numpy(), np.asarray(truth))


def test_flipped_bytes_in_a_matlab_file_never_crash(folder: Path) -> None:
    """scipy's reader ends the process on some of these."""
    im = write_cars3d(folder, ("car_1", "car_2_mesh"))  # plain, compressed
    draw = np.random.default_rng(0)
    for number, name in enumerate(("car_1", "car_2_mesh")):
        np.testing.assert_array_equal(cars3d.model_views(folder / f"{name}.mat"), im[number])
        whole = (folder / f"{name}.mat").read_bytes()
        for _ in range(200):
            content = bytearray(whole)
            for place in draw.integers(0, 260, 2):
                content[place] = draw.integers(256)
            (folder / f"{name}.mat").write_bytes(content)
            with contextlib.suppress(BadInput):
                cars3d.model_views(folder / f"{name}.mat")


def test_broken_cars_are_refused_by_name(folder: Path) -> None:
    cars = folder / "cars3d" / "data" / "cars"
    write_cars3d(cars)
    whole = (cars / "car_010_mesh.mat").read_bytes()
    (cars / "car_010_mesh.mat").write_bytes(whole[:3000])
    refused("car_010_mesh.mat.* is damaged", "cars3d")
    (cars / "car_010_mesh.mat").unlink()
    refused("names car_010_mesh, but", "cars3d")
    (cars / "list.txt").write_text("\n")
    refused("list.txt.* is empty", "cars3d")


@pytest.mark.parametrize("packed", [False, True])
def test_smallnorb_takes_the_left_camera_and_draws_any_toy(folder: Path, packed: bool) -> None:
    arrays = write_smallnorb(folder / "smallnorb", packed=packed)
    data = load_data("smallnorb", size=12)
    index = torch.randperm(len(data))
    images = np.concatenate([arrays["training-dat"][:, 0], arrays["testing-dat"][:, 0]])
    np.testing.assert_array_equal(data.batch(index)[:, 0].mul(255).round().numpy(), images[index.numpy()])
    info = np.concatenate([arrays["training-info"], arrays["testing-info"]])[index.numpy()]
    np.testing.assert_array_equal(data.factors(index)[:, 1:], info[:, 1:] // [1, 2, 1])
    assert data.space.names == ("category", "elevation", "azimuth", "lighting")
    assert len(load_data("smallnorb", size=12, split="test")) == 60
    small = load_data("smallnorb", size=6).batch(torch.tensor([3])).mul(255).round()[0, 0]
    truth = Image.fromarray(images[3]).resize((6, 6), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(small.numpy(), np.asarray(truth))


def test_smallnorb_categories_have_the_published_bytes() -> None:
    """The official training-cat file is known to hold 0..4 over and over: its published MD5 can be had from nothing."""
    content = norb_bytes(np.tile(np.arange(5, dtype=np.int32), 4860))
    assert len(content) == 97_220
    assert hashlib.md5(content).hexdigest() == "fd5120d3f770ad57ebe620eb61a0b633"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: b"", "starts with nothing"),
        (lambda c: b"PK\x03\x04" + c[4:], "starts with 50 4b 03 04"),
        (lambda c: np.frombuffer(c[:24], "<i4").byteswap().tobytes() + c[24:], "byte order is swapped"),
        (lambda c: c[:15], "truncated or damaged"),
        (lambda c: c[:20], "truncated or damaged"),
        (lambda c: c[:6], "not a NORB file"),
        (lambda c: c[:-1], "truncated"),
        (lambda c: c + b"x", "longer"),
        (lambda c: norb_bytes(np.zeros((60, 3, 4, 4), np.uint8)), "2 cameras"),
        (lambda c: norb_bytes(np.zeros((59, 2, 4, 4), np.uint8)), "59 images but 60 labels"),
    ],
)
def test_damaged_norb_files_are_refused_by_name(folder: Path, change: object, reason: str) -> None:
    write_smallnorb(folder / "smallnorb")
    path = next((folder / "smallnorb").glob("*training-dat*"))
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))  # type: ignore[operator]
    refused(f"training-dat.*{reason}", "smallnorb")
    assert not list((folder / "cache").glob("*"))


def test_damaged_gzip_and_wrong_labels_are_refused(folder: Path) -> None:
    arrays = write_smallnorb(folder / "smallnorb")
    path = next((folder / "smallnorb").glob("*training-info*"))
    good = path.read_bytes()
    path.write_bytes(good[:-9])
    refused("training-info.* is damaged", "smallnorb")
    path.write_bytes(gzip.compress(norb_bytes(arrays["training-info"] + np.int32(1))))
    refused("training-info.*outside", "smallnorb")


@pytest.mark.parametrize("zipped", [False, True])
def test_celeba_pictures_attributes_and_splits(folder: Path, zipped: bool) -> None:
    values, colours = write_celeba(folder / "celeba", zipped=zipped)
    data = load_data("celeba", split="all", size=16)
    index = torch.tensor([11, 0, 5])
    seen = data.batch(index).mean((2, 3)) * 255
    assert data.shape == (3, 16, 16)
    assert (seen - torch.from_numpy(colours[index.numpy()])).abs().max() < 4  # JPEG
    np.testing.assert_array_equal(data.factors(index), values[index.numpy()])
    assert data.space.names[39] == "Attribute_39"
    assert [len(load_data("celeba", split=s)) for s in ("train", "valid", "test")] == [8, 2, 2]


def test_celeba_cuts_the_middle_square(folder: Path) -> None:
    write_celeba(folder / "celeba")
    picture = np.zeros((218, 178, 3), np.uint8)
    picture[35:183, 15:163] = 255  # the middle 148 x 148
    Image.fromarray(picture).save(folder / "celeba" / "img_align_celeba" / "000001.jpg", quality=95)
    assert load_data("celeba", size=148).batch(torch.tensor([0])).mean() > 0.99
    assert load_data("celeba", size=148, crop=178).batch(torch.tensor([0])).mean() < 0.75


def test_broken_celeba_is_refused_by_name(folder: Path) -> None:
    write_celeba(folder / "celeba")
    (folder / "celeba" / "img_align_celeba" / "000002.jpg").write_bytes(b"no picture")
    data = load_data("celeba")
    for row, reason in ((1, "000002.jpg.*not a readable image"), (2, "000003.jpg.*not there")):
        (folder / "celeba" / "img_align_celeba" / "000003.jpg").unlink(missing_ok=True)
        with pytest.raises(BadInput, match=reason):
            data.batch(torch.tensor([row]))
    path = folder / "celeba" / "list_attr_celeba.txt"
    text = path.read_text()
    for broken in (text[:-9], text.replace("12\n", "13\n", 1), text.replace(" 1", " 2", 1), ""):
        path.write_text(broken)
        from unseam.data.archives import celeba

        celeba.attributes.cache_clear()
        refused("list_attr_celeba.txt", "celeba")


def test_links_out_of_an_hdf5_file_are_not_followed(folder: Path) -> None:
    write_shapes3d(folder / "other.h5")
    (folder / "shapes3d").mkdir()
    with h5py.File(folder / "shapes3d" / "3dshapes.h5", "w") as file:
        for key in ("images", "labels"):
            file[key] = h5py.ExternalLink(str(folder / "other.h5"), key)
    refused("3dshapes.h5.*key='images' is unknown", "shapes3d")


def test_tar_and_zip_members_cannot_leave_the_folder(folder: Path, tmp_path: Path) -> None:
    from unseam.data.download.fetch import unpack

    folder.mkdir()
    with tarfile.open(folder / "bad.tar.gz", "w:gz") as archive:
        for name in ("data/cars/list.txt", "data/cars/../../../escaped.txt"):
            info = tarfile.TarInfo(name)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"bad"))
    with pytest.raises(BadInput, match=r"bad.tar.gz cannot be unpacked"):
        unpack(folder / "bad.tar.gz", "data/cars/")
    assert not list(tmp_path.rglob("escaped*"))
    assert [p.name for p in folder.iterdir()] == ["bad.tar.gz"]
    write_celeba(folder / "celeba", zipped=True)
    text = (folder / "celeba" / "list_attr_celeba.txt").read_text()
    (folder / "celeba" / "list_attr_celeba.txt").write_text(text.replace("000001.jpg", "../bad.tar"))
    refused("list_eval_partition.txt", "celeba")
    assert zipfile.is_zipfile(folder / "celeba" / "img_align_celeba.zip")


# Our renderers beside the official files


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


def test_our_sprites_keep_the_conventions_of_dsprites() -> None:
    ours = Sprites()
    assert conventions(ours, ours.space.sizes) == dict.fromkeys(conventions(ours, ours.space.sizes), True)


OFFICIAL = os.environ.get("UNSEAM_OFFICIAL_DATA")  # a data folder with the published files, for who has them
needs_official = pytest.mark.skipif(OFFICIAL is None, reason="UNSEAM_OFFICIAL_DATA does not name a data folder")


@pytest.fixture
def _official_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(OFFICIAL))


def agreement(ours: Dataset, theirs: Dataset) -> dict[str, float]:
    """Mean absolute difference of the pixels, for each value of each factor's first and last."""
    some = torch.randint(len(theirs), (512,), generator=torch.Generator().manual_seed(0))
    out = {"all": float((ours.batch(some) - theirs.batch(some)).abs().mean())}
    for i, factor in enumerate(theirs.space):
        for value in (0, (factor.size or 1) - 1):
            factors = theirs.factors(some)
            factors[:, i] = value
            out[f"{factor.name}={value}"] = float((ours.observe(factors) - theirs.observe(factors)).abs().mean())
    return out


@needs_official
@pytest.mark.usefixtures("_official_data")
def test_sprites_agree_with_the_official_dsprites(record_property: Callable[[str, object], None]) -> None:
    theirs, ours = load_data("dsprites"), Sprites()
    assert theirs.space == ours.space
    assert conventions(theirs, theirs.space.sizes) == conventions(ours, ours.space.sizes)
    found = agreement(ours, theirs)
    record_property("pixel agreement", found)
    assert found["all"] < 0.02  # half of a sprite's own 4 %: it is in the right place and turned the right way


@needs_official
@pytest.mark.usefixtures("_official_data")
def test_rooms_agree_with_the_official_shapes3d(record_property: Callable[[str, object], None]) -> None:
    theirs, ours = load_data("shapes3d"), Rooms()
    assert (theirs.space.names, theirs.space.sizes) == (ours.space.names, ours.space.sizes)
    found = agreement(ours, theirs)
    record_property("pixel agreement", found)
    assert found["all"] < 0.2
