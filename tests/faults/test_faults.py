"""The campaign's short form: a kill before every file event of a training, and some hundred bad inputs.

`python -m tests.faults` is the long one; docs/reliability.md has its counts.
"""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pandas
import pytest
from fault_fuzz import KINDS, Seeds, one
from fault_newer import answer
from PIL import Image

from unseam.atomic import write_atomic
from unseam.cli import main
from unseam.data import cache
from unseam.errors import BadInput
from unseam.finding.kinds import recognise
from unseam.finding.read import read
from unseam.objectives import Optimiser
from unseam.runs.labels import name_latent
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.explorer.server import application
from unseam.show.film import check_size, film_bytes
from unseam.train import fit

SHARE = 3.1  # inputs a share: 619 in all


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return Seeds.make(tmp_path_factory.mktemp("seeds"))


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_answered_or_refused_in_one_line(kind: str, seeds: Seeds, tmp_path: Path) -> None:
    """There are more than 500 inputs over all kinds; each follows from its number."""
    found = {number: one(seeds, kind, number, tmp_path) for number in range(round(SHARE * KINDS[kind][1]))}
    assert {number: defect for number, (_, defect) in found.items() if defect} == {}
    assert {outcome for outcome, _ in found.values()} & {"refused", "failed"}, (
        "nothing was refused: is it broken at all?"
    )


def test_the_number_of_inputs() -> None:
    assert sum(round(SHARE * share) for _, share in KINDS.values()) >= 500


