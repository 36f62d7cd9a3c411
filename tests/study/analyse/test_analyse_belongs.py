"""Every number of study.html stands at its own row, column, data set and method: against the models, by brute force."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from scipy.stats import spearmanr
from synthetic import study

from unseam.show.pages import study as page
from unseam.study.analyse import analyse, words
from unseam.study.analyse.columns import METHOD_TITLES, METRIC_TITLES

DATA, NAMES = ("sprites", "sprites-colour"), ("beta-vae", "factor-vae", "annealed-vae")
FEW, MANY = "downstream.trees.100", "downstream.trees.10000"


class Tables(HTMLParser):
    """The tables of a page, each a list of rows of texts, under the section and the heading before them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.section, self.heading, self.inside = "", "", ""
        self.found: list[tuple[str, str, list[list[str]]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        if tag == "section":
            self.section, self.heading = dict(attrs)["id"], ""
        elif tag == "h3":
            self.heading = ""
        elif tag == "table":
            self.found.append((self.section, self.heading, []))
        elif tag == "tr":
            self.found[-1][2].append([])
        elif tag in ("td", "th"):
            self.found[-1][2][-1].append("")

    def handle_endtag(self, tag):
        self.inside = "" if tag in ("td", "th", "h3", "table") else self.inside

    def handle_data(self, text):
        if self.inside == "h3":
            self.heading += text
        elif self.inside in ("td", "th", "span") and self.found and self.found[-1][2]:
            self.found[-1][2][-1][-1] += text.strip()

    def of(self, section: str) -> dict[str, pd.DataFrame]:
        """heading -> the table, its first column as the index."""
        return {
            heading: pd.DataFrame(rows[1:], columns=["", *rows[0][1:]]).set_index("")
            for name, heading, rows in self.found
            if name == section
        }


@pytest.fixture(scope="module")
def models():
    return study(data=DATA, strengths=2, seeds=4, methods=NAMES)


@pytest.fixture(scope="module")
def tables(models):
    return analyse(models)


@pytest.fixture(scope="module")
def written(models, tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    page.write_study_page(models, tables, "mine", out)
    return Tables((out / "study.html").read_text())


def of(models: pd.DataFrame, data: str, method: str) -> pd.Series:
    """The scores that figures show, of the models of a data set and a method."""
    return models[(models["data"] == data) & (models["method"] == method)][page.JUDGE]


def beats(x, y) -> float:
    """How often one of x is larger than one of y, in per cent; ties count half."""
    return 100 * float(np.mean([(a > b) + 0.5 * (a == b) for a in x for b in y]))


def test_a_method_beats_another_as_often_as_pairs_of_models_say(written, models):
    shown = {heading.split(":")[0]: table for heading, table in written.of("overlap").items()}
    assert list(shown) == list(DATA)
    for data, table in shown.items():
        for row in NAMES:
            for column in set(NAMES) - {row}:
                scores = [of(models, data, m) for m in (row, column)]
                text = table.loc[METHOD_TITLES[row], METHOD_TITLES[column]]
                value, low, high = (float(part.strip("(")) for part in text.rstrip(")").replace(" to", "").split())
                assert value == pytest.approx(beats(*scores), abs=0.51)
                assert low <= value <= high


def test_correlations_are_those_of_their_data_set_and_columns(written, models):
    shown = written.of("agreement")
    assert list(shown) == list(DATA)
    for data, table in shown.items():
        own = models[models["data"] == data]
        for a in METRIC_TITLES:
            for b in set(METRIC_TITLES) - {a}:
                rho = spearmanr(own[f"mean.{a}"], own[f"mean.{b}"]).statistic
                assert float(table.loc[METRIC_TITLES[a], METRIC_TITLES[b]]) == pytest.approx(rho, abs=0.0051)


def test_means_over_data_sets_are_of_the_columns_they_name(written, models):
    ratio = models.assign(efficiency=models[FEW] / models[MANY], dto=-models["free.dto"], udr=models["free.udr"])
    rows = {  # section -> the name of a row, its column
        "efficiency": [("trees", "efficiency")], "downstream": [("trees, 10,000", MANY), ("trees, 100", FEW)],
        "scores": [("DtO ↓", "dto"), ("UDR ↑", "udr")],
    }  # fmt: skip
    for section, wanted in rows.items():
        (table,) = written.of(section).values()
        for title, column in wanted:
            (found,) = [name for name in table.index if name.startswith(title)]
            for metric, name in METRIC_TITLES.items():
                each = [spearmanr(part[column], part[f"mean.{metric}"]).statistic for _, part in ratio.groupby("data")]
                assert float(table.loc[found, name]) == pytest.approx(np.mean(each), abs=0.0051), (section, title, name)


def test_shares_of_variance_stand_under_their_names(written, tables):
    shown = written.of("variance")
    for row in tables["variance"].to_dict("records"):
        text = shown[row["by"].capitalize()].loc[row["data"], METRIC_TITLES[row["metric"].removeprefix("mean.")]]
        numbers = [float(part) for part in text.replace("(", "").replace(";", "").rstrip(")").split()]
        assert numbers == pytest.approx([100 * row[name] for name in ("explained", "adjusted", "null_high")], abs=0.51)
    for (data, metric), own in (
        tables["models"]
        .melt(id_vars=["data", "method"], value_vars=[f"mean.{m}" for m in METRIC_TITLES])
        .groupby(["data", "variable"])
    ):
        between = own["value"] - own.groupby("method")["value"].transform("mean")
        explained = 1 - float((between**2).sum() / ((own["value"] - own["value"].mean()) ** 2).sum())
        text = shown["Objective"].loc[data, METRIC_TITLES[metric.removeprefix("mean.")]]
        assert float(text.split()[0]) == pytest.approx(100 * explained, abs=0.51)


def test_a_selector_has_its_own_rates(written, tables):
    pools = {heading: pool for pool, heading in words.POOLS.items()}
    shown = {pools[heading]: table for heading, table in written.of("selection").items()}
    assert set(shown) == set(tables["selection"]["pool"])
    columns = {0: "rate", 2: "gain", 3: "behind", 5: "pools"}
    for row in tables["selection"].to_dict("records"):
        cells = shown[row["pool"]].loc[page.selector_name(row["selector"])].tolist()
        for place, name in columns.items():
            if cells[place]:  # labels are not compared with themselves
                assert float(cells[place]) == pytest.approx((1 if name == "pools" else 100) * row[name], abs=0.51)
        for place, low, high in ((1, "low", "high"), (4, "behind_low", "behind_high")):
            if cells[place]:
                numbers = [float(part) for part in cells[place].split(" to ")]
                assert numbers == pytest.approx([100 * row[low], 100 * row[high]], abs=0.51)


def dots(ax) -> list[float]:
    """Sorted heights of the models drawn in a panel."""
    return sorted(float(y) for line in ax.get_lines() if line.get_linestyle() == "None" for y in line.get_ydata())


def test_panels_show_the_models_of_their_data_set(models):
    figure = page.methods_figure(models, {})
    assert [ax.get_title() for ax in figure.axes] == list(DATA)
    for ax in figure.axes:
        own = models[models["data"] == ax.get_title()]
        assert dots(ax) == sorted(own[page.JUDGE])
        for i, name in enumerate(NAMES):
            x, y = zip(*((x, y) for line in ax.get_lines() if line.get_linestyle() == "None"
                         for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)), strict=True)  # fmt: skip
            beside = [b for a, b in zip(x, y, strict=True) if abs(a - i) < 0.5]
            assert sorted(beside) == sorted(own[own["method"] == name][page.JUDGE])
        assert [text.get_text() for text in ax.get_xticklabels()] == [METHOD_TITLES[name] for name in NAMES]


def test_strengths_are_those_of_the_data_set_that_is_named(models):
    figure = page.strengths_figure(models, {})
    assert figure.get_supxlabel().endswith(DATA[0])
    for ax, name in zip(figure.axes, NAMES, strict=True):
        assert ax.get_title() == METHOD_TITLES[name]
        assert dots(ax) == sorted(of(models, DATA[0], name))


def test_efficiency_and_score_are_of_one_model(models):
    figure, colours = page.efficiency_figure(models, {}), page.colour_of(models)
    for ax in figure.axes:
        own = models[models["data"] == ax.get_title()]
        for name, colour in colours.items():
            drawn = {
                (float(x), float(y))
                for line in ax.get_lines()
                if to_hex(line.get_color()) == to_hex(colour)
                for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
            }
            part = own[own["method"] == name]
            assert drawn == set(zip(part[page.JUDGE], part[FEW] / part[MANY], strict=True))


def test_rates_and_bars_stand_at_their_names(models, tables):
    transfer, selection = page.transfer_figure(models, tables), page.selection_figure(models, tables)
    choices = tables["selection"]
    for figure, key, named in ((transfer, "kind", str), (selection, "selector", page.selector_name)):
        for ax in figure.axes:
            pool = next((name for name, title in words.POOLS.items() if title == ax.get_title()), None)
            found = tables["transfer"] if key == "kind" else choices[choices["pool"] == pool]
            points = {float(line.get_ydata()[0]): float(line.get_xdata()[0])
                      for line in ax.get_lines() if line.get_marker() == "o"}  # fmt: skip
            labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
            shown = {labels[int(place)]: rate for place, rate in points.items()}
            wanted = {named(row[key]): 100 * row["rate"] for row in found.to_dict("records")}
            assert shown == pytest.approx(wanted)
    figure = page.variance_figure(models, tables)
    for ax in figure.axes:
        shares = tables["variance"]
        own = shares[(shares["data"] == ax.get_title()) & (shares["by"] == "objective")].set_index("metric")["adjusted"]
        bars = ax.containers[0]
        names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        widths = {name: bar.get_width() for name, bar in zip(names, bars, strict=True)}
        assert widths == pytest.approx({page.label(name): max(value, 0) for name, value in own.items()})
