"""The built site, opened in a browser: no raw markup, nothing cut off, no broken link, no missing picture.

The suite builds the site without running the tutorials and opens some pages; `make docs-check` (UNSEAM_DOCS=all) runs
them and opens every page, in light and dark mode, on a desk and on a phone.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from browsing import browsing

ROOT = Path(__file__).parents[1]
ALL = os.environ.get("UNSEAM_DOCS") == "all"
SOME = ["index.html", "gallery.html", "glossary.html", "theory.html", "api/unseam.html", "metrics/mig.html",
        "tutorials/table.html", "papers/allen.html", "data/sprites.html", "command-line.html"]  # fmt: skip
WAYS = [("light", 1280), ("dark", 1280), ("dark", 390), ("light", 390)]
# what a page must not show: markup outside code, a picture that did not load, anything wider than the window
LOOK = """() => {
  const article = document.querySelector('article') || document.body
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT)
  const raw = []
  while (walker.nextNode()) {
    const node = walker.currentNode
    if (node.parentElement.closest('code, pre, script, style, math, .sig, .field-list strong')) continue
    const markup = /\\*\\*|\\]\\(|```|:::|^\\s*>>>|\\|\\s*---|\\{(toctree|ref|doc)\\}|\\\\[*|]|`/
    if (markup.test(node.data)) raw.push(node.data.trim())
  }
  const pictures = [...article.querySelectorAll('img')].filter(image => image.complete && !image.naturalWidth)
  const cut = [...article.querySelectorAll('pre')].filter(pre =>
    pre.scrollWidth > pre.clientWidth + 1 && !['auto', 'scroll'].includes(getComputedStyle(pre).overflowX))
  const wide = document.documentElement.scrollWidth - window.innerWidth
  return {raw, pictures: pictures.map(image => image.src), cut: cut.map(pre => pre.textContent.slice(0, 60)), wide}
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    for package in ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_design", "sphinx_copybutton"):
        pytest.importorskip(package)
    out = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), str(out), *(["--run"] if ALL else [])]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return out


def html_pages(site: Path) -> list[str]:
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if "_static" not in path.parts)


def broken_links(site: Path) -> Iterator[str]:
    """Links of all pages to files or anchors that are not there."""
    texts = {name: (site / name).read_text() for name in html_pages(site)}
    anchors = {name: set(re.findall(r'\sid="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in texts.items():
        for link in re.findall(r'<a[^>]*\shref="([^"]*)"', text):
            path, _, anchor = unquote(unescape(link)).partition("#")
            if re.match("[a-z]+:", path):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not (site / target).exists() or (anchor and target in anchors and anchor not in anchors[target]):
                yield f"{name}: {link}"


def test_no_link_is_broken(site: Path) -> None:
    pages = html_pages(site)
    assert [name for name in SOME if name not in pages] == []
    assert len(pages) > 85
    assert list(broken_links(site)) == []


def test_pages_show_what_they_should(site: Path) -> None:
    faults = {}
    with browsing() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in html_pages(site) if ALL else SOME:
            page.goto((site / name).as_uri())
            page.evaluate("() => document.querySelectorAll('img').forEach(image => { image.loading = 'eager' })")
            page.wait_for_load_state("load")
            for scheme, width in WAYS:
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                seen = page.evaluate(LOOK)
                if seen["raw"] or seen["pictures"] or seen["cut"] or seen["wide"] > 0:
                    faults[name, scheme, width] = seen
        assert faults == {}
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []  # nothing from elsewhere


def test_the_look_finds_faults(tmp_path: Path) -> None:
    """The test above can fail: each fault is seen on a page that has it."""
    wide, code = "<div style='width:2000px'>x</div>", "<pre style='width:50px'>" + "x" * 99 + "</pre>"
    path = tmp_path / "bad.html"
    path.write_text(f"<article><p>**bold** and [a](b.md)</p><img src='none.png'>{code}{wide}</article>")
    with browsing() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 900})
        page.goto(path.as_uri())
        seen = page.evaluate(LOOK)
    assert seen["raw"] == ["**bold** and [a](b.md)"]
    assert len(seen["pictures"]) == len(seen["cut"]) == 1
    assert seen["wide"] > 1000


def test_search_works_from_disk(site: Path) -> None:
    with browsing() as browser:
        page = browser.new_page()
        page.goto((site / "search.html").as_uri() + "?q=entanglement")
        page.locator("#search-results li").first.wait_for(state="attached", timeout=60_000)
