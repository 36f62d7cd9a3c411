"""L4: scores of methods and of strengths overlap (Locatello 2019, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from unseam.study.analyse.columns import METHOD_TITLES
from unseam.study.analyse.overlap import methods, mutual, strength_overlap
from unseam_papers.frame.draw import GREY, Figure, dots, panel_each
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import beyond, share
from unseam_papers.locatello import models as study
from unseam_papers.locatello.models import COLOURS, Settings, above, models_text

ID, TITLE = "L4", "Scores of methods and of strengths overlap"
CLAIM = (
    "The scores of the methods overlap heavily, and a good run with a bad strength can beat a bad run with a good one."
)
SOURCE = "Locatello 2019, Figure 3, FactorVAE score on Cars3D (slides: Key experimental results 3)"
PAPER, SCALES = study.PAPER, study.SCALES
_SCORE = "mean.factor-vae"
HEAVY = 0.5  # of the overlap of two methods: 1 when each is as likely to win, 0 when one always does
CHOICES = (
    *study.CHOICES,
    "'Heavily overlapping': ours is a mean overlap of two methods above 0.5, where overlap is 1 - 2 |P(A beats B) - "
    "1/2|: at 0.5 the better one wins three times in four.",
    "'Can beat': ours is that the best run at a method's worst strength is above the worst run at its best strength; "
    "counted over data sets and methods, it should be so in more than half.",
)


def heaviness(frame: pd.DataFrame) -> float:
    found = methods(frame)
    return float(mutual(found[found["metric"] == _SCORE]["p"]).mean())


def _compute(settings: Settings, work: Work) -> Numbers:
    frame = study.trained_models(settings, work)
    pairs, within = methods(frame), strength_overlap(frame)
    pairs, within = pairs[pairs["metric"] == _SCORE], within[within["metric"] == _SCORE]
    scores = {
        str(data): {str(m): part[_SCORE].dropna().tolist() for m, part in group.groupby("method", sort=False)}
        for data, group in frame.groupby("data", sort=False)
    }
    return {
        "about": study.about(frame),
        "heaviness": study.without_each(frame, heaviness),
        "pairs": pairs[["data", "a", "b", "p", "low", "high"]].to_dict("records"),
        "within": within[["data", "method", "worst", "best", "p", "overlap"]].to_dict("records"),
        "scores": scores,
    }


def _judge(numbers: Numbers) -> list[VerdictRow]:
    within, pairs = numbers["within"], numbers["pairs"]
    met = sum(bool(row["overlap"]) for row in within)
    rows = [above("methods", "mean overlap of two methods' FactorVAE scores", "heavily overlapping",
                  numbers["heaviness"], limit=HEAVY)]  # fmt: skip
    if within:
        what = "methods (on each data set) where a good run with the worst strength beats a bad run with the best"
        rows.append(share("strengths", what, "can beat", met, len(within)))
        mean = f"{100 * np.mean([row['p'] for row in within]):.0f} % (mean of {len(within)} methods on data sets)"
        note = "best and worst are named by the same runs, which makes it small"
        rows.append(beyond("wins", "a run with the worst strength beats one with the best", mean, note=note))
    if pairs:
        widest = max(pairs, key=lambda row: abs(row["p"] - 0.5))
        rows.append(beyond("widest", "the two methods furthest apart", beating(widest)))
        decided = sum(row["low"] > 0.5 or row["high"] < 0.5 for row in pairs)
        rows.append(
            beyond("decided", "pairs of methods where one is shown to win more often", f"{decided} of {len(pairs)}")
        )
    return rows


def beating(row: Mapping[str, float]) -> str:
    """The pair in words, the better one first."""
    turn = row["p"] < 0.5
    a, b = (METHOD_TITLES.get(str(row[side]), str(row[side])) for side in (("b", "a") if turn else ("a", "b")))
    p, low, high = (1 - row["p"], 1 - row["high"], 1 - row["low"]) if turn else (row["p"], row["low"], row["high"])
    return f"{row['data']}: {a} beats {b} in {100 * p:.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def _draw(numbers: Numbers) -> Figure:
    """Every model's score by method, a panel a data set."""
    fig, axes = panel_each(numbers["scores"], 3.6, 3.2, sharey=True)
    for ax, (data, groups) in zip(axes, numbers["scores"].items(), strict=True):
        for place, (method, values) in enumerate(groups.items()):
            dots(ax, place, values, COLOURS.get(method, GREY), width=0.3)
        ax.set_xticks(range(len(groups)), [METHOD_TITLES.get(m, m) for m in groups], rotation=40, ha="right")
        ax.set_title(data)
    axes[0].set_ylabel("FactorVAE score")
    return fig


def _conclude(numbers: Numbers, rows: VerdictRows) -> str:
    known = {key: rows[key].ours if key in rows else "not known" for key in ("strengths", "wins", "widest", "decided")}
    known["strengths"] = known["strengths"].replace(" restarts", " cases")
    return (
        f"{models_text(numbers['about'])}. "
        f"Two methods overlap by {rows['methods'].ours} on average (1: each as likely to "
        f"win). One is shown to win more often in {known['decided']} pairs; furthest apart: {known['widest']}. Within "
        f"a method the ranges of the worst and of the best strength meet in {known['strengths']}; "
        f"a random run with the worst beats one with the best in {known['wins']}."
    )


compute, judge, draw, conclude = study.on_both_studies(_compute, _judge, _draw, _conclude)
