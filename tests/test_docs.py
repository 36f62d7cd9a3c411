"""The pages as files: every link leads somewhere, every command is understood, the reference is complete."""

import doctest
import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import unseam
import unseam.estimators
from unseam.cli import VERBS
from unseam.cli.common import parse
from unseam.data import DATASETS
from unseam.objectives import OBJECTIVES
from unseam_papers import EXHIBITS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
GENERATED = ("api/", "command-line.md")  # pages that only the built site has
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = [
        link
        for link in LINK.findall(page.read_text())
        if not re.match("[a-z]+:", link) and not link.startswith(GENERATED)
    ]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_data_set_has_its_page_and_a_sheet_where_we_can_draw_one():
    pages = dict(site_module("pages").SET.findall((ROOT / "docs" / "data.md").read_text()))
    assert set(pages) == set(DATASETS)
    drawn = {path.stem for path in (ROOT / "docs" / "data").glob("*.png")} & set(DATASETS)
    assert {"sprites", "rooms", "manifolds", "ring", "digits", "synth-linear", "synth-nonlinear"} <= drawn
    assert [name for name in drawn if f"](data/{name}.png)" not in pages[name]] == []


def site_module(name):
    """A module of docs/site, which is no part of a package; its doctests hold."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["pages", "docstrings"])
def test_the_examples_of_the_builder_hold(name):
    if name == "docstrings":
        pytest.importorskip("sphinx")
    result = doctest.testmod(site_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted
    assert not result.failed


def test_the_reference_lists_every_public_name():
    listed = {address for things in site_module("reference").listed().values() for address in things}
    assert {f"unseam.{name}" for name in unseam.PUBLIC} <= listed
    assert {f"unseam.estimators.{name}" for name in unseam.estimators.__all__} <= listed
    classes = {kind.__name__ for kind in (*OBJECTIVES.values(), *DATASETS.values())}
    assert classes <= {address.rpartition(".")[2] for address in listed}


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


def test_the_numbers_of_the_readme_are_those_of_the_pages():
    readme = re.sub(r"\s+", " ", (ROOT / "README.md").read_text())
    measured = (ROOT / "docs" / "find-measured.md").read_text()
    table = measured.partition("### Tables in which no axis")[2].partition("### ")[0]
    rows = re.findall(r"^\| [a-z-]+ \| (\d+) \| (\d+) \|", table, re.MULTILINE)
    wrong, tables = sum(int(wrong) for _, wrong in rows), sum(int(count) for count, _ in rows)
    assert f"in {wrong} of {tables} simulated tables" in readme
    papers = (ROOT / "docs" / "what-the-papers-show.md").read_text()
    published, agree, differ = re.search(r"Of (\d+) published rows (\d+) agree, .*?(\d+) differ", papers).groups()
    assert f"{published} published results" in readme
    assert f"{agree} agree, {differ} differ" in readme


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
