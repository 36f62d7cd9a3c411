"""The one reader: what it takes and says, and every way a file has been seen to be wrong, in one line."""

import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from unseam import BadInput, readers
from unseam.readers import load_array, load_table

GRID = np.array([[1, 2.5], [3, 4.5], [5, 6.5]])


def table(path: Path, content: str | bytes, **more: str) -> readers.Columns:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_table(path, f"factors={path.name!r}", **more)


SPELLINGS = {
    "plain": "a,b\n1,2.5\n3,4.5\n5,6.5\n",
    "byte-order mark": "\ufeffa,b\n1,2.5\n3,4.5\n5,6.5\n",
    "Windows": "a,b\r\n1,2.5\r\n3,4.5\r\n5,6.5\r\n",
    "blank lines": "\n\na,b\n1,2.5\n\n3,4.5\n5,6.5\n\n",
    "quoted": '"a","b"\n"1","2.5"\n"3","4.5"\n"5","6.5"\n',
    "comments": "# made by hand\n# twice\na,b\n1,2.5\n3,4.5\n5,6.5\n",
    "semicolons": "a;b\n1;2.5\n3;4.5\n5;6.5\n",
    "blanks": "a, b\n1, 2.5\n3, 4.5\n5, 6.5",
    "Excel's first line": "sep=;\na;b\n1;2.5\n3;4.5\n5;6.5\n",
    "Excel's first line, quoted": '\n"sep=\t"\r\na\tb\r\n1\t2.5\r\n3\t4.5\r\n5\t6.5\r\n',
    "row numbers": ",a,b\n0,1,2.5\n1,3,4.5\n2,5,6.5\n",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_one_table(tmp_path: Path, name: str) -> None:
    found = table(tmp_path / "t.csv", SPELLINGS[name])
    assert found.names == ["a", "b"]
    np.testing.assert_array_equal(found.numbers(""), GRID)


def test_a_name_may_have_several_lines(tmp_path: Path) -> None:
    found = table(tmp_path / "t.csv", '# x\n"a\nlong",12" pipe,"c\r\nd"\n1,2.5,0\n3,4.5,0\n5,6.5,0\n')
    assert found.names == ["a long", '12" pipe', "c d"]
    np.testing.assert_array_equal(found.numbers("")[:, :2], GRID)


@pytest.mark.parametrize(
    "content",
    [
        "1,2.5\n3,4.5\n5,6.5\n",
        "\ufeff1,2.5\n3,4.5\n5,6.5\n",
        '"1","2.5"\n3,4.5\n5,6.5',
        "\n1,2.5\n3,4.5\n5,6.5",
        "# x\n1,2.5\n3,4.5\n5,6.5",
    ],
)
def test_no_first_row_and_no_column_is_lost(tmp_path: Path, content: str) -> None:
    found = table(tmp_path / "t.csv", content)
    assert len(found) == 3
    np.testing.assert_array_equal(found.numbers(""), GRID)
    assert "no header line" in found.says()


def test_what_was_read_is_said(tmp_path: Path) -> None:
    said = table(tmp_path / "t.csv", "# x\nash,kind,lit,n\n1.5,a,True,3\n2,b,False,4\n").says()
    assert said == (
        "2 rows, 4 columns: 'ash' as numbers, 'kind' as words, 'lit' as true or false, 'n' as whole numbers; "
        "1 comment lines skipped"
    )
    wide = pandas.DataFrame(np.zeros((4, 30))).rename(columns=str)
    assert load_table(wide, "data").says() == "4 rows, 30 columns: 30 as numbers"


def test_tabs_and_chosen_columns(tmp_path: Path) -> None:
    found = table(tmp_path / "t.tsv", "a\tb\tc\n1\t2\tx\n3\t4\ty\n", key="c,a")
    assert found.names == ["c", "a"]
    with pytest.raises(BadInput, match=r"t.csv.*column='d' is unknown"):
        table(tmp_path / "t.csv", "a,b\n1,2\n", key="d")


BAD_TEXT = {
    "empty cell": ("a,b\n1,2\n3,\n", "column 'b' has 1 empty or NaN cells .first in row 1"),
    "empty first cell": (",2\n3,4\n", "column 'factor0' has 1 empty"),
    "nothing": ("", "empty"),
    "comments only": ("# a\n# b\n", "empty"),
    "long row": ("a,b\n1,2,3\n4,5,6\n", "not a readable CSV"),
    "longer later": ("a,b\n1,2\n4,5,6\n", "not a readable CSV"),
    "twice": ("a,a\n1,2\n", "two columns named 'a'"),
    "latin-1": ("a,b\n1,\xe9\n".encode("latin-1"), "not a readable CSV"),
    "NUL": (b"\0\0\0\0", "not a readable CSV|0 rows"),
    "no rows": ("a,b\n", "0 rows"),
    "open quote": ('a,b\n1,"2\n', "not a readable CSV"),
}


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_text_is_refused_by_name(tmp_path: Path, name: str) -> None:
    content, reason = BAD_TEXT[name]
    with pytest.raises(BadInput, match=rf"t.csv.*({reason})") as error:
        table(tmp_path / "t.csv", content).numbers("t.csv")
    assert "\n" not in str(error.value)


def test_a_number_of_400_digits_is_a_word(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"t.csv.*'a' holds words"):
        table(tmp_path / "t.csv", f"a,b\n{'9' * 400},1\n").numbers("t.csv")


def test_parquet_keeps_names_words_and_leaves_out_the_index(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"a": [1, 2], "kind": ["x", "y"], "z": [0.5, 1.5]}, index=[7, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    found = load_table(tmp_path / "t.parquet", "factors")
    assert found.names == ["a", "kind", "z"]
    assert found.columns[1].tolist() == ["x", "y"]
    assert "__index_level_0__" in found.says()
    assert load_table(frame, "factors").names == ["a", "kind", "z"]


def test_parquet_bombs_and_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [[1], [2]]}), path)
    with pytest.raises(BadInput, match=r"column 'a' holds list"):
        load_table(path, "factors='t.parquet'")
    pyarrow.parquet.write_table(pyarrow.table({"a": [0.0] * 100_000}), path)
    monkeypatch.setattr(readers.limits, "memory", lambda: 100_000)
    with pytest.raises(BadInput, match=r"100,000 rows of 1 columns, more than"):
        load_table(path, "factors='t.parquet'")
    words = pyarrow.table({"a": ["w" * 100_000] * 12_000})  # 1.2 GB as an array of words
    pyarrow.parquet.write_table(words, path)
    assert set(load_table(path, "factors").columns[0]) == {"w" * 100_000}


