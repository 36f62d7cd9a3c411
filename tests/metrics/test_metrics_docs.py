"""The documentation names every metric, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from unseam.metrics import METRICS

DOCS = Path(__file__).parents[2] / "docs" / "metrics"
INDEX = (DOCS / "index.md").read_text()


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_a_row_and_a_page(name):
    row = next(line for line in INDEX.splitlines() if line.startswith(f"| {name} |"))
    assert METRICS[name].question in row
    page = re.search(r"\]\((.+?\.md)\)", row)
    assert page
    family = "downstream" if name.startswith(("downstream", "efficiency")) else name
    assert family in (DOCS / page.group(1)).read_text().splitlines()[0]


@pytest.mark.parametrize("page", DOCS.glob("*.md"), ids=lambda p: p.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?\.md)\)", page.read_text()):
        assert (page.parent / target).exists(), target
