"""L7: metrics against the accuracy of downstream tasks (Locatello 2019, Figure 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unseam.study.analyse.columns import label
from unseam.study.analyse.correlate import matrix
from unseam.study.analyse.downstream import downstream_agreement
from unseam_papers.frame.draw import Figure, heat, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import beyond
from unseam_papers.locatello import models as study
from unseam_papers.locatello.models import Settings, above, models_text

ID, TITLE = "L7", "Scores and the accuracy of downstream tasks"
CLAIM = "Higher scores go along with better prediction of the factors, for whatever reason."
SOURCE = "Locatello 2019, Figure 5, dSprites (slides: Key experimental results 5)"
PAPER, SCALES = study.PAPER, study.SCALES
CHOICES = (
    *study.CHOICES,
    "The figure's numbers are not in the text of the slides; their words ask whether disentangled representations "
    "perform better or scores capture informativeness. Ours: the mean rank correlation over metrics, tasks and data "
    "sets is above 0.3 (until a review: above 0).",
)


CORRELATED = 0.3  # a mean rank correlation


def _mean(frame: pd.DataFrame) -> float:
    return float(downstream_agreement(frame)["rho"].mean())


def _compute(settings: Settings, work: Work) -> Numbers:
    frame = study.trained_models(settings, work)
    found = matrix(downstream_agreement(frame))
    return {
        "about": study.about(frame),
        "mean": study.without_each(frame, _mean),
        "tasks": [label(str(task)) for task in found.index],
        "metrics": [label(str(metric)) for metric in found.columns],
        "rho": found.to_numpy().tolist(),
    }


def _judge(numbers: Numbers) -> list[VerdictRow]:
    rows = [above("mean", "mean rank correlation of metrics and accuracy", "correlated: they perform better, or scores "
                  "capture informativeness", numbers["mean"], limit=CORRELATED)]  # fmt: skip
    for metric, column in zip(numbers["metrics"], np.array(numbers["rho"]).T, strict=True):
        ours = f"{column.mean():.2f} ({column.min():.2f} to {column.max():.2f})"
        rows.append(beyond(metric, f"{metric}: rank correlation with accuracy, mean and range over tasks", ours))
    return rows


def _draw(numbers: Numbers) -> Figure:
    """Tasks by metrics, the mean over data sets."""
    fig, ax = panels(5.6, 1.2 + 0.32 * len(numbers["tasks"]))
    heat(ax, numbers["rho"], numbers["tasks"], numbers["metrics"], size=8, turn=30, aspect="auto")
    ax.set_title("rank correlation x 100")
    return fig


def _conclude(numbers: Numbers, rows: VerdictRows) -> str:
    order = sorted(zip(np.array(numbers["rho"]).mean(axis=0), numbers["metrics"], strict=True))
    return (
        f"{models_text(numbers['about'])}. "
        f"Mean rank correlation of scores and accuracy: {rows['mean'].ours}; highest for "
        f"{order[-1][1]} ({order[-1][0]:.2f}), lowest for {order[0][1]} ({order[0][0]:.2f}). The tasks are to recover "
        "the factors that the metrics look for, so this does not say that disentangling helps."
    )


compute, judge, draw, conclude = study.on_both_studies(_compute, _judge, _draw, _conclude)
