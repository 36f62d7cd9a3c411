"""study.html: what a study of many models says, on one page without a script, its tables and figures beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unseam.atomic import write_atomic
from unseam.show.style import ACCENT, CHOSEN, INK, OTHER, PALETTE, plain, styled, svg, template
from unseam.study.analyse import analyse, words
from unseam.study.analyse.columns import DIRECTIONS, METHOD_TITLES, label, metric_columns
from unseam.study.analyse.correlate import matrix
from unseam.study.analyse.efficiency import sizes, with_efficiency
from unseam.study.analyse.selection import LABELS
from unseam.study.analyse.total_correlation import CODES, ODD_METHOD
from unseam.study.analyse.transfer import PUBLISHED
from unseam.study.analyse.variance import PERMUTATIONS
from unseam.study.table import Study, load

_Tables = Mapping[str, pd.DataFrame]
_MOST = 4  # data sets that fit into a figure
SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'  # of a picture on its own
JUDGE = "mean.factor-vae"  # the score that the paper's figures 3 and 6 show


def method_name(name: object) -> str:
    return METHOD_TITLES.get(str(name), str(name))


def colour_of(models: pd.DataFrame) -> dict[str, str]:
    """A colour per method, the same in every figure."""
    names = [m for m in METHOD_TITLES if m in set(models["method"])]
    names += [m for m in models["method"].unique() if m not in METHOD_TITLES]
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def _panels(models: pd.DataFrame, rows: int = 1, height: float = 2.6) -> tuple[Figure, Any, list[str]]:
    """A column per data set, as many as fit."""
    names = list(models["data"].unique())[:_MOST]
    figure = Figure(figsize=(max(2.9 * len(names), 3.6), height * rows), layout="constrained")
    return figure, figure.subplots(rows, len(names), squeeze=False, sharey="row"), names


def _spread(n: int, width: float = 0.28) -> Any:
    """Places for n dots beside each other."""
    return width * ((np.arange(n) * 0.618034 % 1) * 2 - 1)


def judge_of(models: pd.DataFrame) -> str:
    known = metric_columns(models)
    return JUDGE if JUDGE in known else known[0]


@styled
def correlation_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """Total correlation over strength, weakest to strongest; a line per method through the means of the seeds."""
    codes = {code: column for code, column in CODES.items() if column in models}
    figure, axes, names = _panels(models, rows=len(codes), height=2.4)
    colours = colour_of(models)
    for row, (code, column) in zip(axes, codes.items(), strict=True):
        for ax, data in zip(row, names, strict=True):
            for method, part in models[(models["data"] == data) & models[column].notna()].groupby("method"):
                means = part.groupby("strength")[column].mean()
                style = ":" if method == ODD_METHOD else "-"
                ax.plot(np.linspace(0, 1, len(means)), means, style, marker="o", ms=3, color=colours[str(method)],
                        label=plain(method_name(method)))  # fmt: skip
            ax.set_yscale("symlog", linthresh=0.1)
            ax.set(title=f"{plain(str(data))}, {code} code", xticks=(0, 1), xticklabels=("weakest", "strongest"))
        row[0].set_ylim(bottom=0)  # after all lines of the row: a limit ends the scaling of the panels that share it
        row[0].set_ylabel("TC, nats")
    handles, labels = max((ax.get_legend_handles_labels() for ax in axes.flat), key=lambda found: len(found[0]))
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, max(len(labels), 1)), fontsize=8)
    return figure


@styled
def methods_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """Every model's score by method; a bar at the median."""
    score, (figure, axes, names) = judge_of(models), _panels(models)
    colours = colour_of(models)
    for ax, data in zip(axes[0], names, strict=True):
        for i, (method, colour) in enumerate(colours.items()):
            y = models[(models["data"] == data) & (models["method"] == method)][score].dropna().to_numpy()
            _strip(ax, i, y, colour)
        ax.set_title(plain(str(data)))
        ax.set_xticks(
            range(len(colours)), [plain(method_name(m)) for m in colours], rotation=40, ha="right", fontsize=8
        )
    axes[0][0].set_ylabel(f"{label(score)} score")
    return figure


