"""Every exhibit runs at a tiny scale, resumes, and says what it must; the framework is tested with a toy."""

import json
import runpy
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest
from markupsafe import escape

from unseam.cli import main
from unseam.errors import BadInput
from unseam_papers import EXHIBITS, MODULES, reproduce
from unseam_papers.frame import exhibit as frame
from unseam_papers.frame.draw import figure
from unseam_papers.frame.exhibit import Exhibit, Work, constants, exhibit_of
from unseam_papers.frame.page import cell, markdown, page
from unseam_papers.frame.policy import POLICY
from unseam_papers.frame.reasons import reason_counts
from unseam_papers.frame.rows import VERDICTS_OF_KIND, VerdictRow
from unseam_papers.frame.run import finished_entries, select_exhibits
from unseam_papers.frame.sources import PAPER_SOURCES
from unseam_papers.zietlow import setups


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_exhibit_at_a_tiny_scale(name, tmp_path):
    (entry,) = reproduce(EXHIBITS, [name], "tiny", tmp_path)
    assert entry["id"] == name == EXHIBITS[name].id
    assert entry["claim"].endswith(".")
    assert entry["source"]
    assert entry["paper"]
    assert set(EXHIBITS[name].scales) - {"large"} == {"tiny", "quick", "paper"}
    assert entry["rows"]
    for row in entry["rows"]:
        assert row["what"]
        assert row["ours"]
        assert row["verdict"] in VERDICTS_OF_KIND[row["kind"]]
        assert not row["published"].startswith(("not published", "expected", "theory", "predicted"))
        assert bool(row["reason"] and row["why"]) == VerdictRow(**row).wants_reason, row
    assert " nan" not in json.dumps([entry["rows"], entry["conclusion"]]).lower()
    assert (tmp_path / "figures" / f"{name}.svg").read_text().startswith("<?xml")
    html = (tmp_path / "exhibits.html").read_text()
    assert f'id="{name}"' in html
    assert "<svg" in html
    assert finished_entries(tmp_path)[name]["rows"] == entry["rows"]
    assert all(str(escape(row["ours"])) in html for row in entry["rows"])
    assert f"#{name.lower()})" in (tmp_path / "what-the-papers-show.md").read_text()
    (text,) = (path.read_text() for path in (tmp_path / "papers").iterdir())
    assert f"](../figures/{name}.svg)" in text
    counted = [row for row in entry["rows"] if row["kind"].startswith("published")]
    assert all(cell(row["ours"]) in text for row in counted or entry["rows"])


@dataclass(frozen=True)
class Toy:
    size: int = 3


def toy(calls, broken=False):
    def compute(settings, work):
        def part(i):
            if broken and i == 2:
                raise KeyboardInterrupt
            calls.append(i)
            return i

        return {"parts": list(work.each(range(settings.size), part, prefix="part ").values())}

    def draw(numbers):
        fig = figure(2, 2)
        fig.subplots().plot(numbers["parts"])
        return fig

    def judge(numbers):
        total = str(sum(numbers["parts"]))
        control = VerdictRow("control", "more", "", total, "own control", "fails")
        return [VerdictRow("sum", "sum", "3", total, "published number", "agrees", "a note", "a rule"), control]

    return Exhibit(
        id="T1",
        title="A toy <b>& more</b>",
        claim="It counts.",
        source="nobody",
        choices=("none",),
        scales={"tiny": Toy(3), "quick": Toy(4), "paper": Toy(5)},
        compute=compute,
        judge=judge,
        draw=draw,
        conclude=lambda numbers, rows: f"Counted {rows['sum'].ours}.",
        paper="a toy's",
    )


def test_a_killed_exhibit_goes_on_where_it_stopped(tmp_path):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        reproduce({"T1": toy(calls, broken=True)}, [], "tiny", tmp_path)
    assert not (tmp_path / "exhibits.json").exists()
    (entry,) = reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
    assert calls == [0, 1, 2]
    (again,) = reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
    assert calls == [0, 1, 2]
    assert {**again, "seconds": 0} == {**entry, "seconds": 0}
    assert entry["conclusion"] == "Counted 3."


def test_other_settings_are_not_taken_for_these(tmp_path, monkeypatch):
    calls = []
    reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
    reproduce({"T1": replace(toy(calls), scales={"tiny": Toy(2)})}, [], "tiny", tmp_path)
    assert calls == [0, 1, 2, 0, 1]
    reproduce({"T1": replace(toy(calls), constants="LIMIT=2")}, [], "tiny", tmp_path)
    assert calls == [0, 1, 2, 0, 1, 0, 1, 2]
    monkeypatch.setattr(frame, "__version__", "another")
    reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
    assert calls == [0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2]