@pytest.mark.parametrize("flip", [5, 40, -30, -5])
def test_damaged_parquet_is_refused(tmp_path: Path, flip: int) -> None:
    path = tmp_path / "t.parquet"
    pandas.DataFrame({"a": np.arange(5.0)}).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[flip] ^= 0xFF
    path.write_bytes(bytes(content[: flip if flip == -5 else None]))
    try:
        load_table(path, "factors='t.parquet'")
    except BadInput as error:
        assert "t.parquet" in str(error)  # noqa: PT017  some flips change nothing that is read
        assert "\n" not in str(error)  # noqa: PT017


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


BAD_NPY: dict[str, bytes] = {
    "empty": b"",
    "zip": b"PK\x03\x04x",
    "pickle": b"\x80\x04K\x01.",
    "far too many rows": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n") + b"0" * 100,
    "negative": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3), }\n") + b"0" * 100,
    "truth": header("{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2), }\n") + b"0" * 100,
    "overflow": header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**63}, 2), }}\n") + b"0" * 100,
    "no brace": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2),  \n") + b"0" * 100,
    "minuses": header("-" * 6000 + "1\n"),
    "call": header("__import__('os').system('touch owned')\n"),
    "objects": header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n") + b"0" * 100,
    "no type": header("{'descr': 'zz', 'fortran_order': False, 'shape': (1,), }\n") + b"0" * 100,
    "version": b"\x93NUMPY\x07\x00" + b"0" * 100,
}


@pytest.mark.parametrize("name", BAD_NPY)
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_bad_headers_are_refused_by_name(tmp_path: Path, name: str, ending: str) -> None:
    path = tmp_path / f"bad{ending}"
    path.write_bytes(BAD_NPY[name])
    if ending == ".npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", BAD_NPY[name])
    with pytest.raises(BadInput, match=rf"bad\{ending}") as error:
        load_array(path, f"data='bad{ending}'")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_flipped_bytes_never_end_in_a_traceback(tmp_path: Path, method: int) -> None:
    import io

    array = io.BytesIO()
    np.save(array, np.arange(200.0).reshape(50, 4))
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("x.npy", array.getvalue())
    whole = path.read_bytes()
    draw = np.random.default_rng(0)
    for _ in range(150):
        content = bytearray(whole)
        content[draw.integers(len(content))] ^= int(draw.integers(1, 256))
        path.write_bytes(content)
        try:
            np.asarray(load_array(path, "data='x.npz'"))
        except BadInput as error:
            assert "\n" not in str(error)  # noqa: PT017  a flip in a stored number is a number


