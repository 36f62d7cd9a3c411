"""The page and its tables: of a full study, and of every study that lacks something."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic import study

from unseam.cli.study import Command, tell
from unseam.errors import BadInput
from unseam.show.pages.study import correlation_figure, write_analysis
from unseam.study.analyse import ANALYSES, analyse, words
from unseam.study.analyse.columns import finished_models
from unseam.study.analyse.selection import selection, selection_outcomes

sys.path.append(str(Path(__file__).parents[2] / "show"))
from page_checks import checked


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    frame = study(strengths=2, seeds=3, methods=("beta-vae", "factor-vae", "annealed-vae"))
    frame.to_parquet(folder / "full.parquet")
    return frame, write_analysis(folder / "full.parquet", folder / "out")


def test_the_page_is_whole_and_closed(full):
    _, found = full
    text, page = checked(found["page"])
    assert "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:" in text
    assert "script" not in page.tags
    assert text.count("<svg") == 7
    assert "54 models: does geometry choose better than chance?" in page.words
    assert "nan" not in page.words
    assert "Not computed" not in page.words
    assert (
        "54 finished models: sprites, sprites-colour, sprites-noisy; β-VAE, FactorVAE, AnnealedVAE; 6 settings, up to"
        in (page.words)
    )
    assert all(published in page.words for published in ("80.7 %", "59.3 %", "54.9 %", "37 %"))


def test_every_table_is_a_file_that_says_what_the_page_says(full):
    frame, found = full
    tables = analyse(frame)
    assert (
        set(found["tables"]) == set(tables) == {*ANALYSES, "models", "selection", "selection-by-metric"} - {"choices"}
    )
    for name, path in found["tables"].items():
        assert len(pd.read_csv(path)) == len(tables[name]) > 0
    figures = {path.stem for path in (found["page"].parent / "figures").iterdir()}
    assert figures == {"total-correlation", "methods", "strengths", "variance", "transfer", "selection", "efficiency"}
    _, page = checked(found["page"])
    assert all(key.here in page.words for key in words.key_results(tables))
    assert all(answer in page.words for answer in words.answer(tables))


def test_no_line_of_a_figure_leaves_its_panel():
    """Later data sets with more total correlation than the first are not cut at the first one's height."""
    frame = study(strengths=3, seeds=2)
    frame.loc[frame["data"] == "sprites-noisy", ["unsup.tc-mean", "unsup.tc-sampled"]] *= 1000
    known = finished_models(frame)
    axes = correlation_figure(known, {}).axes
    assert len(axes) == 6
    for ax in axes:
        top = max(float(np.max(line.get_ydata())) for line in ax.get_lines())
        assert ax.get_ylim()[0] == 0
        assert top < ax.get_ylim()[1]


def test_the_terminal_says_the_answer_and_what_comes_next(full, tmp_path, capsys):
    _, found = full
    Command("analyse", str(found["page"].parents[1] / "full.parquet"), out=tmp_path / "again").run()
    said = " ".join(capsys.readouterr().out.split())
    assert found["answers"]
    assert all(answer in said for answer in found["answers"])
    tell({"models": 3, "of": 4, "done": 0, "pieces": 1, "running": 0, "diverged": 0, "study": "x"})
    assert "analyse" not in capsys.readouterr().out
    tell({"models": 4, "of": 4, "done": 1, "pieces": 1, "running": 0, "diverged": 0, "study": "x"})
    assert "unseam study analyse x" in capsys.readouterr().out


def test_the_answer_follows_the_numbers():
    frame = study(data=("a",), methods=("beta-vae", "factor-vae"), strengths=4, seeds=5)

    def chosen(frame):
        return {"selection": selection(selection_outcomes(finished_models(frame)))}

    for sign, expected in ((-1, "yes"), (1, "no, worse")):
        known = chosen(frame.assign(**{"free.rank": sign * frame["mean.mig"]}))
        said = words.answer(known)[0]
        assert said.startswith(f"Among seeds of one setting: {expected}. ")
        (row,) = known["selection"].query("pool == 'restarts' and selector == 'free.rank'").itertuples()
        assert f"in {words.percent(row.rate)} ({100 * row.low:.0f} to {100 * row.high:.0f}) of" in said
    without = frame.drop(columns=[name for name in frame if name.startswith("free.")])
    assert words.answer(chosen(without)) == []


def holes(frame):
    """A third of all numbers gone, a cell of the grid gone, some models diverged."""
    out, generator = frame.copy(), np.random.default_rng(0)
    for name in (name for name in out if "." in name):
        out.loc[generator.random(len(out)) < 0.33, name] = np.nan
    out.loc[generator.random(len(out)) < 0.1, "status"] = "diverged"
    return out[~((out["method"] == "beta-vae") & (out["strength"] == 2))]


def only(*kinds):
    def keep(frame):
        return frame[[name for name in frame if "." not in name or name.startswith(kinds)]]

    return keep


POOR = {  # case: how it differs, and how many sections cannot be computed (None: not counted)
    "holes, no status": ({"seeds": 5}, lambda f: holes(f).drop(columns=["status", "strength_name", "piece"]), 0),
    "one method": ({"methods": ("beta-vae",)}, lambda f: f, 0),
    "one seed": ({"seeds": 1, "methods": ("beta-vae", "x", "y")}, lambda f: f, 0),
    "one model": ({"methods": ("beta-vae",), "strengths": 1, "seeds": 1}, lambda f: f, 11),
    "nothing finished": ({}, lambda f: f.assign(status="diverged"), 11),
    "no numbers": ({}, only("nothing"), 11),
    "metrics alone": ({}, only("mean."), 6),
    "one metric": ({}, only("mean.sap", "free."), 4),
    "constant scores": ({}, lambda f: f.assign(**{name: 0.5 for name in f if name.startswith("mean.")}), None),
}


@pytest.mark.parametrize("case", POOR)
def test_a_section_that_cannot_be_computed_says_what_it_would_need(case, tmp_path, recwarn):
    shape, change, least = POOR[case]
    frame = change(study(**{"methods": ("beta-vae", "new-vae"), "data": ("a",), "strengths": 2, "seeds": 3, **shape}))
    _, page = checked(write_analysis(frame, tmp_path)["page"])
    assert "nan" not in page.words
    assert page.words.count("Not computed: it needs") >= (least or 0)
    if least == 0:
        assert "does geometry choose better than chance?" in page.words
        verdicts = ("yes", "not shown", "no, worse", "too few pools to tell")
        kinds = ("Among seeds of one setting", "Among methods and strengths")
        assert any(f"{kind}: {verdict}. " in page.words for kind in kinds for verdict in verdicts)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def test_names_from_a_table_are_text(tmp_path):
    frame = study(data=("<script>alert(1)</script>", "$x^{$"), methods=("beta-vae", "$m^{$"), strengths=2, seeds=3)
    frame = only("mean.mig", "mean.factor-vae")(frame)
    _, page = checked(write_analysis(frame, tmp_path)["page"])
    assert "script" not in page.tags
    assert "<script>alert(1)</script>" in page.words


def test_what_is_no_study_is_one_line(tmp_path):
    with pytest.raises(BadInput, match="neither a study's folder"):
        write_analysis(tmp_path / "none", tmp_path)
    with pytest.raises(BadInput, match="has no column method, strength"):
        analyse(pd.DataFrame({"data": ["a"], "seed": [0]}))