def module(name, **names):
    made = ModuleType(f"unseam_papers.{name}")
    vars(made).update(names)
    sys.modules[made.__name__] = made
    return made


@pytest.fixture
def of_a_module():
    """An exhibit whose function comes from another module of the papers."""

    def helper():
        return None

    helper.__module__ = "unseam_papers.toy_setups"
    shared = module("toy_setups", HELD=0.2, helper=helper)
    functions = dict.fromkeys(("compute", "judge", "draw", "conclude"), print)
    words = {"ID": "T1", "TITLE": "a", "CLAIM": "b.", "SOURCE": "c", "CHOICES": (), "SCALES": {"tiny": Toy()}}
    yield module("toy_exhibit", **words, **functions, helper=helper, LIMIT=1), shared
    del sys.modules["unseam_papers.toy_setups"], sys.modules["unseam_papers.toy_exhibit"]


def test_the_digest_knows_constants_of_the_module_and_of_those_it_uses_but_no_words(of_a_module):
    made, shared = of_a_module
    before = exhibit_of(made).digest("tiny")
    made.TITLE = "another title"
    assert exhibit_of(made).digest("tiny") == before
    made.LIMIT = 2
    after = exhibit_of(made).digest("tiny")
    assert after != before
    shared.HELD = 0.5
    assert exhibit_of(made).digest("tiny") not in (before, after)


def test_constants_are_the_same_text_in_every_process():
    assert all(" at 0x" not in constants(made) for made in MODULES)


def test_the_page_keeps_earlier_exhibits_and_escapes(tmp_path):
    one, two = toy([]), replace(toy([]), id="T2")
    both = {"T1": one, "T2": two}
    reproduce(both, ["T2"], "tiny", tmp_path)
    reproduce(both, ["t1"], "tiny", tmp_path)
    assert list(finished_entries(tmp_path)) == ["T1", "T2"]
    html = (tmp_path / "exhibits.html").read_text()
    assert "A toy &lt;b&gt;&amp; more&lt;/b&gt;" in html
    assert html.count("<svg") == 3  # two exhibits and the bars of the sources
    assert html == page(list(finished_entries(tmp_path).values()), tmp_path)


def test_the_folder_can_be_moved_and_no_other_file_is_put_on_the_page(tmp_path, monkeypatch):
    both = {"T1": toy([]), "T2": replace(toy([]), id="T2")}
    reproduce(both, ["T1"], "tiny", tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.chdir(tmp_path)
    path, evil = tmp_path / "b/exhibits.json", tmp_path / "evil.svg"
    evil.write_text("<svg><script>alert(1)</script></svg>")
    document = json.loads(path.read_text())
    assert document["exhibits"][0]["figure"] == "figures/T1.svg"
    document["exhibits"][0]["figure"] = str(evil)
    path.write_text(json.dumps(document))
    reproduce(both, ["T2"], "tiny", tmp_path / "b")
    html = (tmp_path / "b/exhibits.html").read_text()
    assert html.count("<svg") == 3
    assert "alert" not in html
    assert '"Content-Security-Policy" content="default-src \'none\'' in html
    assert "script-src" not in html


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"exhibits": 3}', b'{"exhibits": [{"id": "T1"}]}',
                                     b'{"exhibits": [{"id": "T1", "rows": [{"key": 1, "x": 2}]}]}'])  # fmt: skip
