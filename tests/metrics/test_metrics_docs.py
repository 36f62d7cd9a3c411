"""The documentation lists every metric, and its links lead somewhere.

`python tests/metrics/test_metrics_docs.py` writes the table of docs/metrics/index.md from METRICS and page titles.
"""

import re
from pathlib import Path

import pytest

from unseam.metrics import METRICS

DOCS = Path(__file__).parents[2] / "docs" / "metrics"
INDEX = DOCS / "index.md"
TABLE = re.compile(r"\| metric \| asks \|\n(\|.*\n)*")


def titles():
    """The words of each page's title, e.g. {"mcc", "mcc-spearman", ...}: a metric's page has its name there."""
    return {page.stem: set(re.findall(r"[\w-]+", page.read_text().split("\n")[0])) for page in DOCS.glob("*.md")}


def family(name):
    """The numbers of labels share one name and one page."""
    return re.sub(r"^(downstream-\w+)-\d+$", r"\1-N", name)


def page_of(name):
    return next((page for page, words in titles().items() if family(name) in words), None)


def index_table():
    questions = {}
    for m in METRICS.values():
        name = family(m.name)
        questions[name] = m.question if name == m.name else re.sub(r"\d+ labels", "N labels", m.question)
    rows = [f"| [{name}]({page_of(name)}.md) | {question} |\n" for name, question in questions.items()]
    return "".join(["| metric | asks |\n", "| --- | --- |\n", *rows])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_page_with_its_name_in_the_title(name):
    assert page_of(name), f"write docs/metrics/{name}.md, its title beginning with {name}"


def test_the_index_lists_the_metrics_as_they_are():
    found = TABLE.search(INDEX.read_text())
    assert found.group() == index_table(), "run python tests/metrics/test_metrics_docs.py to write the table anew"


def test_the_page_of_inputs_names_the_metrics_that_count_all_latents():
    (sentence,) = re.findall(r"changes nothing but (.*?), which", re.sub(r"\s+", " ", (DOCS / "inputs.md").read_text()))
    assert re.findall(r"`([a-z-]+)`", sentence) == [m.name for m in METRICS.values() if m.counts]


@pytest.mark.parametrize("page", DOCS.glob("*.md"), ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?\.md)\)", page.read_text()):
        assert (page.parent / target).exists(), target


if __name__ == "__main__":
    INDEX.write_text(TABLE.sub(lambda _: index_table(), INDEX.read_text(), count=1))
