"""Every exhibit runs at a tiny scale, resumes, and says what it must; the framework is tested with a toy."""

import json
from dataclasses import dataclass, replace

import pytest

from unseam.cli import main
from unseam.errors import BadInput
from unseam_papers import EXHIBITS, reproduce
from unseam_papers.frame.draw import figure
from unseam_papers.frame.exhibit import Exhibit, Row, Work, central, inside
from unseam_papers.frame.rows import overall
from unseam_papers.frame.page import cell, page
from unseam_papers.frame.run import choose, finished

VERDICTS = {"agrees", "differs", "not comparable"}


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_exhibit_at_a_tiny_scale(name, tmp_path):
    (entry,) = reproduce(EXHIBITS, [name], "tiny", tmp_path)
    assert entry["id"] == name == EXHIBITS[name].id
    assert entry["claim"].endswith(".")
    assert entry["source"]
    assert set(EXHIBITS[name].scales) == {"tiny", "quick", "paper"}
    assert entry["rows"]
    assert {row["verdict"] for row in entry["rows"]} <= VERDICTS
    assert all(row["what"] and row["published"] and row["ours"] for row in entry["rows"])
    assert "nan" not in json.dumps(entry["rows"]).lower()
    assert (tmp_path / "figures" / f"{name}.svg").read_text().startswith("<?xml")
    html = (tmp_path / "exhibits.html").read_text()
    assert f'id="{name}"' in html
    assert "<svg" in html
    assert finished(tmp_path)[name]["rows"] == entry["rows"]
    text = (tmp_path / "exhibits.md").read_text()
    assert f"](figures/{name}.svg)" in text
    assert all(cell(row["ours"]) in text for row in entry["rows"])


def test_published_numbers_of_vu_2024():
    rows = {
        "V1": ["16 %", "64 %", "100 %", "40 %", "92 %", "92 %"],
        "V2": ["44 %", "60 %", "56 %", "52 %", "20 %", "4 %"],
    }
    for name, expected in rows.items():
        work = {"trained": {"I": [1.0], "SAP": [2.0]}, "variants": [{"I": 1.0, "SAP": 1.0}]}
        work["converged"] = 100.0
        scenario = work | dict.fromkeys(("reached", "untrained", "diagonal", "equal", "exact"), work["trained"])
        judged = EXHIBITS[name].judge({"m": 3, "scenarios": [scenario] * 3})
        assert [row.published for row in judged[:6]] == expected


@dataclass(frozen=True)
class Toy:
    size: int = 3


def toy(calls, broken=False):
    def compute(settings, work):
        parts = []
        for i in range(settings.size):
            if broken and i == 2:
                raise KeyboardInterrupt
            parts.append(work.once(f"part-{i}", lambda i=i: calls.append(i) or i))
        return {"parts": parts}

    def draw(numbers):
        fig = figure(2, 2)
        fig.subplots().plot(numbers["parts"])
        return fig

    return Exhibit(
        id="T1",
        title="A toy <b>& more</b>",
        claim="It counts.",
        source="nobody",
        choices=("none",),
        scales={"tiny": Toy(3), "quick": Toy(4), "paper": Toy(5)},
        compute=compute,
        judge=lambda numbers: [Row("sum", "3", str(sum(numbers["parts"])), "agrees")],
        draw=draw,
        conclude=lambda numbers, rows: "Counted.",
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


def test_other_settings_are_not_taken_for_these(tmp_path):
    calls = []
    reproduce({"T1": toy(calls)}, [], "tiny", tmp_path)
    changed = replace(toy(calls), scales={"tiny": Toy(2)})
    reproduce({"T1": changed}, [], "tiny", tmp_path)
    assert calls == [0, 1, 2, 0, 1]


def test_the_page_keeps_earlier_exhibits_and_escapes(tmp_path):
    one, two = toy([]), replace(toy([]), id="T2")
    both = {"T1": one, "T2": two}
    reproduce(both, ["T2"], "tiny", tmp_path)
    reproduce(both, ["t1"], "tiny", tmp_path)
    assert list(finished(tmp_path)) == ["T1", "T2"]
    html = (tmp_path / "exhibits.html").read_text()
    assert "A toy &lt;b&gt;&amp; more&lt;/b&gt;" in html
    assert html.count("<svg") == 2
    assert html == page(list(finished(tmp_path).values()))


def test_figures_are_the_same_bytes_each_time(tmp_path):
    for folder in ("a", "b"):
        reproduce({"T1": toy([])}, [], "tiny", tmp_path / folder)
    assert (tmp_path / "a/figures/T1.svg").read_bytes() == (tmp_path / "b/figures/T1.svg").read_bytes()


def test_a_step_that_is_not_a_number_is_not_kept(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        Work(tmp_path).once("bad", lambda: float("nan"))
    assert Work(tmp_path).once("bad", lambda: 1.5) == 1.5


def test_verdicts():
    agrees, differs, other = (Row("x", "1", "1", v) for v in ("agrees", "differs", "not comparable"))
    assert overall([agrees, other]) == "agrees"
    assert overall([agrees, differs, other]) == "differs"
    assert overall([other]) == "not comparable"
    assert inside(50.0, range(101)) == "agrees"
    assert inside(98.0, range(101)) == "differs"
    assert central(range(101)) == pytest.approx((2.5, 97.5))


def test_choosing():
    assert [e.id for e in choose(EXHIBITS, ["v2", "V1", "v2"])][:1] == ["V2"]
    assert choose(EXHIBITS, ["all"]) == choose(EXHIBITS, []) == list(EXHIBITS.values())
    with pytest.raises(BadInput, match="exhibit='V9' is unknown; did you mean"):
        choose(EXHIBITS, ["V9"])
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
    assert entry["scale"] == "quick"
    assert main(["reproduce", "--list", "--json", *out]) == 0
    listed = {e["id"]: e for e in json.loads(capsys.readouterr().out)["exhibits"]}
    assert set(EXHIBITS) <= set(listed)
    assert listed["T1"]["verdict"] == "agrees"
    assert listed["V1"]["verdict"] is None
    assert "rows" not in listed["T1"]
    assert main(["reproduce", "T1", *out]) == 0
    assert "Counted." in capsys.readouterr().out
    assert main(["reproduce", "T7", *out]) == 2
    assert "did you mean" in capsys.readouterr().err
