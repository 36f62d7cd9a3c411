"""A user's own arrays, folders and factor tables: read right, or refused in one line that names the file."""

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from unseam import BadInput, readers
from unseam.data import cache, config, load_data, user
from unseam.data.base import unit_range

RNG = np.random.default_rng(0)


def save(path: Path, array: np.ndarray, **more: np.ndarray) -> Path:
    if path.suffix == ".npz":
        np.savez(path, array, **more)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            for key, value in {"x": array, **more}.items():
                file[key] = value
    else:
        np.save(path, array, allow_pickle=True)
    return path


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5"])
@pytest.mark.parametrize(
    ("shape", "observed"),
    [((6, 5), (5,)), ((6, 8, 9), (1, 8, 9)), ((6, 8, 9, 3), (3, 8, 9)), ((6, 3, 8, 9), (3, 8, 9))],
)
def test_arrays_of_any_layout_from_any_file(tmp_path: Path, ending: str, shape: tuple, observed: tuple) -> None:
    array = RNG.random(shape)
    data = load_data(save(tmp_path / f"x{ending}", array))
    index = torch.tensor([3, 0, 3, 5])
    truth = array[index.numpy()]
    truth = np.moveaxis(truth, 3, 1) if shape[-1] == 3 else truth
    assert data.shape == observed
    np.testing.assert_array_equal(data.batch(index).numpy(), truth.reshape(4, *observed).astype(np.float32))
    again = load_data(**config(data))
    assert torch.equal(again.batch(index), data.batch(index))
    assert data.space is None
    with pytest.raises(BadInput, match="no factor table"):
        data.factors(index)


def test_bytes_are_pixels() -> None:
    array = RNG.integers(0, 256, (4, 8, 8), dtype=np.uint8)
    np.testing.assert_allclose(load_data(array).batch(torch.arange(4))[:, 0], array / 255, rtol=1e-6)


