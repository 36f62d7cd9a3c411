"""Every format gives the table that was written; hostile files end in one line."""

import gzip
import json
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import unseam
from unseam import BadInput
from unseam.data import load_data
from unseam.finding.read import read
from unseam.readers import limits, load_table

TABLE = pd.DataFrame(
    {
        "size": [1.5, 2.25, -3.0, 4.0],
        "count": [1, 2, 3, 40],
        "kind": ["a", "b", "b", "c"],
        "gone": [0.5, None, 1.0, 2.0],
    }
)


def write_zip(frame: pd.DataFrame, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/t.csv", frame.to_csv(index=False))
        archive.writestr("__MACOSX/inner/._t.csv", b"\x00")
        archive.writestr("readme.txt", "about")


WRITERS: dict[str, Any] = {
    ".csv": lambda f, p: f.to_csv(p, index=False),
    ".tsv": lambda f, p: f.to_csv(p, index=False, sep="\t"),
    ".csv.gz": lambda f, p: f.to_csv(p, index=False, compression="gzip"),
    ".json": lambda f, p: f.to_json(p, orient="records"),
    ".jsonl": lambda f, p: f.to_json(p, orient="records", lines=True),
    ".jsonl.gz": lambda f, p: f.to_json(p, orient="records", lines=True, compression="gzip"),
    ".zip": write_zip,
    ".parquet": lambda f, p: f.to_parquet(p, index=False),
    ".feather": lambda f, p: f.to_feather(p),
    ".dta": lambda f, p: f.to_stata(p, write_index=False),
    ".xlsx": lambda f, p: f.to_excel(p, index=False),
    ".sav": lambda f, p: pytest.importorskip("pyreadstat").write_sav(f, p),
}


def same_table(names: list[str], columns: list[Any]) -> None:
    assert names == list(TABLE.columns)
    for name, column in zip(names, columns, strict=True):
        if name == "kind":
            assert list(column) == list(TABLE["kind"])
        else:
            np.testing.assert_allclose(column.astype(float), TABLE[name].to_numpy(float))


@pytest.mark.parametrize("ending", WRITERS)
def test_a_format_gives_the_table_that_was_written(ending: str, tmp_path: Path) -> None:
    if ending == ".xlsx":
        pytest.importorskip("openpyxl")
    path = tmp_path / f"My.Table{ending}"
    WRITERS[ending](TABLE, path)
    table = load_table(path, "data", gaps=True)
    same_table(table.names, table.columns)
    same_table(read(str(path)).table.names, read(str(path)).table.columns)  # as `find` reads it
    WRITERS[ending](TABLE.drop(columns="gone"), path)
    numbers = load_data(str(path), key="size,count")  # as `train` reads it
    assert (len(numbers), numbers.shape) == (4, (2,))


@pytest.mark.parametrize("document", [
    '{"size": [1, 2], "kind": ["a", "b"]}', '{"size": {"0": 1, "1": 2}, "kind": {"0": "a", "1": "b"}}',
    '{"name": "x", "rows": [{"size": 1, "kind": "a"}, {"size": 2, "kind": "b"}]}',
])  # fmt: skip
def test_other_shapes_of_json(document: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(document)
    table = load_table(tmp_path / "t.json", "data")
    assert (table.names, table.columns[0].tolist(), list(table.columns[1])) == (["size", "kind"], [1, 2], ["a", "b"])


def test_an_excel_sheet_without_names_and_a_second_sheet(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        pd.DataFrame().to_excel(book, sheet_name="empty")
        pd.DataFrame([[1.0, 2.0], [3.0, 4.5]]).to_excel(book, sheet_name="cells", header=False, index=False)
    table = load_table(tmp_path / "t.xlsx", "data")
    np.testing.assert_array_equal(np.stack(table.columns, 1), [[1.0, 2.0], [3.0, 4.5]])
    assert "no header line" in table.says()
    assert "sheet 'cells' of 2" in table.says()


DAMAGED = {
    "t.json": b"[{",
    "u.json": b"[1, 2]",
    "v.json": b"[" * 100_000,
    "w.json": b'{"a": [1], "b": [1, 2]}',
    "t.jsonl": b'{"a": 1}\nnot json\n',
    "t.csv.gz": gzip.compress(b"a,b\n1,2\n")[:-6],
    "u.csv.gz": b"not gzip",
    "t.zip": b"PK\x03\x04broken",
    "t.feather": b"ARROW1xx" * 9,
    "t.dta": b"<stata_dta><header><release>117</release>",
    "u.dta": b"\x00" * 64,
    "t.xlsx": b"PK no",
    "t.sav": b"$FL2 nothing",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_told_in_one_line_that_names_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    with pytest.raises(BadInput) as error:
        load_table(path, f"data={name!r}")
    assert str(error.value).startswith(f"data={name!r}")
    assert "\n" not in str(error.value)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "memory", lambda: 1 << 20)
    many = b"1,2\n" * (1 << 20)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(many))
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", many)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", many)
    (tmp_path / "t.json").write_bytes(b"[" + b'{"a": 1},' * 30_000 + b'{"a": 1}]')
    for name, words in {"t.csv.gz": "unpacks to", "t.zip": "unpacks to", "t.json": "too many"}.items():
        with pytest.raises(BadInput, match=words):
            load_table(tmp_path / name, "data")
    with pytest.raises(BadInput, match=r"unpacks to|needs openpyxl"):
        load_table(tmp_path / "t.xlsx", "data")


def test_a_zip_of_two_tables_names_them(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n1\n")
    with pytest.raises(BadInput, match=r"holds 2 tables \(a.csv, b.csv\)"):
        load_table(tmp_path / "t.zip", "data")


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name, extra in {"t.xlsx": "excel", "t.sav": "spss", "t.feather": "parquet"}.items():
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(BadInput, match=rf"pip install 'unseam\[{extra}\]'"):
            load_table(tmp_path / name, "data")


def frames() -> dict[str, Any]:
    import narwhals as nw
    import pyarrow as arrow

    return {
        "arrow": arrow.Table.from_pandas(TABLE),
        "narwhals": nw.from_native(TABLE),
        "nullable": TABLE.convert_dtypes(),
        "category": TABLE.astype({"kind": "category"}),
        "HF": FakeDataset(TABLE),
    }


class Image:
    """What Hugging Face calls the feature of a column of pictures."""


class FakeDataset:
    """The part of `datasets.Dataset` that is used."""

    def __init__(self, frame: pd.DataFrame, features: dict[str, Any] | None = None) -> None:
        self.frame, self.column_names = frame, list(frame.columns)
        self.features = features or dict.fromkeys(frame.columns)

    def to_pandas(self) -> pd.DataFrame:
        return self.frame

    def __getitem__(self, name: str) -> list[Any]:
        return list(self.frame[name])


@pytest.mark.parametrize("library", ["arrow", "narwhals", "nullable", "category", "HF"])
def test_tables_of_other_libraries_keep_their_names(library: str) -> None:
    table = load_table(frames()[library], "data", gaps=True)
    same_table(table.names, table.columns)
    assert read(frames()[library]).table.names == list(TABLE.columns)


def test_polars_eager_and_lazy_keep_their_names() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: TABLE[name].tolist() for name in TABLE}, nan_to_null=True)
    for each in (frame, frame.lazy(), frame.with_columns(polars.col("kind").cast(polars.Categorical))):
        table = load_table(each, "data", gaps=True)
        same_table(table.names, table.columns)


