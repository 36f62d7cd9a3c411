"""docs/papers/check.py: which rows are drawn, and what counts as having come back."""

import json
import runpy
from pathlib import Path

import pytest

from unseam_papers.frame.page import printed_command

SCRIPT = Path(__file__).parents[2] / "docs" / "papers" / "check.py"


@pytest.fixture
def check():
    return runpy.run_path(str(SCRIPT))


def row(key, ours="1.00", verdict="agrees", kind="published number"):
    published = "" if kind == "own control" else "1"
    return {"key": key, "what": f"of {key}", "published": published, "ours": ours, "kind": kind, "verdict": verdict}


def entry(name, *rows, **more):
    return {"id": name, "scale": "quick", "rows": list(rows), **more}


def test_rows_are_drawn_from_published_ones_only_and_the_same_for_a_seed(check):
    entries = [entry("A1", *(row(f"a{i}") for i in range(20)), row("own", "2", "holds", "own control"))]
    drawn = check["drawn"](entries, 10, 1)
    assert drawn == check["drawn"](entries, 10, 1)
    assert drawn != check["drawn"](entries, 10, 2)
    assert len(set(drawn)) == 10
    assert ("A1", "own") not in check["drawn"](entries, 99, 1)
    assert len(check["drawn"](entries, 99, 1)) == 20


def test_a_row_comes_back_to_the_digit_or_not(check, tmp_path):
    """One digit, one verdict, a row that is gone, and a command that fails."""
    page = [row("same"), row("digit"), row("verdict"), row("gone")]
    here = [row("same"), row("digit", "1.01"), row("verdict", verdict="open")]
    entries = [entry("A1", *page, seconds=9.0), entry("A2", row("late"), seconds=1.0, carried="(of an old commit)")]
    asked = []

    def in_clone(command, out, seconds):
        asked.append((command, seconds))
        if "A2" in command:
            return "stopped after 1 minutes"
        (out / "out").mkdir()
        (out / "out" / "exhibits.json").write_text(json.dumps({"exhibits": [entry("A1", *here)]}))
        return ""

    check["check"].__globals__["in_clone"] = in_clone
    drawn = [("A1", r["key"]) for r in page] + [("A2", "late")]
    found = {one["key"]: one for one in check["check"](entries, drawn, tmp_path, 1.0)}
    assert asked == [("unseam reproduce A2 --size quick", 60.0), ("unseam reproduce A1 --size quick", 60.0)]
    outcomes = {key: (one["outcome"], one["here"]) for key, one in found.items()}
    assert outcomes == {
        "same": ("came back", ""), "digit": ("other digits", "1.01: agrees"), "verdict": ("other digits", "1.00: open"),
        "gone": ("other digits", "no such row"), "late": ("not run", "stopped after 1 minutes"),
    }  # fmt: skip
    assert (found["late"]["carried"], found["same"]["carried"]) == ("yes", "no")
    left = check["check"](entries, [("A2", "late")], tmp_path, 1.0, only=["A1"])
    assert (left[0]["outcome"], left[0]["here"]) == ("not run", "carried; its command was not run")
    assert len(asked) == 2
    sentence = check["sentence"]({"seed": 1, "rows": list(found.values())})
    assert "Of 5 published rows drawn at random (seed 1), 1 came back" in sentence
    assert "3 gave other digits and 1 was not run, for want of time: A2 (`python" in sentence
    ran = [one for one in found.values() if one["exhibit"] == "A1"]
    assert "3 gave other digits and 0 were not run (`python" in check["sentence"]({"seed": 1, "rows": ran})


def test_outcomes_of_commands_that_are_left_out_stay_while_the_page_is_the_same(check):
    def outcome(key, outcome, page="1.00", **more):
        return {"exhibit": "A1", "key": key, "command": "c", "page": page, "outcome": outcome, **more}

    earlier = [outcome("same", "came back", commit="old"), outcome("changed", "came back", page="0.99"),
               outcome("again", "came back"), outcome("never", "not run")]  # fmt: skip
    now = [outcome("same", "not run"), outcome("changed", "not run"), outcome("again", "other digits"),
           outcome("never", "not run"), outcome("new", "not run")]  # fmt: skip
    assert check["with_earlier"](now, earlier) == [earlier[0], *now[1:]]


def test_the_printed_command_pins_the_engine():
    assert printed_command(entry("A1", engines=[])) == "unseam reproduce A1 --size quick"
    assert printed_command(entry("A1", engines=["eager", "written-out"])).endswith("--engine written-out")
    assert printed_command(entry("A1", engines=["written-out", "xla"])).endswith("--engine xla")


def test_the_rows_that_were_checked_are_those_that_are_drawn_from_the_pages_now(check):
    """So that the sentence on the first page is of this version: a page that is made again wants check.py again."""
    checked = json.loads(check["CHECKED"].read_text())
    entries = {one["id"]: one for one in json.loads((check["PAPERS"] / "exhibits.json").read_text())["exhibits"]}
    rows = [(one["exhibit"], one["key"]) for one in checked["rows"]]
    assert sorted(rows) == check["drawn"](list(entries.values()), len(rows), checked["seed"])
    ours = {(name, each["key"]): each["ours"] for name, made in entries.items() for each in made["rows"]}
    assert [one["page"] for one in checked["rows"]] == [ours[key] for key in rows]
    assert [one["command"] for one in checked["rows"]] == [printed_command(entries[name]) for name, _ in rows]
    assert checked["sentence"] == check["sentence"](checked)
