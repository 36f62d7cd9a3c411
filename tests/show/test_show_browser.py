"""The report in a real browser: keyboard, links, no errors, no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import reading, until
from unseam.show.report import report
from unseam.train import fit


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = fit("sprites", beta=[1.0, 2.0], steps=60, out=tmp_path_factory.mktemp("browser") / "run", latents=2,
              network="mlp", encoder=(16,), decoder=(16,), workers=1, show=False,
              data_parameters={"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4})  # fmt: skip
    return report(run, show=False)


@pytest.fixture
def page(written: Path) -> Iterator[Any]:
    with reading(written.as_uri()) as page:
        yield page


def test_the_report_works_by_keyboard_on_a_phone(page: Any) -> None:
    shown = page.locator("article.member:visible")
    assert shown.count() == 1
    slider = shown.locator("input[type=range]").first
    before = int(slider.input_value())
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) == before + 1
    frame = shown.locator(".frame").first
    assert frame.evaluate("e => getComputedStyle(e).backgroundPositionX") == f"{10 * (before + 1)}%"
    assert shown.locator("output").first.inner_text() == slider.get_attribute("aria-valuetext")
    first = shown.get_attribute("id")
    link = page.locator(f'svg a[href]:not([href="#{first}"])').first
    link.focus()
    page.keyboard.press("Enter")
    until(page, "id => document.getElementById(id).hidden", first)
    assert f"#{page.locator('article.member:visible').get_attribute('id')}" == link.get_attribute("href")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []


def test_a_phone_shows_cards_and_figures_side_by_side(page: Any) -> None:
    """One below the other they made a page of fifteen screens and more."""
    boxes = page.locator("article.member:visible .card").evaluate_all(
        "cs => cs.map(c => c.getBoundingClientRect().top)"
    )
    assert len(boxes) > 1
    assert len(set(boxes)) == 1
    narrow = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": 1280, "height": 900})
    assert narrow < 1.6 * page.evaluate("document.documentElement.scrollHeight")