def test_xarray_keeps_its_names() -> None:
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(np.arange(6.0).reshape(3, 2), dims=("row", "gene"), coords={"gene": ["g1", "g2"]})
    assert read(x).table.names == ["g1", "g2"]
    both = xarray.Dataset({"a": ("row", [1.0, 2.0]), "b": ("row", [3.0, 4.0])})
    assert read(both).table.names == ["a", "b"]


def test_sparse_matrices_are_read_as_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy import sparse

    dense = np.random.default_rng(0).poisson(0.3, (50, 4)).astype(float)
    for matrix in (sparse.csr_matrix(dense), sparse.coo_array(dense)):
        np.testing.assert_array_equal(np.stack(read(matrix).table.columns, 1), dense)
        assert load_data(matrix).shape == (4,)
    monkeypatch.setattr(limits, "memory", lambda: 1000)
    with pytest.raises(BadInput, match="dense it would need"):
        read(sparse.csr_matrix(dense))


def test_pictures_of_a_hugging_face_data_set() -> None:
    from PIL import Image as Pillow

    pictures = [Pillow.fromarray(np.full((8, 8), i, np.uint8)) for i in range(3)]
    data = FakeDataset(pd.DataFrame({"image": pictures, "label": [0, 1, 2]}), {"image": Image(), "label": None})
    assert load_data(data).shape == (1, 8, 8)
    assert read(data).shape == (1, 8, 8)