@pytest.mark.parametrize("dtype", [">f4", ">f8", "f2", "g", "?", "<u2", ">i4", "b"])
def test_any_number_type_becomes_float32(tmp_path: Path, dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    x = load_data(save(tmp_path / "x.npy", array)).batch(torch.tensor([1, 0]))
    assert x.dtype is torch.float32
    assert x.tolist() == [[1, 0], [0, 1]]


def test_a_large_file_cut_short_while_in_use_is_refused_and_does_not_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory map would end the process (SIGBUS) if the file were cut while it reads; a read just comes up short."""
    monkeypatch.setattr(readers.npy, "READ_WHOLE", 1 << 20)
    x = RNG.random((9000, 40))
    data = load_data(save(tmp_path / "x.npy", x))
    assert isinstance(data.table.x, readers.FileRows)
    assert data.batch(torch.tensor([8999, 0])).tolist() == x[[8999, 0]].astype("f4").tolist()
    (tmp_path / "x.npy").write_bytes(b"")
    with pytest.raises(BadInput, match=r"x.npy.*cut short"):
        data.batch(torch.tensor([5000]))


def test_a_small_file_is_read_once(tmp_path: Path) -> None:
    data = load_data(save(tmp_path / "x.npy", np.ones((9, 4))))
    (tmp_path / "x.npy").write_bytes(b"")
    assert data.batch(torch.tensor([5])).tolist() == [[1, 1, 1, 1]]


def test_whole_numbers_are_fine_as_vectors_but_not_as_images() -> None:
    assert load_data(np.arange(12).reshape(4, 3)).batch(torch.tensor([1])).tolist() == [[3.0, 4.0, 5.0]]
    with pytest.raises(BadInput, match=r"from 0 to 47, outside \[0, 1\]"):
        load_data(np.arange(48).reshape(3, 4, 4))


def test_likelihood_decides_the_range(tmp_path: Path) -> None:
    path = save(tmp_path / "x.npy", 3 * RNG.random((4, 8, 8)))
    with pytest.raises(BadInput, match=r"x.npy.*Bernoulli.*likelihood=gaussian"):
        load_data(path)
    assert load_data(path, likelihood="gaussian").likelihood == "gaussian"
    with pytest.raises(BadInput, match="Bernoulli"):
        load_data(save(tmp_path / "v.npy", -RNG.random((4, 8))), likelihood="bernoulli")
    with pytest.raises(BadInput, match="did you mean 'gaussian'"):
        load_data(path, likelihood="gausian")


def test_unit_range_looks_at_every_row() -> None:
    array = RNG.random((50, 4))
    unit_range(load_data(array), block=8)
    array[41, 1] = 1.5
    with pytest.raises(BadInput, match=r"1.5 in rows 40..47"):
        unit_range(load_data(array), block=8)


BAD_ARRAYS = {
    "object": (np.array([{}, 1], dtype=object), "pickle"),
    "words": (np.array(["a", "b"]), "dtype <U1"),
    "complex": (np.zeros((3, 2), complex), "complex128"),
    "nan": (np.array([[0.0, 1.0], [np.nan, 1.0]]), "NaN or infinity.*row 1"),
    "inf": (np.array([[0.0, 1.0], [1.0, -np.inf]]), "NaN or infinity.*row 1"),
    "huge": (np.array([[0.0, 1e300]]), "too large for float32"),
    "scalar": (np.array(1.0), "array of numbers"),
    "one axis": (np.zeros(5), "must be"),
    "five axes": (np.zeros((2, 2, 2, 2, 2)), "must be"),
    "empty": (np.zeros((0, 5)), "empty"),
    "which channels": (np.zeros((2, 3, 8, 3)), "layout"),
    "no channels": (np.zeros((2, 5, 8, 7)), "layout"),
}


@pytest.mark.parametrize("ending", [".npy", ".npz"])
@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays_are_refused_by_name(tmp_path: Path, name: str, ending: str) -> None:
    array, reason = BAD_ARRAYS[name]
    path = save(tmp_path / f"bad{ending}", array)
    with pytest.raises(BadInput, match=rf"bad\{ending}.*{reason}") as error:
        load_data(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5"])
@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "missing"])
def test_damaged_files_are_refused_by_name(tmp_path: Path, ending: str, damage: str) -> None:
    path = save(tmp_path / f"bad{ending}", RNG.random((50, 40)))
    whole = path.read_bytes()
    contents = {"truncated": whole[: len(whole) // 2], "garbage": b"not an array" * 99, "empty": b""}
    path.unlink() if damage == "missing" else path.write_bytes(contents[damage])
    with pytest.raises(BadInput, match=rf"bad\{ending}") as error:
        load_data(path)
    assert "\n" not in str(error.value)


def test_several_arrays_in_a_file_need_a_key(tmp_path: Path) -> None:
    for ending in (".npz", ".h5"):
        path = save(tmp_path / f"x{ending}", np.zeros((3, 2)), second=np.ones((4, 2)))
        with pytest.raises(BadInput, match=r"2 arrays.*key=NAME"):
            load_data(path)
        with pytest.raises(BadInput, match="did you mean 'second'"):
            load_data(path, key="secnd")
        assert len(load_data(path, key="second")) == 4


def test_hdf5_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "x.h5", np.zeros((3, 2)))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(BadInput, match=r"pip install 'unseam\[hdf5\]'"):
        load_data(path)


def test_layout_settles_what_the_shape_leaves_open() -> None:
    array = RNG.random((2, 3, 8, 3))
    assert load_data(array, layout="hwc").shape == (3, 3, 8)
    assert load_data(array, layout="chw").shape == (3, 8, 3)


def test_large_files_are_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LARGE_FILE", 100)
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    passes = []
    real = user.value_range
    monkeypatch.setattr(user, "value_range", lambda x, where: passes.append(1) or real(x, where))
    path = save(tmp_path / "x.npy", RNG.random((50, 4)))
    load_data(path), load_data(path)
    assert len(passes) == 1
    save(path, np.full((60, 4), np.nan))
    for _ in range(2):
        with pytest.raises(BadInput, match="NaN"):
            load_data(path)
    assert len(passes) == 3


def test_checks_go_through_large_arrays_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user, "CHECKED_AT_ONCE", 20)
    array = RNG.random((50, 4))
    assert user.value_range(array, "x") == (array.min(), array.max())
    array[43, 2] = np.inf
    with pytest.raises(BadInput, match="row 43"):
        user.value_range(array, "x")


# Folders of images


def folder_of(tmp_path: Path, sizes: list[tuple[int, int]], mode: str = "L") -> Path:
    for i, (h, w) in enumerate(sizes):
        shape = (h, w) if mode == "L" else (h, w, 3)
        image = Image.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8))
        image.save(tmp_path / f"{i:03}.png")
    return tmp_path


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_image_folder_in_the_order_of_names(tmp_path: Path, mode: str) -> None:
    data = load_data(folder_of(tmp_path, [(8, 10)] * 4, mode))
    assert data.shape == ((1 if mode == "L" else 3), 8, 10)
    truth = np.asarray(Image.open(tmp_path / "002.png")) / 255
    got = data.batch(torch.tensor([2]))[0].movedim(0, 2).numpy()
    np.testing.assert_allclose(got if mode == "RGB" else got[..., 0], truth, rtol=1e-6)


def test_images_of_different_sizes_are_refused_or_resized(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [(8, 8), (8, 9)])
    with pytest.raises(BadInput, match=r"001.png is 8x9 pixels, but 000.png is 8x8"):
        load_data(folder)
    assert load_data(folder, size=16).shape == (1, 16, 16)


def test_broken_pictures_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no images"):
        load_data(tmp_path)
    (folder_of(tmp_path, [(8, 8)]) / "bad.png").write_bytes((tmp_path / "000.png").read_bytes()[:40])
    with pytest.raises(BadInput, match=r"bad.png.* not a readable image"):
        load_data(tmp_path)


def test_deep_pictures_are_refused_and_hidden_files_ignored(tmp_path: Path) -> None:
    (folder_of(tmp_path, [(8, 8)]) / ".thumb.png").write_bytes(b"")
    assert len(load_data(tmp_path)) == 1
    Image.fromarray(np.full((8, 8), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(BadInput, match=r"deep.png.*8 bits"):
        load_data(tmp_path)


def test_a_path_that_is_not_there() -> None:
    for name in ("nowhere/x.npy", "x.npz", "./nowhere"):
        with pytest.raises(BadInput, match="no such file or folder"):
            load_data(name)


def test_an_unknown_ending_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.mat").write_bytes(b"")
    with pytest.raises(BadInput, match=r"x.mat.* ends in '.mat'; known are"):
        load_data(tmp_path / "x.mat")


def test_grey_and_colour_mixed_is_an_error_that_says_which(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [(8, 8), (8, 8)])
    Image.new("RGB", (8, 8), (9, 99, 199)).save(tmp_path / "extra.png")
    with pytest.raises(BadInput, match=r"mixes grey \(000.png\) and colour \(extra.png\): 2 of 3.*channels=1 or"):
        load_data(folder)
    assert load_data(folder, channels=3).shape == (3, 8, 8)
    assert load_data(folder, channels=1).shape == (1, 8, 8)
    with pytest.raises(BadInput, match="channels=2"):
        load_data(folder, channels=2)


def test_names_of_folders_are_labels(tmp_path: Path) -> None:
    for name in ("cats/a.png", "cats/b.png", "dogs/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (8, 8), 10 * len(name)).save(tmp_path / name)
    data = load_data(tmp_path)
    assert data.space.names == ("folder",)
    assert data.factors(torch.arange(3))[:, 0].tolist() == [0, 0, 1]
    assert data.reading_note == "3 grey pictures of 8x8 pixels; labels from the names of folders: folder"
    assert load_data(tmp_path, factors=np.arange(3)).space.names == ("factor0",)
    deep = tmp_path / "x"
    for name in ("one/red/1.png", "one/blue/2.png", "two/red/3.png", "two/4.png"):
        (deep / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(deep / name)
    assert load_data(deep).space.names == ("folder",)  # the second level is not everywhere
    (deep / "two" / "4.png").unlink()
    assert load_data(deep).space.names == ("folder1", "folder2")


def test_large_folders_are_read_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path, [(8, 8)] * 5, "RGB")
    whole = load_data(folder)
    monkeypatch.setattr(user, "MEMORY", 0)
    lazy = load_data(folder)
    assert not isinstance(lazy.table.x, np.ndarray)
    index = torch.tensor([4, 0, 4])
    assert torch.equal(lazy.batch(index), whole.batch(index))
    assert lazy.batch(index[:0]).shape == (0, 3, 8, 8)


def test_picture_bombs_are_refused_without_a_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    import struct
    import zlib

    for name, side in (("a.png", 60_000), ("b.png", 13_000)):
        head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        chunk = b"IHDR" + head
        content = struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n" + content + struct.pack(">I", 0) + b"IDAT")
        with pytest.raises(BadInput, match=rf"{name}.*pixels"):
            load_data(tmp_path)
        (tmp_path / name).unlink()
    assert not recwarn.list


# Tables as data


WINE = "ash,alcohol,kind\n1.5,12,red\n2.5,13,white\n3.5,11,red\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_are_data_and_their_columns_labels(tmp_path: Path, ending: str) -> None:
    import pandas

    path = tmp_path / f"wine.{ending}"
    (tmp_path / "wine.csv").write_text(WINE)
    frame = pandas.read_csv(tmp_path / "wine.csv")
    if ending == "parquet":
        frame.to_parquet(path)
    for source in (path, frame):
        data = load_data(source, labels="kind")
        assert data.batch(torch.arange(3)).tolist() == [[1.5, 12], [2.5, 13], [3.5, 11]]
        assert data.features == ("ash", "alcohol")
        assert data.space.names == ("kind",)
        assert data.factors(torch.arange(3))[:, 0].tolist() == [0, 1, 0]
        assert load_data(source, key="alcohol").features == ("alcohol",)
        assert data.reading_note.startswith("3 rows, 3 columns: 'ash' as numbers")
    assert torch.equal(
        load_data(**config(load_data(path, labels="kind"))).batch(torch.arange(3)), data.batch(torch.arange(3))
    )
    with pytest.raises(BadInput, match=r"wine.*'kind' holds words \('red'\).*labels=kind"):
        load_data(path)
    with pytest.raises(BadInput, match="did you mean 'kind'"):
        load_data(path, labels="knd")


@pytest.mark.parametrize("ending", [".npz", ".h5"])
def test_labels_from_the_same_file_or_from_the_factors_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"both{ending}"
    save(path, RNG.random((6, 4)), y=np.array([0, 1, 2, 0, 1, 2]))
    key = "arr_0" if ending == ".npz" else "x"
    data = load_data(path, key=key, labels="y")
    assert data.factors(torch.arange(6))[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert load_data(X, factors=path, labels="y").space.sizes == (3,)
    with pytest.raises(BadInput, match=r"2 arrays"):
        load_data(X, factors=path)
    with pytest.raises(BadInput, match="labels='y'"):
        load_data(X, labels="y")


def test_names_of_a_frame_are_kept() -> None:
    import pandas

    data = load_data(X, factors=pandas.DataFrame({"a": range(6), "b": list("xyxyxy")}))
    assert data.space.names == ("a", "b")
    assert data.space.kinds == ("ordinal", "categorical")


def test_pixels_as_floats_are_told_to_divide() -> None:
    with pytest.raises(BadInput, match=r"divide them by 255 or pass likelihood=gaussian \(--likelihood gaussian"):
        load_data(255 * RNG.random((3, 8, 8)))


def test_a_note_that_cannot_be_kept_or_read_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LARGE_FILE", 100)
    path = save(tmp_path / "x.npy", RNG.random((50, 4)))
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "file"))
    assert len(load_data(path)) == 50
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    load_data(path)
    (note,) = (tmp_path / "data" / "checked").iterdir()
    note.write_text("[1")
    assert len(load_data(path)) == 50


# Factor tables

X = RNG.random((6, 4))


def test_kinds_are_inferred_and_ranks_kept(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(
        "shape,turn,size,lit,hue\ncube,0,0.5,True,10\nball,90,0.25,False,30\ncube,270,1,True,20\n"
        "ball,0,0.5,True,10\ncube,90,2.5,False,20\nball,90,0.5,True,10\n"
    )
    data = load_data(X, factors=tmp_path / "f.csv", kinds="turn=cyclic")
    assert data.space.names == ("shape", "turn", "size", "lit", "hue")
    assert data.space.kinds == ("categorical", "cyclic", "continuous", "categorical", "ordinal")
    assert data.space.sizes == (2, 3, None, 2, 3)
    assert data.factors(torch.tensor([2])).tolist() == [[1.0, 2.0, 1.0, 1.0, 1.0]]
    assert data.factors(torch.arange(6)).dtype is torch.float32


def test_incomplete_grids_find_their_rows_and_refuse_others() -> None:
    table = np.array([[0, 0], [0, 1], [1, 0], [2, 2], [2, 2], [1, 2]])
    data = load_data(X, factors=table)
    assert data.space.sizes == (3, 3)
    assert data.space.kinds == ("ordinal", "ordinal")
    assert not data.stochastic
    picked = data.observe(torch.tensor([[1, 2], [0, 1], [2, 2]]))
    np.testing.assert_array_equal(picked.numpy(), X[[5, 1, 3]].astype(np.float32))
    drawn = data.observe(torch.full((50, 2), 2), torch.Generator().manual_seed(0)).unique(dim=0)
    assert len(drawn) == 2
    with pytest.raises(BadInput, match=r"\[1, 1\] occur in no row"):
        data.observe(torch.tensor([[1, 1]]))


def test_continuous_rows_are_found_exactly() -> None:
    table = RNG.standard_normal((6, 3))
    data = load_data(X, factors=table)
    index = torch.tensor([4, 0])
    assert torch.equal(data.observe(data.factors(index)), data.batch(index))
    with pytest.raises(BadInput, match="occur in no row"):
        data.observe(data.factors(index) + 1)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv"])
def test_tables_from_any_file_agree(tmp_path: Path, ending: str) -> None:
    table = np.array([[0, 5], [1, 6], [0, 7], [1, 5], [0, 6], [1, 7]])
    path = tmp_path / f"f{ending}"
    np.savetxt(path, table, delimiter=",") if ending == ".csv" else save(path, table)
    data = load_data(X, factors=str(path), kinds=["categorical", "ordinal"])
    assert data.space.sizes == (2, 3)
    np.testing.assert_array_equal(data.factors(torch.arange(6)).numpy(), table - [0, 5])


BAD_TABLES = {
    "short": ("1\n2\n", "has 2 rows, but the data has 6"),
    "empty cell": ("a,b\n" + "1,2\n" * 5 + "1,\n", "1 empty or NaN"),
    "infinite": ("a\n" + "1\n" * 5 + "inf\n", "'a' holds NaN or infinity"),
    "ragged": ("a,b\n1,2\n1,2,3\n", "not a readable CSV"),
    "nothing": ("", "not a readable CSV"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused_by_name(tmp_path: Path, name: str) -> None:
    content, reason = BAD_TABLES[name]
    (tmp_path / "f.csv").write_text(content)
    with pytest.raises(BadInput, match=f"f.csv.*{reason}") as error:
        load_data(X, factors=tmp_path / "f.csv")
    assert "\n" not in str(error.value)


def test_wrong_tables_and_kinds_are_refused(tmp_path: Path) -> None:
    for options, reason in [
        ({"factors": "nowhere.csv"}, "nowhere.csv.*no such file"),
        ({"factors": np.zeros((5, 2))}, "5 rows"),
        ({"factors": np.zeros((6, 2, 2))}, "shape"),
        ({"factors": np.array([{}] * 6)}, "dtype object"),
        ({"factors": np.full((6, 1), np.nan)}, "NaN"),
        ({"factors": np.zeros((6, 2)), "kinds": "ordinal"}, "kinds has 1 entries"),
        ({"factors": np.zeros((6, 1)), "kinds": "ordnal"}, "did you mean 'ordinal'"),
        ({"factors": np.zeros((6, 1)), "kinds": "factr0=ordinal"}, "did you mean 'factor0'"),
        ({"factors": np.array(["a"] * 6), "kinds": "continuous"}, "holds words"),
        ({"factors": np.array([0.5, 1e300, 2, 3, 4, 5])}, "NaN or infinity"),
        ({"kinds": "ordinal"}, "kinds.*factors"),
        ({"key": "x"}, "key"),
    ]:
        with pytest.raises(BadInput, match=reason):
            load_data(X, **options)


def test_arrays_in_memory_cannot_be_stored() -> None:
    with pytest.raises(BadInput, match=r"save it as .npy"):
        config(load_data(X))


def test_kinds_that_are_no_kinds_are_refused() -> None:
    with pytest.raises(BadInput, match=r"kinds=1\.5 must be text, a list or an object"):
        load_data(np.zeros((3, 2)), factors=np.arange(3), kinds=1.5)
