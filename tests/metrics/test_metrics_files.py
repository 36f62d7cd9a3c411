"""`unseam score` loses nothing of a file, and says what it read."""

import json
from pathlib import Path

import numpy as np
import pytest

from unseam.cli import main
from unseam.metrics.inputs.read import read_array

RNG = np.random.default_rng(0)
F = RNG.integers(0, 3, (40, 2))
Z = F + 0.1 * RNG.normal(size=F.shape)


def lines(table: np.ndarray) -> list[str]:
    return [",".join(f"{cell:.12g}" for cell in row) for row in table]


FORMS = {
    "plain": lambda rows: "\n".join(rows),
    "byte-order mark": lambda rows: "\ufeff" + "\n".join(rows),
    "blank first line": lambda rows: "\n\n" + "\n".join(rows),
    "quoted": lambda rows: "\n".join(",".join(f'"{cell}"' for cell in row.split(",")) for row in rows),
    "comment": lambda rows: "# made by x\n" + "\n".join(rows),
    "header": lambda rows: "one,two\n" + "\n".join(rows),
    "header with a mark": lambda rows: "\ufeffone,two\r\n" + "\r\n".join(rows),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_row_and_no_column_is_lost(form: str, tmp_path: Path) -> None:
    for name, table in {"codes": Z, "factors": F}.items():
        (tmp_path / f"{name}.csv").write_text(FORMS[form](lines(table)), newline="")
        content, said = read_array(str(tmp_path / f"{name}.csv"), name)
        np.testing.assert_allclose(content.to_numpy(), table)
        assert "40 rows, 2 columns" in said


def test_an_empty_cell_is_refused_not_taken_as_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "codes.npy", Z)
    (tmp_path / "factors.csv").write_text("\n".join(["1,", *lines(F)[1:]]))
    assert main(["score", str(tmp_path / "codes.npy"), str(tmp_path / "factors.csv"), "--metrics", "mig"]) == 2
    assert "1 empty or NaN cells (first in row 0)" in capsys.readouterr().err


def test_what_was_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "codes.npy", Z)
    (tmp_path / "factors.csv").write_text("# made by x\nshape,hue\n" + "\n".join(f"{a},h{b}" for a, b in F))
    args = ["score", str(tmp_path / "codes.npy"), str(tmp_path / "factors.csv"), "--metrics", "mig", "--json"]
    assert main(args) == 0
    printed = capsys.readouterr()
    assert "factors.csv: 40 rows, 2 columns: 'shape' as whole numbers, 'hue' as words; 1 comment" in printed.err
    assert "codes.npy: float64 (40, 2)" in printed.err
    assert json.loads(printed.out)["read"].keys() == {"codes", "factors"}


def test_columns_of_a_table_can_be_picked(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(lines(F)))
    assert read_array(f"{tmp_path / 't.csv'}:b", "factors").content["b"].tolist() == F[:, 1].tolist()


def test_bytes_are_words(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.array([b"a", b"b"] * 20))
    assert read_array(str(tmp_path / "f.npy"), "factors").content["factor0"].tolist() == ["a", "b"] * 20


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.npz", b"PK\x03\x04x"),
        ("c.npy", b""),
        ("c.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        ("c.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,) "),
        ("c.npy", b"\x93NUMPY\x02\x00\x00\x20\x00\x00" + b"-" * 8192),
        ("c.csv", b"1" * 400 + b",2\n3,4"),
        ("c.parquet", b"PAR1"),
        ("c.h5", b"\x89HDF\r\n"),
        ("c.csv", b"\xff\xfe1,2"),
    ],
)
def test_damage_is_one_line(name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "f.npy", F)
    assert main(["score", str(tmp_path / name), str(tmp_path / "f.npy"), "--metrics", "mig"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("flags", [("--bin-continuous", "-1", "--kinds", "continuous"), ("--threads", "-1")])
def test_counts_below_one_are_refused(flags: tuple[str, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", Z)
    np.save(tmp_path / "f.npy", F)
    assert main(["score", str(tmp_path / "c.npy"), str(tmp_path / "f.npy"), "--metrics", "dci", *flags]) == 2


def test_dates_and_complex_numbers_are_no_codes(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", F)
    for strange in (Z.astype(complex), np.zeros((40, 2), "datetime64[s]")):
        np.save(tmp_path / "c.npy", strange)
        assert main(["score", str(tmp_path / "c.npy"), str(tmp_path / "f.npy"), "--metrics", "mig"]) == 2
