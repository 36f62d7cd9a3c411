"""The pages: every link leads somewhere, every exhibit has its own page, and the site builds without a warning."""

import doctest
import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from browsing import reading
from unseam.cli import VERBS
from unseam.cli.common import parse
from unseam.data import DATASETS
from unseam_papers import EXHIBITS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = [link for link in LINK.findall(page.read_text()) if not re.match("[a-z]+:", link)]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("material")
    told = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    shown = (tmp_path / "gallery.html").read_text()
    assert [name for name in exhibits_on_the_pages() if f'.html#{name.lower()}"' not in shown] == []
    sets = re.findall(r"^### `([\w-]+)`$", (ROOT / "docs" / "data.md").read_text(), re.MULTILINE)
    assert [name for name in sets if not (tmp_path / "data" / f"{name}.html").exists()] == []
    with reading((tmp_path / "papers" / "allen.html").as_uri()) as page:  # from disk, as most will
        page.set_viewport_size({"width": 1280, "height": 900})
        box = page.locator("[data-md-component=search-query]")
        box.focus()
        box.press_sequentially("entanglement")
        page.locator(".md-search-result__item").first.wait_for(state="attached", timeout=60_000)
        assert page.said == []
        assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []  # nothing from elsewhere


def test_every_data_set_has_its_page_and_a_sheet_where_we_can_draw_one():
    pages = dict(mkdocs_pages().SET.findall((ROOT / "docs" / "data.md").read_text()))
    assert set(pages) == set(DATASETS)
    drawn = {path.stem for path in (ROOT / "docs" / "data").glob("*.png")} & set(DATASETS)
    assert {"sprites", "rooms", "manifolds", "ring", "digits", "synth-linear", "synth-nonlinear"} <= drawn
    assert [name for name in drawn if f"](data/{name}.png)" not in pages[name]] == []


def mkdocs_pages():
    """The hook of `make docs`, which is no part of a package."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("mkdocs_pages", ROOT / "mkdocs_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert doctest.testmod(module).failed == 0
    return module


def exhibits_on_the_pages():
    texts = [page.read_text() for page in sorted((ROOT / "docs" / "papers").glob("*.md"))]
    return [name for text in texts for name in re.findall(r"^## ([A-Z]\d+)$", text, re.MULTILINE)]


def test_counts_of_exhibits_are_those_of_the_page_and_the_registry():
    """README counts what the page shows; CHANGELOG names the exhibits that are not on it yet."""
    shown = exhibits_on_the_pages()
    assert set(re.findall(r"(\d+) (?:such )?exhibits", (ROOT / "README.md").read_text())) == {str(len(shown))}
    assert [name for name in shown if name not in EXHIBITS] == []
    changes = (ROOT / "CHANGELOG.md").read_text()
    (missing,) = re.findall(r"([^.;]+) have run at a tiny scale only", changes) or [""]
    spoken = [f"{a}{n}" for a, first, last in re.findall(r"([A-Z])(\d+)(?: to [A-Z](\d+))?", missing)
              for n in range(int(first), int(last or first) + 1)]  # fmt: skip
    assert sorted(set(EXHIBITS) - set(shown)) == sorted(spoken)


def commands(page):
    """What the code blocks of a page tell one to type, as words."""
    blocks = re.findall(r"^```(?:bash)?\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^(?:\.venv/bin/)?unseam (.*)", "".join(blocks).replace("\\\n", " "), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def test_every_command_on_the_pages_is_understood():
    typed = [words for page in PAGES for words in commands(page) if words[0] != "help"]
    assert len(typed) > 40
    for verb, *rest in typed:
        parse(importlib.import_module(f"unseam.cli.{VERBS[verb][0]}").Command, rest, f"unseam {verb}")


def test_every_verb_stands_in_the_readme():
    text = (ROOT / "README.md").read_text()
    assert [verb for verb in VERBS if f"unseam {verb}" not in text] == []
