"""What is published: metadata that agree, a README that works on an index, tables that are what they say."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import unseam

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere() -> None:
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert PROJECT["version"] == unseam.__version__ == cited[1]


def test_all_has_every_extra_but_those_of_developers() -> None:
    extras = PROJECT["optional-dependencies"]
    inside = re.search(r"\[(.*)\]", extras["all"][0])
    assert inside is not None
    assert set(inside[1].split(",")) == set(extras) - {"all", "dev", "faces"}
    assert any(line.startswith("unseam[train,") for line in extras["dev"])
    assert not any(line.startswith("torch") for line in PROJECT["dependencies"])


def test_every_package_that_tests_need_is_pinned() -> None:
    pins = [line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()
    assert "torchdiffeq" not in pins
    dev = [line for line in PROJECT["optional-dependencies"]["dev"] if not line.startswith("unseam[")]
    wanted = {re.split(r"[<>=\[]", line)[0].lower() for line in (*PROJECT["dependencies"], *dev)}
    assert {name.replace("-", "_") for name in wanted} - {name.replace("-", "_") for name in pins} == set()


def test_the_readme_of_an_index_has_no_link_into_the_repository() -> None:
    pytest.importorskip("hatchling")
    sys.path.insert(0, str(ROOT))
    try:
        from hatch_build import published
    finally:
        sys.path.remove(str(ROOT))
    text = (ROOT / "README.md").read_text()
    assert re.search(r"\]\(docs/", text)
    assert not re.search(r"\]\((?!https?:|#)", published(text, None))
    assert "](https://example.org/u/blob/HEAD/docs/" in published(text, "https://example.org/u")


def test_the_tables_of_studies_are_what_their_page_says() -> None:
    page = (ROOT / "studies" / "README.md").read_text()
    told = re.findall(r"\| `(.*?\.parquet)` \| (\d+) \| (\d+) \|", page)
    assert {name for name, _, _ in told} == {path.name for path in (ROOT / "studies").glob("*.parquet")}
    for name, rows, columns in told:
        assert pd.read_parquet(ROOT / "studies" / name).shape == (int(rows), int(columns))


def test_a_wheel_holds_all_of_src(tmp_path: Path) -> None:
    """Built as a release is, and looked into by the script of `make release-check`."""
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t", "wheel", "-t", "sdist"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    check = [sys.executable, str(ROOT / "tests" / "packaging" / "contents.py"), str(tmp_path)]
    assert subprocess.run(check, capture_output=True, text=True).stderr == ""
    assert len(list(tmp_path.glob("unseam-*"))) == 2