def test_a_kill_before_a_file_event_loses_nothing(tmp_path: Path) -> None:
    """Training goes on bit for bit, also with several processes; evaluate and align leave whole files or none."""
    script = [sys.executable, str(Path(__file__).parent / "fault_kills.py"), str(tmp_path / "kills"), "short", "4"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["defects"] == []
    assert found["counts"]["train: SIGKILL before a file event"] >= found["events"]["train"] // 4 > 5
    assert "temporary files left after going on" not in found["counts"]
    assert found["kills"] + found["counts"].get("ended before the kill", 0) >= found["done"] > 10


def test_a_full_disk_or_a_locked_table_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    script = [sys.executable, str(Path(__file__).parent / "fault_environment.py"), str(tmp_path / "place"), "short"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["defects"] == []
    told = {"limit on the size of files: train, told in one line": 2, "locked table: train, told in one line": 1}
    assert found["counts"] == told


def test_a_note_or_a_cache_that_is_damaged_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSEAM_DATA", str(tmp_path))
    monkeypatch.setattr(cache, "LARGE_FILE", 0)
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(3))
    for content in (b"", b"[1]", b"\xff", b'["a", 2]', b"{}"):
        assert cache.remember(path, None, lambda: (0.0, 1.0)) == (0.0, 1.0)
        (note,) = (tmp_path / "checked").iterdir()
        note.write_bytes(content)
    for content in (b"", b"PK\x03\x04x", b"\x93NUMPY\x01\x00\x02\x00{}", (tmp_path / "x.npy").read_bytes()):
        (tmp_path / "cache").mkdir(exist_ok=True)
        (tmp_path / "cache" / "a.npy").write_bytes(content)
        assert cache.cached_array("a.npy", (2,), lambda: np.ones(2)).tolist() == [1, 1]
    (tmp_path / "checked").rename(tmp_path / "gone")
    (tmp_path / "checked").write_text("in the way")
    assert cache.remember(path, None, lambda: (0.0, 1.0)) == (0.0, 1.0)


def test_every_page_has_a_policy_without_scripts_of_others(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    small = ["--data.size", "16", "--data.shapes", "1", "--steps", "2", "--out", str(out)]
    assert main(["objectives", "beta-vae", "--page", "sprites", *small]) == 0
    assert "default-src 'none'" in out.read_text()
    templates = Path(cache.__file__).parents[1] / "show" / "templates"
    whole = [p for p in templates.glob("*.html") if "<head>" in p.read_text()]
    assert len(whole) >= 2
    assert [p.name for p in whole if "Content-Security-Policy" not in p.read_text()] == []


LABELS = "<b>f</b>,$g^{$"
HOSTILE = ("<img src=x onerror=alert(1)>", "$x^{$", "</script><script>alert(1)</script>")


@pytest.fixture(scope="module")
def named_by_a_stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a table whose columns, factor and latents have the names that an attacker would choose."""
    place, rng = tmp_path_factory.mktemp("hostile"), np.random.default_rng(0)
    table = pandas.DataFrame(rng.uniform(size=(60, 3)), columns=HOSTILE)
    table = table.assign(**{"<b>f</b>": np.arange(60) % 3, "$g^{$": np.arange(60) // 20})
    table.to_csv(place / "<i>t.csv", index=False)
    few = {"network": "linear", "latents": 2, "steps": 3, "workers": 1, "show": False}
    run = fit(place / "<i>t.csv", out=place / "run", data_parameters={"labels": LABELS}, **few)
    name_latent(run, 0, 0, HOSTILE[0])
    name_latent(run, 0, 1, HOSTILE[1])
    return run.folder


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (("report", "RUN", "--out", "OUT/page.html"), "page.html"),
        (("report", "PARENT", "--out", "OUT/page.html"), "page.html"),
        (("traverse", "RUN", "--all", "--frames", "3", "--out", "OUT/page"), "page.png"),
        (
            (
                "perturb",
                "DATA",
                "--data.labels",
                LABELS,
                "--rounds",
                "1",
                "--seeds",
                "0,1",
                "--steps",
                "1",
                "--out",
                "OUT",
            ),
            "perturb.html",
        ),
        (("find", "DATA", "--no-network", "--quick", "--out", "OUT/found"), "found/findings.html"),
        (("data", "show", "DATA", "--data.labels", LABELS, "--out", "OUT/page.png"), "page.png"),
    ],
)
def test_names_of_a_stranger_are_text_on_every_page(
    words: tuple[str, ...], page: str, named_by_a_stranger: Path, tmp_path: Path
) -> None:
    """No tag comes out of a name, and matplotlib reads no name as mathematics (it raised over `$x^{$`)."""
    run = named_by_a_stranger
    places = {"RUN": str(run), "PARENT": str(run.parent), "DATA": str(run.parent / "<i>t.csv")}
    asked = [places.get(word, word.replace("OUT", str(tmp_path), 1) if "OUT" in word else word) for word in words]
    assert main(asked) == 0
    content = (tmp_path / page).read_bytes()
    if page.endswith(".html"):
        text = content.decode()
        assert "<img src=x" not in text
        assert "</script><script>" not in text
        assert "<b>f" not in text
        assert '"Content-Security-Policy" content="default-src \'none\'' in text


def test_the_explorer_draws_columns_of_any_name(named_by_a_stranger: Path) -> None:
    gallery = open_gallery([named_by_a_stranger], [0, None])
    point = {"model": "0.0", "z": [0.0, 0.0], "kind": "grid"}
    assert answer(application(gallery, 8642), "POST", "/api/film", "", json.dumps(point).encode()) == 200


def test_a_film_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(BadInput, match="for 1000 latents, at most 29"):
        check_size(1000, 30, (1, 64, 64))
    with pytest.raises(BadInput, match="at most 65,535 pixels a side"):
        film_bytes([Image.new("L", (70_000, 1))], "GIF")


def test_a_name_that_is_no_text_is_printed_and_written(tmp_path: Path) -> None:
    """A file's name may hold any byte; a terminal takes only text."""
    name, terminal = str(tmp_path / "\udcff.npy"), TextIOWrapper(BytesIO(), "utf-8")
    np.save(name, np.zeros((3, 2)))
    with redirect_stdout(terminal):
        assert main(["data", "show", name, "--out", str(tmp_path / "x.png")]) == 0
    assert b"\\udcff.npy: 3 observations" in terminal.buffer.getvalue()  # type: ignore[attr-defined]
    write_atomic(tmp_path / "page.html", "a \udcff")
    assert (tmp_path / "page.html").read_text() == "a \\udcff"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "ring", "--eps", "-1", "--steps", "1"], "eps=-1.0 must be 0 or positive"),
        (["score", "codes.npy", "", "--metrics", "mig"], "factors"),
        (["match", "run", "--transpose"], "--transpose is about matrices"),
        (["data", "show", "ring", "--data.correlate", "circle,point=e"], "is not a pair"),
        (["find", "codes.npy", "--kinds", "column0=x"], "kinds"),
        (["score", "codes.npy", "factors.npy", "--bin-continuous", str(2**63)], "must be between 1 and 1,000,000"),
    ],
)
def test_what_once_was_a_traceback(
    words: list[str], said: str, seeds: Seeds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line-3900, command-line-37592, score-12378, match-108 and others of the campaign."""
    monkeypatch.chdir(seeds.folder)
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_find_refuses_an_array_that_is_one_number(tmp_path: Path) -> None:
    """find-2042 of the campaign."""
    np.save(tmp_path / "one.npy", np.float64(3))
    with pytest.raises(BadInput, match="it has one column"):
        read(str(tmp_path / "one.npy"))


def test_an_image_whose_offset_is_a_fraction_is_refused(seeds: Seeds, tmp_path: Path) -> None:
    """images-43736 of the campaign; run-folder-43252 below it."""
    assert one(seeds, "images", 43736, tmp_path)[1] == ""


def test_adams_memory_is_checked() -> None:
    with pytest.raises(BadInput, match="Adam's memories"):
        Optimiser(b2=-1)


def test_find_refuses_what_cannot_be_squared() -> None:
    """whole-find-12 of the campaign: the standard deviation was infinite, so that every cell was 0."""
    with pytest.raises(BadInput, match="too large to be squared"):
        recognise("a", np.array([1e300, -1e300, 2e300]))