def test_a_damaged_document_is_one_line(content, tmp_path, capsys):
    (tmp_path / "exhibits.json").write_bytes(content)
    assert main(["reproduce", "--list", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "delete it" in error


def test_a_damaged_step_is_made_again(tmp_path):
    calls = []
    reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
    step = next((tmp_path / "work").rglob("part_1.json"))
    for content in (b"", b"{", b"\xff"):
        step.write_bytes(content)
        (entry,) = reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
        assert entry["conclusion"] == "Counted 3."
    assert calls == [0, 1, 2, 1, 1, 1]


def test_the_pages_say_the_policy_the_rules_and_count_published_rows_only(tmp_path):
    reproduce({"T1": toy([])}, [], "tiny", tmp_path)
    text = (tmp_path / "what-the-papers-show.md").read_text()
    assert all(rule in text for rule in POLICY)
    words = "Of 1 published row 1 agrees, 0 are open, 0 differ and 0 cannot be compared; 1 other rows are not counted."
    assert words in text
    html = (tmp_path / "exhibits.html").read_text()
    assert words in html
    assert "<td>A toy &lt;b&gt;&amp; more&lt;/b&gt;</td>" in html
    assert "<td>1 / 0 / 0 / 0</td><td>1</td>" in html
    assert '<span class="note">a rule</span>' in html
    assert "Scale paper: a toy&#39;s." in html
    assert "a <em>published number</em>".lower() in html.lower()


def row(key, verdict, kind="published number"):
    return {
        "key": key,
        "what": key,
        "published": "1",
        "ours": "2",
        "kind": kind,
        "verdict": verdict,
        "rule": f"why {key}",
    }


def entry(name, *rows, choices=("shared",)):
    words = dict.fromkeys(("title", "source", "claim", "scale", "conclusion"), f"of {name}")
    return {"id": name, "rows": list(rows), "choices": list(choices), **words}


def test_a_page_a_source_and_the_first_screen_counts_each():
    own = {**row("own", "holds", "own control"), "published": ""}
    pages = markdown(
        [entry("A1", row("good", "agrees"), row("bad", "differs"), own), entry("V1", row("other", "open"))]
    )
    assert list(pages) == ["what-the-papers-show.md", "papers/allen.md", "papers/vu.md"]
    first, allen, vu = pages.values()
    assert "2 published rows: 1 agrees, 0 open, 1 against it, 0 not tried." in first
    assert "1 published row: 0 agree, 1 open, 0 against it, 0 not tried." in first
    assert "[A1](papers/allen.md#a1) 1 / 0 / 1 / 0" in first
    assert "why bad" in allen
    assert "why good" not in allen  # one command away
    assert "own" not in allen.split("| --- |")[-1]
    assert "why other" in vu


def test_a_choice_that_two_exhibits_share_stands_once_on_their_page():
    pages = markdown([entry("A1", row("a", "open")), entry("A2", row("b", "open"), choices=("shared", "its own"))])
    assert pages["papers/allen.md"].count("<li>shared</li>") == 1
    assert "<li>its own</li>" in pages["papers/allen.md"]


def test_every_exhibit_has_one_source_and_every_source_its_figure():
    named = [name for source in PAPER_SOURCES for name in source.exhibits]
    assert len(named) == len(set(named))
    assert set(EXHIBITS) <= set(named)
    assert all(source.figure in source.exhibits for source in PAPER_SOURCES)


def test_the_docs_are_made_of_their_exhibits():
    docs = Path(__file__).parents[2] / "docs"
    entries = json.loads((docs / "papers" / "exhibits.json").read_text())["exhibits"]
    more = runpy.run_path(str(docs / "papers" / "take.py"))["CHANGES"]
    for name, text in markdown(entries, more).items():
        assert (docs / name).read_text() == text, f"run `python docs/papers/take.py OUT` again: {name}"
    assert [e["id"] for e in entries if not (docs / "figures" / f"{e['id']}.svg").exists()] == []


def test_the_docs_say_which_exhibits_are_carried_from_an_older_version():
    docs = Path(__file__).parents[2] / "docs"
    entries = json.loads((docs / "papers" / "exhibits.json").read_text())["exhibits"]
    carried = [entry["id"] for entry in entries if entry.get("carried")]
    assert [entry["id"] for entry in entries if "engines" not in entry] == carried
    first, pages = (
        (docs / "what-the-papers-show.md").read_text(),
        [p.read_text() for p in (docs / "papers").glob("*.md")],
    )
    assert (f"other digits: {', '.join(carried)}." in first) == bool(carried)
    assert sum(page.count("*Carried from commit ") for page in pages) == len(carried)


def test_every_row_of_the_docs_that_does_not_agree_says_why():
    docs = Path(__file__).parents[2] / "docs"
    entries = json.loads((docs / "papers" / "exhibits.json").read_text())["exhibits"]
    rows = [(entry["id"], VerdictRow(**row)) for entry in entries for row in entry["rows"]]
    assert [(name, row.key) for name, row in rows if row.wants_reason and not (row.reason and row.why)] == []
    left = sum(row.wants_reason for _, row in rows)
    assert left == sum(sum(each) for _, _, each in reason_counts(row for _, row in rows))
    pages = "\n".join(path.read_text() for path in (docs / "papers").glob("*.md"))
    assert [
        row.key for _, row in rows if row.wants_reason and str(escape(f"{row.reason}: {row.why}")) not in pages
    ] == []


def test_a_row_without_a_reason_is_refused_when_its_exhibit_runs(tmp_path):
    without = VerdictRow("sum", "sum", "3", "4", "published number", "differs")
    made = replace(toy([]), judge=lambda numbers: [without])
    with pytest.raises(BadInput, match="row 'sum' is differs and has no reason"):
        reproduce({"T1": made}, [], "tiny", tmp_path)
    assert not (tmp_path / "exhibits.json").exists()
    explained = replace(without, reason="our limit", why="it is ours")
    reproduce({"T1": replace(made, judge=lambda numbers: [explained])}, [], "tiny", tmp_path)


def test_the_engine_of_the_command_reaches_the_trainings_and_their_folders(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("unseam.train.fit", lambda data, objective, out, **how: asked.append((out.parent.name, how)))
    monkeypatch.setattr(Work, "noted", lambda self, run: run)

    def train(settings, work):
        work.train("sprites", steps=4)
        return {"parts": [3]}

    made = {"T1": replace(toy([]), compute=train)}
    reproduce(made, [], "tiny", tmp_path)
    reproduce(made, [], "tiny", tmp_path, engine="written-out")
    assert [(folder, how.get("engine")) for folder, how in asked] == [
        ("runs", None),
        ("runs-written-out", "written-out"),
    ]
    monkeypatch.setattr("unseam.train.xla.installed", lambda: False)
    with pytest.raises(BadInput, match="engine='xla' needs JAX"):
        reproduce(made, [], "tiny", tmp_path, engine="xla")


def test_entries_of_an_older_version_are_made_again(tmp_path):
    reproduce({"T1": toy([])}, [], "tiny", tmp_path)
    path = tmp_path / "exhibits.json"
    path.write_text(path.read_text().replace('"key"', '"name"'))
    assert finished_entries(tmp_path) == {}


def test_figures_are_the_same_bytes_each_time(tmp_path):
    for folder in ("a", "b"):
        reproduce({"T1": toy([])}, [], "tiny", tmp_path / folder)
    assert (tmp_path / "a/figures/T1.svg").read_bytes() == (tmp_path / "b/figures/T1.svg").read_bytes()


def test_a_step_that_is_not_a_number_is_not_kept(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        Work(tmp_path).once("bad", lambda: float("nan"))
    assert Work(tmp_path).once("bad", lambda: 1.5) == 1.5


def test_cohorts_trained_by_earlier_versions_are_found(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("unseam.train.fit", lambda data, objective, out, **_: asked.append(out.name))
    monkeypatch.setattr(Work, "noted", lambda self, run: run)
    setups.search(Work(tmp_path, tmp_path), "Synth. Lin.", setups.TrainingSize(10, 600))
    assert asked == ["synth-linear-beta-vae-8211eb7594"]


def test_choosing():
    assert [e.id for e in select_exhibits(EXHIBITS, ["v2", "V1", "V2", "v1"])] == ["V2", "V1"]
    assert select_exhibits(EXHIBITS, ["all"]) == select_exhibits(EXHIBITS, []) == list(EXHIBITS.values())
    with pytest.raises(BadInput, match=r"exhibit='V9' is unknown\. Known: A1, "):
        select_exhibits(EXHIBITS, ["V9"])
    with pytest.raises(BadInput, match="scale='huge' is unknown"):
        EXHIBITS["V1"].settings("huge")


def test_the_verb_prints_one_document(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(EXHIBITS, "T1", toy([]))
    out = ["--out", str(tmp_path)]
    assert main(["reproduce", "T1", "--json", *out]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["exhibits"]
    assert entry["id"] == "T1"
    assert entry["verdict"] == "agrees"
    assert entry["rows"][0]["ours"] == "6"
    assert entry["rows"][0]["kind"] == "published number"
    assert entry["scale"] == "quick"
    assert main(["reproduce", "--list", "--json", *out]) == 0
    listed = {e["id"]: e for e in json.loads(capsys.readouterr().out)["exhibits"]}
    assert set(EXHIBITS) <= set(listed)
    assert listed["T1"]["verdict"] == "agrees"
    assert listed["V1"]["verdict"] is None
    assert "rows" not in listed["T1"]
    assert main(["reproduce", "--list", "T1", *out]) == 0
    assert "paper: a toy's" in capsys.readouterr().out
    assert main(["reproduce", "T1", *out]) == 0
    assert "Counted 6." in capsys.readouterr().out
    assert main(["reproduce", "T7", *out]) == 2
    assert "exhibit='T7' is unknown. Known: A1, " in capsys.readouterr().err
