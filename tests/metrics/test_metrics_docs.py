"""The documentation lists every metric, and its links lead somewhere.

`python tests/metrics/test_metrics_docs.py` writes the table of docs/metrics/index.md from METRICS and page titles.
"""

import re
from pathlib import Path

import pytest

from unseam.metrics import METRICS

DOCS = Path(__file__).parents[2] / "docs" / "metrics"
INDEX = DOCS / "index.md"
TABLE = re.compile(r"\| metric \| asks \|( [a-z ]+ \|)? page \|\n(\|.*\n)*")


def titles():
    """The words of each page's title, e.g. {"mcc", "mcc-spearman", ...}: a metric's page has its name there."""
    return {page.stem: set(re.findall(r"[\w-]+", page.read_text().split("\n")[0])) for page in DOCS.glob("*.md")}


def page_of(name):
    family = re.sub(r"^(downstream-\w+)-\d+$", r"\1-N", name)
    return next((page for page, words in titles().items() if family in words), None)


def index_table():
    rows = [
        f"| {m.name} | {m.question} | {m.counts or 'change nothing'} | [{page_of(m.name)}]({page_of(m.name)}.md) |\n"
        for m in METRICS.values()
    ]
    return "".join(["| metric | asks | latents not in use | page |\n", "| --- | --- | --- | --- |\n", *rows])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_page_with_its_name_in_the_title(name):
    assert page_of(name), f"write docs/metrics/{name}.md, its title beginning with {name}"


def test_the_index_lists_the_metrics_as_they_are():
    found = TABLE.search(INDEX.read_text())
    assert found.group() == index_table(), "run python tests/metrics/test_metrics_docs.py to write the table anew"


@pytest.mark.parametrize("page", DOCS.glob("*.md"), ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?\.md)\)", page.read_text()):
        assert (page.parent / target).exists(), target


if __name__ == "__main__":
    INDEX.write_text(TABLE.sub(lambda _: index_table(), INDEX.read_text(), count=1))