def test_stored_members_stay_on_disk_and_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(0).random((50, 4))
    np.savez(tmp_path / "stored.npz", x=array, y=array[:3])
    np.savez(tmp_path / "fortran.npz", x=np.asfortranarray(array))
    for whole in (readers.npy.READ_WHOLE, 0):
        monkeypatch.setattr(readers.npy, "READ_WHOLE", whole)
        found = load_array(tmp_path / "stored.npz", "data", "x")
        assert isinstance(found, np.ndarray if whole else readers.FileRows)
        for index in (slice(None), slice(3, 9), slice(None, None, 7), [4, 4, 0], -1, np.arange(50) % 3 == 1, []):
            np.testing.assert_array_equal(found[index], array[index])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)), array)
        np.testing.assert_array_equal(load_array(tmp_path / "fortran.npz", "data"), array)
    with pytest.raises(IndexError):
        found[[50]]
    np.savez_compressed(tmp_path / "packed.npz", x=np.asfortranarray(array))
    np.testing.assert_array_equal(load_array(tmp_path / "packed.npz", "data"), array)
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros(1_000_000))
    monkeypatch.setattr(readers.limits, "memory", lambda: 1_000_000)
    with pytest.raises(BadInput, match="unpacks to 8,000,000 bytes, more than"):
        load_array(tmp_path / "bomb.npz", "data")


def test_members_that_are_no_arrays_are_not_offered(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("notes.txt", "hello")
    with pytest.raises(BadInput, match="holds 0 arrays"):
        load_array(tmp_path / "x.npz", "data")


def test_hdf5_that_was_never_written_is_refused_at_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (10**9, 1000), np.float32, chunks=(1000, 1000))
    with pytest.raises(BadInput, match=r"declares float32 \(1000000000, 1000\).*but stores 0"):
        load_array(tmp_path / "x.h5", "data='x.h5'")


@pytest.mark.parametrize("chunks", [None, (7, 4, 6), (3, 2, 3), (5, 3, 6), (1, 4, 1), (23, 1, 6)])
def test_hdf5_rows_are_numpys_however_they_are_chunked(tmp_path: Path, chunks: tuple[int, ...] | None) -> None:
    truth = np.arange(23 * 4 * 6, dtype=np.int16).reshape(23, 4, 6)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=truth, chunks=chunks)
    rows = load_array(tmp_path / "x.h5", "data='x.h5'")
    for index in (slice(None), slice(5, 19), slice(20, 40), slice(9, 9), slice(2, 20, 3), np.array([7, 1, 7, 22])):
        np.testing.assert_array_equal(rows[index], truth[index])


def test_hdf5_groups_have_keys_with_slashes_and_words_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["latents/classes"] = GRID
        file["latents/kind"] = GRID[:, 0]
        file["names"] = ["a", "b"]
    np.testing.assert_array_equal(load_array(tmp_path / "x.h5", "data", "latents/classes")[:], GRID)
    assert load_table(tmp_path / "x.h5", "labels", "latents/kind").names == ["kind"]  # one column has its key's name
    with pytest.raises(BadInput, match="not a plain array"):
        load_array(tmp_path / "x.h5", "data", "names")


def test_structured_arrays_are_tables_but_sub_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", np.array([(1, 2.5), (3, 4.5)], dtype=[("n", int), ("x", float)]))
    found = load_table(tmp_path / "s.npy", "factors")
    assert found.says() == "2 rows, 2 columns: 'n' as whole numbers, 'x' as numbers"
    np.save(tmp_path / "s.npy", np.zeros(3, dtype=[("n", int, (2,))]))
    with pytest.raises(BadInput, match=r"'n' is int64 \(2,\)"):
        load_table(tmp_path / "s.npy", "factors")


def test_reading_needs_no_torch() -> None:
    code = "import sys, unseam.readers; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: p.symlink_to(p)], ids=["folder", "loop"])
def test_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x.npy")
    with pytest.raises(BadInput, match="no such file"):
        load_array(tmp_path / "x.npy", "data='x.npy'")
