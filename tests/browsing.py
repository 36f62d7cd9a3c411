"""A real browser for tests: Debian's chromium, driven by playwright, with a fresh profile.

Where chromium is missing the tests that need it are skipped; UNSEAM_BROWSER=required (CI sets it) makes that a failure.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str:
    """Where chromium is; skips the test, or fails it when a browser is required."""
    found = shutil.which("chromium")
    if found is None:
        reason = "no chromium on this machine (apt-get install chromium)"
        pytest.fail(reason) if os.environ.get("UNSEAM_BROWSER") == "required" else pytest.skip(reason)
    return found


def until(page, condition: str, argument=None) -> None:
    """Waits until a JavaScript function of the page returns true.

    A function, not an expression: playwright evaluates an expression anew at every look, and every look but the first
    is refused by a page whose policy forbids eval, as ours do: the test passes where the first look is late enough.
    """
    assert "=>" in condition, f"{condition!r} is not a function: write '() => ...'"
    page.wait_for_function(condition, arg=argument, timeout=90_000)


@contextmanager
def browsing() -> Iterator:
    """A running browser."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    # a home that can be written, and a name short enough for a socket in it, which that of TMPDIR may not be
    short = "/tmp" if os.access("/tmp", os.W_OK) else None
    with (
        TemporaryDirectory(prefix="page-", dir=short, ignore_cleanup_errors=True) as home,
        sync_playwright() as playwright,
    ):
        env = {**os.environ, "HOME": home, "TMPDIR": home}
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS, env=env)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def reading(address: str) -> Iterator:
    """A page on a phone in the dark, which keeps what it said (`said`) and what it asked for (`asked`)."""
    with browsing() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        yield page