def test_stray_pictures_are_left_out_and_named(tmp_path: Path) -> None:
    from PIL import Image as Pillow

    g = np.random.default_rng(0)
    for i in range(60):
        Pillow.fromarray(g.integers(0, 255, (8, 8), np.uint8)).save(tmp_path / f"{i:02}.png")
    Pillow.fromarray(g.integers(0, 255, (30, 30, 3), np.uint8)).save(tmp_path / "thumbnail.png")
    data = load_data(str(tmp_path))
    assert (len(data), data.shape) == (60, (1, 8, 8))
    assert "left out, of another size or colour: thumbnail.png" in data.reading_note  # type: ignore[attr-defined]
    assert len(load_data(str(tmp_path), channels=1, size=8)) == 61  # asked for: all of them
    found = unseam.find(str(tmp_path), network=False)
    assert any("thumbnail.png" in note for note in found.notes)
    for i in range(9):
        Pillow.fromarray(g.integers(0, 255, (8, 8, 3), np.uint8)).save(tmp_path / f"colour{i}.png")
    with pytest.raises(BadInput, match="channels=1 or channels=3"):
        load_data(str(tmp_path), size=8)
    (tmp_path / "thumbnail.png").unlink()
    assert unseam.find(str(tmp_path), network=False, channels=1).prepared.shape == (1, 8, 8)
    with pytest.raises(BadInput, match="channels=1 is for folders of images"):
        unseam.find("digits", network=False, channels=1)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server of the folder `served`, and an empty data folder."""
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path / "data"))
    (tmp_path / "served").mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "served"))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", tmp_path / "served"
    server.shutdown()
    server.server_close()
    thread.join()


def test_data_at_an_address(address: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    base, folder = address
    g = np.random.default_rng(0)
    factors = g.uniform(size=(200, 2))
    x = factors @ g.normal(size=(2, 5)) + 0.01 * g.normal(size=(200, 5))
    pd.DataFrame(x, columns=list("abcde")).to_csv(folder / "t.csv", index=False)
    found = unseam.find(f"{base}/t.csv?raw=true", network=False)
    assert (found.count, found.prepared.names[0]) == (2, "a")
    (folder / "t.csv").unlink()
    assert load_data(f"{base}/t.csv?raw=true").shape == (5,)  # the copy
    with pytest.raises(BadInput, match=r"cannot be fetched: .*404"):
        load_data(f"{base}/missing.csv")
    monkeypatch.setattr("unseam.data.download.web._LARGEST", 100)
    (folder / "large.csv").write_text("a\n" + "1\n" * 200)
    with pytest.raises(BadInput, match="cannot be fetched: more than the 100 bytes"):
        load_data(f"{base}/large.csv")
    assert not list(Path(folder.parent / "data").rglob("*.part"))


def test_scores_of_files_in_new_formats(tmp_path: Path, address: tuple[str, Path]) -> None:
    from unseam.metrics.inputs.read import read_array

    base, folder = address
    WRITERS[".csv.gz"](TABLE, folder / "t.csv.gz")
    assert list(read_array(f"{base}/t.csv.gz:size,count", "codes").content.columns) == ["size", "count"]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"a": i}) for i in range(3)))
    assert read_array(str(tmp_path / "t.jsonl"), "factors").content["a"].tolist() == [0, 1, 2]