@styled
def strengths_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """One method a panel: every seed's score by strength, on the first data set."""
    score, data = judge_of(models), models["data"].iloc[0]
    colours = colour_of(models)
    count = len(colours)
    figure = Figure(figsize=(max(1.9 * count, 3.6), 2.4), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False, sharey=True)[0]
    for ax, (method, colour) in zip(axes, colours.items(), strict=True):
        part = models[(models["data"] == data) & (models["method"] == method)]
        values = sorted(part["strength"].unique())
        for i, value in enumerate(values):
            _strip(ax, i, part[part["strength"] == value][score].dropna().to_numpy(), colour)
        ax.set_title(plain(method_name(method)))
        ax.set_xticks(range(len(values)), [f"{v:g}" for v in values], fontsize=8)
    axes[0].set_ylabel(f"{label(score)} score")
    figure.supxlabel(f"strength; {plain(str(data))}", fontsize=9, color=INK)
    return figure


def _strip(ax: Axes, place: float, y: Any, colour: str) -> None:
    """Models as dots, their median as a bar."""
    if len(y):
        ax.plot(place + _spread(len(y)), y, "o", color=colour, ms=3, alpha=0.55, mew=0)
        ax.plot([place - 0.36, place + 0.36], [np.median(y)] * 2, color=colour, lw=2)


@styled
def variance_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """Adjusted shares, a bar per metric: objective, what strength adds, and the rest: seeds."""
    found = tables["variance"]
    wide = found.pivot_table("adjusted", ["data", "metric"], "by", sort=False)
    figure, axes, names = _panels(models, height=2.3)
    for ax, data in zip(axes[0], names, strict=True):
        part = wide.loc[data][::-1] if data in wide.index.get_level_values(0) else wide[:0]
        both = part.get("objective x strength", pd.Series(np.nan, part.index)).clip(lower=0)
        alone = part.get("objective", both * 0).clip(lower=0)
        whole, place = both.fillna(alone).clip(lower=alone), range(len(part))
        ax.barh(place, alone, color=CHOSEN, height=0.7, label="objective")
        ax.barh(place, whole - alone, left=alone, color=ACCENT, height=0.7, label="strength, beyond it")
        ax.barh(place, 1 - whole, left=whole, color=OTHER, height=0.7, alpha=0.35, label="seed")
        ax.set_yticks(place, [label(str(m)) for m in part.index])
        ax.set(title=plain(str(data)), xlim=(0, 1), xticks=(0, 0.5, 1), xticklabels=("0", "50 %", "100 %"))
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure


@styled
def transfer_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """Ours with intervals, the published rate as a diamond."""
    found = tables["transfer"][::-1].reset_index(drop=True)
    figure = Figure(figsize=(5.6, 0.8 + 0.34 * len(found)), layout="constrained")
    ax = figure.add_subplot()
    whiskers(ax, found, [CHOSEN if kind in PUBLISHED else OTHER for kind in found["kind"]])
    for i, kind in enumerate(found["kind"]):
        if kind in PUBLISHED:
            ax.plot(PUBLISHED[kind], i, "D", mfc="none", mec=INK, ms=6)
    ax.set_yticks(range(len(found)), found["kind"])
    ax.set_xlabel("chosen setting wins, %; diamond: published")
    return figure


def whiskers(ax: Axes, found: pd.DataFrame, colours: list[str]) -> None:
    """Rates in per cent with their intervals, and the line of chance."""
    for i, (row, colour) in enumerate(zip(found.to_dict("records"), colours, strict=True)):
        ax.plot([100 * row["low"], 100 * row["high"]], [i, i], color=colour, lw=2, alpha=0.7)
        ax.plot(100 * row["rate"], i, "o", color=colour, ms=5)
    ax.axvline(50, color=INK, lw=0.8, ls="--")


