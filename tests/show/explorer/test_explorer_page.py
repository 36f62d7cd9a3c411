"""The explorer in a real browser: what a user does, with the mouse and with the keyboard alone."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import torch
from explorer_server import served
from PIL import Image

from browsing import browsing, until
from unseam.runs.labels import latent_names
from unseam.show.explorer.open_runs import open_gallery
from unseam.train import fit

PIXELS = """([panel, name]) => {
  const shown = document.querySelectorAll(`figure.${name} canvas`)[panel];
  const copy = new OffscreenCanvas(shown.width, shown.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(shown, 0, 0);
  return [shown.width, shown.height, ...copy.getImageData(0, 0, shown.width, shown.height).data];
}"""

SLIDE = """share => {
  const at = document.querySelector("#way-at");
  at.value = share;
  at.dispatchEvent(new Event("input"));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with browsing() as running:
        yield running


class Page:
    """A page that remembers what went wrong."""

    def __init__(self, context, url: str, model) -> None:
        self.tab, self.model, self.wrong, self.requests = context.new_page(), model, [], []
        self.tab.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.tab.on("pageerror", lambda e: self.wrong.append(str(e)))
        self.tab.on("request", lambda r: self.requests.append(r.url))
        self.open(url)

    def open(self, url: str) -> None:
        self.tab.goto("about:blank")
        self.tab.goto(url)
        self.tab.wait_for_selector("body[data-ready]")
        self.tab.wait_for_selector(".panel[data-z]")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tab.keyboard.press(key)

    def z(self, panel: int = 0) -> np.ndarray:
        """The point that is drawn."""
        return np.array(json.loads(self.tab.locator(".panel").nth(panel).get_attribute("data-z")))

    def until(self, condition: str, argument=None) -> None:
        until(self.tab, condition, argument)

    def moved(self, act, panel: int = 0) -> np.ndarray:
        """The new point, once it is drawn, after an action that moves."""
        before = self.tab.locator(".panel").nth(panel).get_attribute("data-z")
        act()
        self.until("([i, z]) => document.querySelectorAll('.panel')[i]?.dataset.z !== z", [panel, before])
        self.until("() => !document.body.classList.contains('working')")
        return self.z(panel)

    def drawn(self, name: str = "decoded", panel: int = 0) -> np.ndarray:
        width, height, *data = self.tab.evaluate(PIXELS, [panel, name])
        return np.array(data).reshape(height, width, 4)

    def check_picture(self, panel: int = 0) -> None:
        """What is on the canvas is what the model says at the point."""
        with torch.no_grad():
            truth = self.model.mean(torch.tensor(self.z(panel), dtype=torch.float32)[None])[0, 0]
        np.testing.assert_allclose(self.drawn(panel=panel)[..., 0], 255 * truth.numpy(), atol=1.01)

    def address(self) -> dict[str, list[str]]:
        self.tab.wait_for_timeout(250)
        return parse_qs(urlsplit(self.tab.url).fragment)

    def says(self) -> str:
        return self.tab.inner_text("#notice")


@pytest.fixture(scope="module")
def one(browser, ask, images) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True)
    yield Page(context, ask.url, images.model(0))
    context.close()


@pytest.fixture
def page(one, ask) -> Iterator[Page]:
    """The page as it first opens; whatever the browser complains of, or asks another machine for, fails the test."""
    one.tab.evaluate("localStorage.clear()")
    one.open(ask.url)
    one.wrong.clear()
    one.requests.clear()
    yield one
    assert one.wrong == []
    asked = {urlsplit(url).netloc for url in one.requests if not url.startswith(("about:", "blob:"))}
    assert asked <= {f"127.0.0.1:{ask.port}"}


def test_it_opens_on_a_row_and_draws_what_the_model_says(page, images):
    page.check_picture()
    row = int(page.tab.input_value("#row"))
    x = images.data.batch(torch.tensor([row]))[0, 0]
    np.testing.assert_allclose(page.drawn("input")[..., 0], 255 * x.numpy(), atol=1.01)
    with torch.no_grad():
        np.testing.assert_allclose(page.z(), images.model(0).encode(x[None, None]).mean[0], atol=1e-4)
    page.tab.wait_for_selector(".matrix")
    assert page.tab.locator(".bars rect").count() == 4
    assert re.search(r"nats entanglement cost", page.tab.inner_text(".cost"))
    assert page.tab.locator(".slider .thumb").count() == 4


def test_keyboard_alone_moves_undoes_and_resets(page):
    start = page.z()
    first = int(page.tab.get_attribute(".slider input[type=range]", "aria-label").split()[1])
    page.press("1")
    moved = page.moved(lambda: page.press("ArrowRight"))
    assert moved[first] > start[first]
    assert np.array_equal(np.delete(moved, first), np.delete(start, first))
    page.check_picture()
    again = page.moved(lambda: page.press("End"))
    assert again[first] >= 3
    np.testing.assert_array_equal(page.moved(lambda: page.press("u")), moved)
    np.testing.assert_array_equal(page.moved(lambda: page.press("Control+z")), start)
    np.testing.assert_array_equal(page.moved(lambda: page.press("y")), moved)
    np.testing.assert_array_equal(page.moved(lambda: page.press("Control+Shift+Z")), again)
    np.testing.assert_array_equal(page.moved(lambda: page.press("r")), start)
    page.press("2")
    page.moved(lambda: page.press("PageDown"))
    np.testing.assert_array_equal(page.moved(lambda: page.press("0")), start)


def test_keys_reach_everything(page):
    row = int(page.tab.input_value("#row"))
    page.moved(lambda: page.press("n"))
    assert page.tab.input_value("#row") == str(row + 1)
    page.moved(lambda: page.press("p"))
    page.moved(lambda: page.press("n", "n"))
    page.until("row => document.querySelector('#row').value === row", str(row + 2))  # quick keys do not get lost
    page.moved(lambda: page.press("d"))
    assert page.tab.input_value("#row") == ""
    page.moved(lambda: page.press("s"))
    page.press("?")
    assert page.tab.locator("#keys").is_visible()
    page.press("Escape")
    assert not page.tab.locator("#keys").is_visible()
    for _ in range(60):  # Tab comes to every control and never sticks
        page.press("Tab")
        if page.tab.evaluate("document.activeElement.tagName") == "CANVAS":
            break
    across = page.tab.locator("select[aria-label='Horizontal latent']")
    inwards = "ArrowLeft" if page.z()[int(across.first.input_value())] > 0 else "ArrowRight"  # a draw may lie outside
    at = page.moved(lambda: page.press(inwards, "Enter"))
    assert page.tab.input_value("#row") != ""
    assert at.shape == (4,)


def test_a_drag_is_one_step_back(page):
    start = page.z()
    box = page.tab.locator(".slider input[type=range]").first.bounding_box()
    y = box["y"] + box["height"] / 2
    page.tab.mouse.move(box["x"] + box["width"] / 2, y)
    page.tab.mouse.down()
    for share in (0.55, 0.6, 0.7, 0.8):
        page.tab.mouse.move(box["x"] + share * box["width"], y)
    end = page.moved(lambda: page.tab.mouse.move(box["x"] + 0.9 * box["width"], y))
    page.tab.mouse.up()
    assert not np.array_equal(end, start)
    np.testing.assert_array_equal(page.moved(lambda: page.tab.click("#undo")), start)
    assert page.tab.is_disabled("#undo")


def test_numbers_can_be_typed_and_nonsense_is_not_taken(page):
    box = page.tab.locator(".slider input[type=number]").first
    first = int(page.tab.get_attribute(".slider input[type=range]", "aria-label").split()[1])
    box.fill("-1.25")
    assert page.moved(lambda: box.press("Enter"))[first] == -1.25
    box.fill("99999")
    box.press("Enter")
    assert box.input_value() == "-1.25"
    row = page.tab.input_value("#row")
    page.tab.fill("#row", "6144")
    page.press("Enter")
    assert "0..6143" in page.says()
    assert page.tab.input_value("#row") == row  # what is wrong does not stay in the box
    page.tab.click("#dismiss")
    assert page.says() == ""
    page.tab.fill("#row", "")
    page.press("Enter", "Tab", "Escape")
    assert (page.tab.input_value("#row"), page.says()) == (row, "")


def test_a_click_in_the_scatter_loads_that_row(page, ask, images):
    found = json.loads(ask("/api/model?model=0.0").content)
    canvas = page.tab.locator(".scatter canvas")
    box = canvas.bounding_box()
    page.moved(lambda: canvas.click(position={"x": box["width"] / 2, "y": box["height"] / 2}))
    row = int(page.tab.input_value("#row"))
    assert row in found["rows"]
    with torch.no_grad():
        code = images.model(0).encode(images.data.batch(torch.tensor([row]))).mean[0]
    np.testing.assert_allclose(page.z(), code, atol=1e-4)
    page.tab.select_option(".scatter select[aria-label='Colour by factor']", "x")
    assert "x" in page.tab.inner_text(".legend")
    assert page.address()["colour"] == ["x"]


def png(x: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray((255 * x).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_the_users_own_picture_is_encoded(page, images):
    x = images.data.batch(torch.tensor([100]))[0, 0].numpy()
    content = {"name": "mine.png", "mimeType": "image/png", "buffer": png(x)}
    page.moved(lambda: page.tab.set_input_files("#file", content))
    assert "mine.png" in page.tab.inner_text("figure.input")
    with torch.no_grad():
        code = images.model(0).encode(torch.tensor(x)[None, None]).mean[0]
    np.testing.assert_allclose(page.z(), code, atol=0.02)  # a PNG has 256 levels
    here = page.z()
    page.tab.set_input_files("#file", {**content, "buffer": b"no picture"})
    page.until("() => document.querySelector('#notice').textContent.includes('not a readable picture')")
    np.testing.assert_array_equal(page.z(), here)
    page.wrong[:] = [text for text in page.wrong if "400 (Bad Request)" not in text]  # the browser's own note of it


def test_a_dropped_picture_is_encoded(page, images):
    x = images.data.batch(torch.tensor([200]))[0, 0].numpy()
    drop = """bytes => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], "dropped.png", { type: "image/png" }));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }"""
    page.moved(lambda: page.tab.evaluate(drop, list(png(x))))
    assert "dropped.png" in page.tab.inner_text("figure.input")


def test_align_keeps_the_picture_and_can_be_undone(page, ask):
    R = np.array(json.loads(ask("/api/align?model=0.0").content)["there"])
    start, picture = page.z(), page.drawn()
    page.moved(lambda: page.press("a"))
    np.testing.assert_allclose(page.z(), start @ R, atol=1e-4)
    np.testing.assert_allclose(page.drawn(), picture, atol=1.01)
    assert page.tab.get_attribute("#align", "aria-pressed") == "true"
    assert "align" in page.says()
    np.testing.assert_array_equal(page.moved(lambda: page.press("u")), start)
    page.moved(lambda: page.press("a"))
    np.testing.assert_allclose(page.moved(lambda: page.press("a")), start, atol=1e-6)


def test_align_stays_off_where_it_did_not_help(page, gallery, monkeypatch):
    monkeypatch.setitem(gallery.alignments, "0.0", replace(gallery.alignment("0.0"), helped=False, verdict="no gain"))
    start = page.z()
    page.press("a")
    page.until("() => document.querySelector('#notice').textContent.includes('did not help: no gain')")
    assert page.tab.get_attribute("#align", "aria-pressed") == "false"
    assert page.tab.is_disabled("#undo")
    np.testing.assert_array_equal(page.z(), start)
    lines = page.tab.locator("#told").bounding_box()
    slider = page.tab.locator(".slider").first.bounding_box()
    assert lines["y"] + lines["height"] <= slider["y"]  # it lies over nothing
    page.tab.click("#dismiss")
    assert not page.tab.locator("#told").is_visible()


def code(images, row: int) -> np.ndarray:
    with torch.no_grad():
        return images.model(0).encode(images.data.batch(torch.tensor([row]))).mean[0].numpy()


def test_the_way_between_two_rows_is_straight_plays_and_is_kept_in_the_address(page, images):
    page.press("w")
    page.until("() => document.querySelector('#way-to').value !== ''")
    row = int(page.tab.input_value("#row"))
    page.tab.fill("#way-to", "77")
    page.press("Enter")
    page.until("() => !document.body.classList.contains('working')")
    half = page.moved(lambda: page.tab.evaluate(SLIDE, 0.5))
    np.testing.assert_allclose(half, (code(images, row) + code(images, 77)) / 2, atol=1e-4)
    page.check_picture()
    assert page.address()["to"] == ["77"]
    page.tab.fill("#way-from", "-4")
    page.press("Enter")
    assert page.tab.input_value("#way-from") == str(row)
    page.tab.click("#way-play")
    page.until("() => document.querySelector('#way-play').textContent.includes('Pause')")
    seen = {json.dumps(page.moved(lambda: None).tolist()) for _ in range(3)}
    assert len(seen) == 3
    page.press("u")  # any action stops it
    page.until("() => document.querySelector('#way-play').textContent.includes('Play')")
    with page.tab.expect_download() as saved:
        page.tab.click("#way-gif")
    assert saved.value.suggested_filename == f"sprites-m0-row{row}-to-row77-way.gif"
    with Image.open(saved.value.path()) as gif:
        assert gif.n_frames > 10


def test_a_code_outside_the_data_is_said_to_be_so(page, ask):
    assert page.tab.inner_text(".outside") == ""
    latent = json.loads(ask("/api/model?model=0.0").content)["latents"][0]
    box = page.tab.locator(".slider input[type=number]").first
    box.fill(str(latent["within"][1] + 1.5))
    page.moved(lambda: box.press("Enter"))
    assert f"z{latent['latent']} is 1.5 beyond" in page.tab.inner_text(".outside")
    assert "beyond" in page.tab.locator(".slider").first.get_attribute("class")
    page.moved(lambda: page.tab.click("#undo"))
    assert page.tab.inner_text(".outside") == ""
    latents = [{"latent": 0, "active": True, "std": 1, "within": [-2, 2]}]
    info = {"latents": latents, "codes": [-2, -1.9, 1.9, 2], "near": 0.1}
    said = page.tab.evaluate("async info => (await import('/outside.js')).outside(info, [0])", info)
    assert said.startswith("Far from every code: the nearest is 1.9 standard deviations away; 99 % of the codes")


def test_a_latent_gets_a_name_that_stays_and_is_text(page, images):
    try:
        page.tab.click(".rename")
        page.press("x", " ", "<", "b", ">", "Enter")
        page.until("() => document.querySelector('.rename b').textContent === 'x <b>'")
        page.open(page.tab.url)
        assert page.tab.inner_text(".rename b >> nth=0") == "x <b>"
        assert "x <b>" in page.tab.inner_text("select[aria-label='Horizontal latent']")
        page.tab.click(".rename")
        page.press("y", "Escape")
        assert page.tab.inner_text(".rename b >> nth=0") == "x <b>"
        assert list(latent_names(images)[0].values()) == ["x <b>"]
    finally:
        (images.folder / "names.json").unlink(missing_ok=True)


def test_classes_have_colours_of_their_own_and_scales_a_ramp(page):
    colours = """async ([kind, classes]) => {
      const colour = (await import('/colours.js')).factorColour({ kind, size: 15 }, 0, 14, classes);
      return Array.from({ length: 15 }, (_, i) => colour(i));
    }"""
    assert len(set(page.tab.evaluate(colours, ["categorical", True]))) == 15
    ramp = page.tab.evaluate(colours, ["ordinal", False])
    assert all(colour.startswith("rgb(") for colour in ramp)
    assert len(set(ramp)) == 15
    page.tab.select_option("select[aria-label='Colour by factor']", "scale")
    box = page.tab.locator(".sort input")
    assert not box.is_checked()  # scale is ordinal: a ramp
    ordered = page.tab.inner_html(".legend")
    box.check()
    assert page.tab.inner_html(".legend") != ordered
    assert page.address()["classes"] == ["1"]


def test_which_factors_are_classes(page):
    asked = """async (factors) => {
      const { Scatter } = await import('/scatter.js');
      const one = new Scatter(factors, () => {}, "");
      one.view.colour = "f0";
      return one.asClasses;
    }"""
    alone = [("ordinal", 10), ("categorical", 30), ("continuous", None), ("ordinal", 30)]
    cases = [[kind] for kind in alone] + [[("ordinal", 10)] * 2]
    found = []
    for factors in cases:
        rows = [{"name": f"f{i}", "kind": kind, "size": size} for i, (kind, size) in enumerate(factors)]
        found.append(page.tab.evaluate(asked, rows))
    assert found == [True, True, False, False, False]


def test_the_toolbar_fits_and_on_a_phone_the_picture_stays_over_the_sliders(page):
    try:
        page.tab.set_viewport_size({"width": 1280, "height": 800})
        page.tab.evaluate("document.querySelector('#subject').textContent = 'a-rather-long-name-of-a-file.parquet'")
        assert page.tab.locator(".bar").bounding_box()["height"] < 60
        page.tab.set_viewport_size({"width": 1180, "height": 800})  # as if letters were a tenth wider
        assert page.tab.locator(".bar").bounding_box()["height"] < 60
        page.tab.set_viewport_size({"width": 390, "height": 600})
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= 390
        page.tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        last = page.tab.locator(".slider").last
        last.evaluate("slider => slider.scrollIntoView({ block: 'end' })")
        assert page.tab.evaluate("window.scrollY") > 200
        picture, slider = page.tab.locator("figure.decoded canvas").bounding_box(), last.bounding_box()
        assert 0 <= picture["y"] < picture["y"] + picture["height"] <= slider["y"]
        assert slider["y"] + slider["height"] <= 600
        boxes = page.tab.locator(".slider input[type=number]")
        boxes.last.fill("-1.098")
        assert boxes.last.evaluate("box => box.scrollWidth <= box.clientWidth")
    finally:
        page.tab.set_viewport_size({"width": 1300, "height": 900})


def test_a_broken_member_gets_a_sentence_and_another_can_be_chosen(page, ask):
    broken = {"broken": "It exploded.", "latents": [], "rows": [], "codes": "", "factors": "", "cloud": ""}
    page.tab.route("**/api/model?model=0.0*", lambda route: route.fulfill(json=broken))
    page.tab.goto("about:blank")
    page.tab.goto(ask.url)
    page.tab.wait_for_selector("body[data-ready]")
    assert page.tab.inner_text(".apology") == "It exploded."
    assert not page.tab.locator(".pictures").is_visible()
    page.press("n", "d", "r", "w", "a")  # nothing of this breaks
    page.tab.select_option(".model", "0.1")
    page.tab.wait_for_selector(".panel[data-z]")
    assert not page.tab.locator(".apology").is_visible()
    assert page.drawn().shape == (16, 16, 4)
    page.tab.unroute("**/api/model?model=0.0*")


def test_a_singular_curve_is_followed_and_left(page, ask):
    start = page.z()
    page.press("c", "1")
    page.moved(lambda: page.press("ArrowRight"))
    for _ in range(4):
        page.moved(lambda: page.press("ArrowRight"))
    body = {"model": "0.0", "z": start.tolist(), "component": 0}
    path = json.loads(ask("/api/curve", body).content)["z"]
    np.testing.assert_allclose(page.z(), path[5], atol=1e-4)
    page.check_picture()
    assert page.address()["axes"] == ["singular"]
    np.testing.assert_allclose(page.moved(lambda: page.press("0")), start, atol=1e-6)
    page.moved(lambda: page.press("ArrowLeft"))
    page.moved(lambda: page.press("r"))
    page.press("c")
    assert page.tab.inner_text(".latents h2") == "Latents"


def test_two_models_side_by_side_on_the_same_input(page, images):
    page.tab.click("#compare")
    page.tab.wait_for_selector(".panel:nth-child(2)[data-z]")
    assert page.tab.input_value(".panel:nth-child(2) .model") == "0.1"
    says = "() => [...document.querySelectorAll('.panel')].map(p => p.querySelector('.slider small').textContent)"
    page.until(f"() => /B: z\\d 0\\.\\d\\d|not in B/.test(({says})()[0]) && /A: z\\d|not in A/.test(({says})()[1])")
    row = int(page.tab.input_value("#row"))
    page.moved(lambda: page.press("n"), panel=1)
    second = images.model(1)
    x = images.data.batch(torch.tensor([row + 1]))
    with torch.no_grad():
        np.testing.assert_allclose(page.z(1), second.encode(x).mean[0], atol=1e-4)
    page.press("1")
    page.moved(lambda: page.press("PageUp"), panel=1)  # linked: B encodes what A draws
    with torch.no_grad():
        drawn = images.model(0).mean(torch.tensor(page.z(0), dtype=torch.float32)[None])
        np.testing.assert_allclose(page.z(1), second.encode(drawn).mean[0], atol=1e-3)
    page.press("l")
    still = page.z(1)
    page.moved(lambda: page.press("1", "PageDown"))
    page.tab.wait_for_timeout(200)
    np.testing.assert_array_equal(page.z(1), still)
    page.moved(lambda: page.tab.select_option(".panel:nth-child(2) .model", "0.0"), panel=1)
    page.tab.click(".panel:nth-child(2) .close")
    page.until("() => document.querySelectorAll('.panel').length === 1")
    page.until(f"() => !/B:|not in/.test(({says})()[0])")
    page.press("u")
    page.until("() => document.querySelectorAll('.panel').length === 2")


def test_the_address_holds_the_state(page):
    page.press("1")
    page.moved(lambda: page.press("PageUp"))
    page.tab.select_option("select[aria-label='Difference against']", "start")
    page.until("() => location.hash.includes('against=start')")  # the address follows a moment later
    state = page.address()
    z, picture, difference = page.z(), page.drawn(), page.drawn("difference")
    page.open(page.tab.url)
    np.testing.assert_allclose(page.z(), z, atol=1e-4)
    np.testing.assert_allclose(page.drawn(), picture, atol=1.01)
    np.testing.assert_allclose(page.drawn("difference"), difference, atol=2)
    assert page.address() == state


def test_the_address_holds_both_scatters(page):
    page.tab.click("#compare")
    page.tab.wait_for_selector(".panel:nth-child(2)[data-z]")
    across = ".panel:nth-child(2) select[aria-label='Horizontal latent']"
    values = page.tab.eval_on_selector_all(f"{across} option", "all => all.map(o => o.value)")
    page.tab.select_option(across, values[-1])
    page.until(f"() => location.hash.match(/&x=\\d+/g)?.[1] === '&x={values[-1]}'")
    state = page.address()
    page.open(page.tab.url)
    page.tab.wait_for_selector(".panel:nth-child(2)[data-z]")
    assert page.tab.input_value(across) == values[-1]
    assert page.address() == state


def test_a_broken_address_opens_all_the_same(page, ask):
    broken = (
        "z=NaN,0,0,0",
        "z=1,2",
        "z=1e9,0,0,0",
        "models=9.9,x",
        "row=-3",
        "row=1e99",
        "x=77&y=q",
        "colour=none",
        "%%",
    )
    for fragment in broken:
        page.open(f"{ask.url}#{fragment}")
        page.check_picture()
        assert page.says() == ""


def test_picture_and_latents_can_be_saved(page):
    with page.tab.expect_download() as saved:
        page.tab.click(".save >> text=Picture")
    with Image.open(saved.value.path()) as image:
        assert image.size == (512, 512)
        np.testing.assert_array_equal(np.asarray(image.convert("RGBA"))[16::32, 16::32], page.drawn())
    row, name = page.tab.input_value("#row"), saved.value.suggested_filename
    assert re.fullmatch(rf"sprites-m0-row{row}(-z\d=-?\d\.\d\d)+\.png", name)
    for latent, value in re.findall(r"z(\d)=(-?\d\.\d\d)", name):
        assert page.z()[int(latent)] == pytest.approx(float(value), abs=0.006)
    with page.tab.expect_download() as saved:
        page.tab.click(".save >> text=Grid")
    assert saved.value.suggested_filename.startswith(f"sprites-m0-row{row}-traversals-z")
    with Image.open(saved.value.path()) as image:
        assert image.width > 1000
    with page.tab.expect_download() as saved:
        page.tab.click(".save >> text=Latents")
    with open(saved.value.path()) as file:
        document = json.load(file)
    assert (document["run"], document["member"], document["aligned"]) == ("sprites", 0, False)
    np.testing.assert_array_equal(document["z"], page.z())


def test_light_and_dark(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    page.tab.emulate_media(color_scheme="dark")
    auto = page.tab.evaluate(ground)
    page.press("t")
    light = page.tab.evaluate(ground)
    page.press("t")
    assert page.tab.evaluate(ground) == auto != light
    page.open(page.tab.url)
    assert page.tab.inner_text("#theme") == "Dark"
    page.tab.emulate_media(color_scheme="light")


def test_no_code_can_be_smuggled_in(page):
    later = """text => new Promise((tell) => setTimeout(() => {
      try { tell((0, eval)(text)) } catch (error) { tell(error.name) }
    }))"""
    assert page.tab.evaluate(later, "1 + 1") == "EvalError"
    foreign = "() => { const i = document.createElement('img'); i.src = 'http://192.0.2.1/x'; document.body.append(i) }"
    with page.tab.expect_event("requestfailed") as stopped:
        page.tab.evaluate(foreign)
    assert stopped.value.failure == "csp"  # it never left the browser
    page.requests.remove(stopped.value.url)
    page.wrong.clear()


def test_a_server_that_is_gone_is_told_in_one_line(page):
    page.tab.route("**/api/decode", lambda route: route.abort())
    page.press("1", "ArrowRight")
    page.until("() => document.querySelector('#notice').textContent.includes('does not answer')")
    page.tab.unroute("**/api/decode")
    page.wrong.clear()  # the browser's own note of it


MINUS = "\N{MINUS SIGN}"


def test_a_table_is_told_by_the_names_of_its_columns(browser, tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 5)) @ np.diag([3.0, 1, 1, 1, 1])
    names = ["tall", "<b>wide", "deep", "old", "wet"]
    np.savetxt(tmp_path / "things.csv", x, delimiter=",", header=",".join(names), comments="")
    run = fit(str(tmp_path / "things.csv"), network="linear", latents=2, beta=0.01, steps=60, out=tmp_path / "run",
              show=False, scale="none")  # fmt: skip
    with served(open_gallery([run.folder], [0, None])) as ask:
        context = browser.new_context(viewport={"width": 390, "height": 844})
        page = Page(context, ask.url, run.model(0))
        page.until("() => document.querySelector('.moves').textContent !== ''")
        z, said = (page.tab.inner_text(f".slider {part}") for part in (".name b", ".moves"))
        column = run.model(0).decoder[0].weight[int(z[1])].tolist()  # what the first latent moves
        top = max(range(5), key=lambda i: abs(column[i]))
        assert said.startswith(f"{names[top]} {'+' if column[top] > 0 else MINUS}")
        assert "standard deviations" not in page.tab.get_attribute(".moves", "title")  # it was not scaled
        page.tab.hover(".decoded canvas", position={"x": 3, "y": 20})
        assert page.tab.get_attribute(".decoded canvas", "title").startswith("tall: ")
        right = "all => Math.max(...all.map(e => e.getBoundingClientRect().right))"
        inside, card = (page.tab.eval_on_selector_all(part, right) for part in (".pictures *", ".pictures"))
        assert inside <= card
        context.close()
        assert page.wrong == []


def test_vectors_get_a_cloud(browser, vectors):
    with served(open_gallery([vectors.folder], [0, None])) as ask:
        context = browser.new_context()
        page = Page(context, ask.url, vectors.model(0))
        page.press("1")
        page.moved(lambda: page.press("ArrowRight"))
        page.tab.wait_for_selector(".matrix")
        assert np.unique(page.drawn().reshape(-1, 4), axis=0).shape[0] > 4  # dots, arrows, the point
        content = {"name": "mine.csv", "mimeType": "text/csv", "buffer": b"10, 0"}
        page.moved(lambda: page.tab.set_input_files("#file", content))
        with torch.no_grad():
            code = vectors.model(0).encode(torch.tensor([[10.0, 0.0]])).mean[0]
        np.testing.assert_allclose(page.z(), code, atol=1e-4)
        context.close()
        assert page.wrong == []
