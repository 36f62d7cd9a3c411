"""L8: do higher scores save labels? Accuracy with few over accuracy with many labels (Locatello 2019, Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from unseam.study.analyse.columns import label
from unseam.study.analyse.efficiency import efficiency, sizes, with_efficiency
from unseam_papers.frame.draw import GREY, Figure, panel_each
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import because, beyond, three_way
from unseam_papers.locatello import models as study
from unseam_papers.locatello.models import COLOURS, STANDS_IN, Settings, models_text

ID, TITLE = "L8", "Scores and the number of labels that are needed"
CLAIM = "Higher scores do not reliably lead to a higher sample efficiency."
SOURCE = "Locatello 2019, Figure 6, FactorVAE score, boosted trees, dSprites (slides: Key experimental results 5)"
PAPER, SCALES = study.PAPER, study.SCALES
_SCORE, _RATIO = "mean.factor-vae", "efficiency.trees"
_MARGIN = 0.2  # of a rank correlation: what is smaller we call no reliable gain
CHOICES = (
    *study.CHOICES,
    "'Not reliably': ours is a mean rank correlation (over data sets) within +-0.2 of 0 (until a review: "
    "0.3), by its 95 % interval (jackknife over seeds).",
    "Efficiency: accuracy with 100 over accuracy with 10,000 labels in the paper. Ours: 100 over the most that the "
    "study has, which the row states.",
)


def _mean(frame: pd.DataFrame) -> float:
    found = efficiency(frame)
    return float(found[(found["a"] == _RATIO) & (found["b"] == _SCORE)]["rho"].mean())


def _compute(settings: Settings, work: Work) -> Numbers:
    frame = study.trained_models(settings, work)
    found, points = efficiency(frame), with_efficiency(frame)
    each = found.groupby(["a", "b"], sort=False)["rho"].mean().reset_index()
    kept = points.dropna(subset=[_SCORE, _RATIO]) if _RATIO in points else points[:0]
    return {
        "about": study.about(frame),
        "sizes": sizes(frame),
        "mean": study.without_each(frame, _mean),
        "each": each.to_dict("records"),
        "points": kept[["data", "method", _SCORE, _RATIO]].to_dict("records") if len(kept) else [],
    }


def _judge(numbers: Numbers) -> list[VerdictRow]:
    few, many = numbers["sizes"].get("trees", (0, 0))
    what = f"rank correlation of FactorVAE score and accuracy({few:,}) / accuracy({many:,}), trees"
    rows = [equivalent(what, numbers["mean"])]
    for row in numbers["each"]:
        kind = row["a"].partition(".")[2]
        key, named = f"{row['a']} {row['b']}", f"{label(row['b'])} and the efficiency of {kind}: rank correlation"
        rows.append(beyond(key, named, f"{row['rho']:.2f}"))
    return rows


def equivalent(what: str, found: Mapping[str, Any]) -> VerdictRow:
    """No reliable gain: the interval within the margin; a gain that is shown differs."""
    published = "not reliably higher"
    if found["value"] is None or not found["without"]:
        row = VerdictRow("mean", what, published, "none", "published ordering", "not comparable", "", "too few seeds")
        return because(row, "few restarts", "too few seeds")
    half, value = study.t_and_half(found)[1], found["value"]
    rule = f"equivalence of the 95 % interval; jackknife over {len(found['without'])} seeds"
    low, high = value - half, value + half
    ours, verdict = f"{value:.2f} ({low:.2f} to {high:.2f})", three_way(low, high, _MARGIN)
    row = VerdictRow("mean", what, published, ours, "published ordering", verdict, "", rule, f"within 0 +- {_MARGIN:g}")
    if verdict == "differs":
        return because(row, "stand-in", STANDS_IN)
    return because(row, "few restarts", f"{len(found['without'])} seeds leave an interval wider than the margin")


def _draw(numbers: Numbers) -> Figure:
    """Efficiency against the score, a dot a model, a panel a data set."""
    names = numbers["about"]["data"]
    fig, axes = panel_each(names, 3.4, 3, sharey=True)
    for ax, data in zip(axes, names, strict=True):
        for row in (row for row in numbers["points"] if row["data"] == data):
            ax.plot(row[_SCORE], row[_RATIO], "o", color=COLOURS.get(row["method"], GREY), ms=3, alpha=0.7, mew=0)
        ax.set(title=data, xlabel="FactorVAE score")
    fig.axes[0].set_ylabel("accuracy, few / many labels")
    return fig


def _conclude(numbers: Numbers, rows: VerdictRows) -> str:
    if not numbers["each"]:
        return f"{models_text(numbers['about'])}. No accuracies at two numbers of labels."
    best = max(numbers["each"], key=lambda row: row["rho"])
    return (
        f"{models_text(numbers['about'])}. "
        f"FactorVAE score and efficiency of trees: rank correlation {rows['mean'].ours}. "
        f"The highest of {len(numbers['each'])} combinations of metric and predictor is {best['rho']:.2f} "
        f"({label(best['b'])}, {best['a'].partition('.')[2]})."
    )


compute, judge, draw, conclude = study.on_both_studies(_compute, _judge, _draw, _conclude)