@styled
def selection_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """How often the chosen model beats a random other one of its pool, by selector."""
    found = tables["selection"]
    pools = [pool for pool in words.POOLS if pool in set(found["pool"])]
    names = list(found["selector"].unique())[::-1]
    figure = Figure(figsize=(4.6 * len(pools), 0.9 + 0.25 * len(names)), layout="constrained")
    axes = figure.subplots(1, len(pools), squeeze=False, sharey=True, sharex=True)[0]
    for ax, pool in zip(axes, pools, strict=True):
        part = found[found["pool"] == pool].set_index("selector").reindex(names)
        whiskers(ax, part, [colour_of_selector(name) for name in names])
        ax.set(title=words.POOLS[pool], xlabel="beats a random other model, %; dashed: chance")
    axes[0].set_yticks(range(len(names)), [selector_name(name) for name in names])
    return figure


def colour_of_selector(name: str) -> str:
    return ACCENT if name == LABELS else CHOSEN if name.startswith("free.") else OTHER


def selector_name(name: str) -> str:
    """With an arrow to what it prefers.

    >>> selector_name("free.udr"), selector_name("unsup.kl"), selector_name("labels")
    ('UDR ↑', 'KL ↓', 'labels: another metric')
    """
    if name == LABELS:
        return "labels: another metric"
    return f"{label(name)} {'↑' if DIRECTIONS[name] > 0 else '↓'}"


@styled
def efficiency_figure(models: pd.DataFrame, tables: _Tables) -> Figure:
    """Efficiency against the score, a dot per model, a colour per method."""
    kinds = sizes(models)
    kind = "trees" if "trees" in kinds else next(iter(kinds))
    found, score, (figure, axes, names) = with_efficiency(models), judge_of(models), _panels(models)
    for ax, data in zip(axes[0], names, strict=True):
        for method, colour in colour_of(models).items():
            part = found[(found["data"] == data) & (found["method"] == method)]
            ax.plot(part[score], part[f"efficiency.{kind}"], "o", color=colour, ms=3, alpha=0.6, mew=0)
        ax.set(title=plain(str(data)), xlabel=f"{label(score)} score")
    few, many = kinds[kind]
    axes[0][0].set_ylabel(f"accuracy {few:,} / {many:,}, {kind}")
    return figure


# table -> the figure that shows it
FIGURES: dict[str, Callable[[pd.DataFrame, _Tables], Figure]] = {
    "total-correlation": correlation_figure,
    "methods": methods_figure,
    "strengths": strengths_figure,
    "variance": variance_figure,
    "transfer": transfer_figure,
    "selection": selection_figure,
    "efficiency": efficiency_figure,
}


def grids(found: pd.DataFrame, both: bool = False) -> dict[str, pd.DataFrame]:
    """data -> a matrix of rho with readable names; `both`: every pair appears at both of its places."""
    out = {}
    for data, part in found.groupby("data", sort=False):
        mirrored = part.rename(columns={"a": "b", "b": "a"}) if both else part[:0]
        table = matrix(pd.concat([part, mirrored], ignore_index=True))
        if both:
            order = list(dict.fromkeys([*part["a"], *part["b"]]))
            table = table.reindex(index=order, columns=order)
        out[str(data)] = _spoken(table)
    return out


def mean_grid(found: pd.DataFrame) -> pd.DataFrame:
    """The mean over data sets."""
    return _spoken(matrix(found)) if len(found) else found


def _spoken(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(index=axis_name, columns=axis_name)


def axis_name(column: str) -> str:
    return selector_name(column) if column in DIRECTIONS else label(column)


def versus(found: pd.DataFrame, models: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """data -> P(row's method beats column's) by the judge's score."""
    part, order = found[found["metric"] == judge_of(models)], list(colour_of(models))
    turned = part.rename(columns={"a": "b", "b": "a"}).assign(
        p=1 - part["p"], low=1 - part["high"], high=1 - part["low"]
    )
    whole = pd.concat([part, turned], ignore_index=True)
    out = {}
    for data, rows in whole.groupby("data", sort=False):
        text = rows.assign(text=[f"{100 * p:.0f} ({100 * l:.0f} to {100 * h:.0f})" for p, l, h
                                 in zip(rows["p"], rows["low"], rows["high"], strict=True)])  # fmt: skip
        table = text.pivot(index="a", columns="b", values="text").reindex(index=order, columns=order)
        out[str(data)] = table.fillna("").rename(index=method_name, columns=method_name)
    return out


def _shares(found: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """by -> a row per data set, a column per metric: explained (adjusted; null's 95 % point), in per cent."""
    parts = (100 * found[["explained", "adjusted", "null_high"]]).to_numpy()
    text = [f"{share:.0f} ({adjusted:.0f}; {null:.0f})" for share, adjusted, null in parts]
    out = {}
    for by, part in found.assign(text=text).groupby("by", sort=False):
        table = part.pivot(index="data", columns="metric", values="text").reindex(columns=part["metric"].unique())
        out[str(by)] = table.fillna("").rename(columns=label)
    return out


def write_analysis(study: Study | str | Path | pd.DataFrame, out: str | Path) -> dict[str, Any]:
    """OUT/study.html, its tables as OUT/tables/NAME.csv, its figures as OUT/figures/NAME.svg; where they are."""
    found = study if isinstance(study, Study | pd.DataFrame) else load(study)
    frame, name = (found, "study") if isinstance(found, pd.DataFrame) else (found.table(), Path(found.path).stem)
    return write_study_page(frame, analyse(frame), name, Path(out))


def write_study_page(frame: pd.DataFrame, tables: _Tables, name: str, out: Path) -> dict[str, Any]:
    """The page, OUT/tables/NAME.csv for every table and OUT/figures/NAME.svg; whole files, or what was there."""
    models, paths = tables["models"], {}
    for table, found in tables.items():
        paths[table] = out / "tables" / f"{table}.csv"
        write_atomic(paths[table], found.to_csv(index=False))
    pictures = {}
    for table, draw in FIGURES.items():
        if len(tables[table]):
            pictures[table] = svg(draw(models, tables), table)
            write_atomic(out / "figures" / f"{table}.svg", pictures[table].replace("<svg ", f"<svg {SPACES} ", 1))
    write_atomic(out / "study.html", _render(frame, tables, name, pictures))
    return {"page": out / "study.html", "tables": paths, "answers": words.answer(tables)}


def in_hundred(x: float) -> str:
    """A share in per cent.

    >>> in_hundred(0.256), in_hundred(-0.001), in_hundred(float("nan"))
    ('26', '0', '–')
    """
    return "–" if pd.isna(x) else f"{round(100 * x)}"


def _render(frame: pd.DataFrame, tables: _Tables, name: str, pictures: Mapping[str, str]) -> str:
    models = tables["models"]
    page = template(
        "study.html", share=in_hundred, selector=selector_name, rho=lambda r: f"{r + 0.0:.2f}".replace("-0.00", "0.00")
    )
    few_many = ", ".join(f"{kind} {few:,} / {many:,}" for kind, (few, many) in sizes(models).items())
    return page.render(
        name=name,
        models=models,
        compared=words.models_compared(models, frame),
        answers=words.answer(tables),
        keys=words.key_results(tables),
        needs=words.needs,
        tables=tables,
        pictures=pictures,
        agreement=grids(tables["agreement"], both=True),
        versus=versus(tables["methods"], models) if len(tables["methods"]) else {},
        shares=_shares(tables["variance"]),
        scores=mean_grid(tables["scores"]),
        downstream=mean_grid(tables["downstream"]),
        efficiency=mean_grid(tables["efficiency"]),
        selection=dict(iter(tables["selection"].groupby("pool", sort=False))),
        pools=words.POOLS,
        published=PUBLISHED,
        judge=label(judge_of(models)) if metric_columns(models) else "",
        permutations=PERMUTATIONS,
        sizes=few_many,
        shown=min(_MOST, models["data"].nunique()),
        data=models["data"].nunique(),
    )
