"""L3: how much the metrics agree (Locatello 2019, Figure 2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from unseam.study.analyse.agreement import STRONG, kinds, metric_agreement
from unseam.study.analyse.columns import label, metric_columns
from unseam_papers.frame.draw import Figure, heat, panel_each
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import beyond
from unseam_papers.locatello import models as study
from unseam_papers.locatello.models import Settings, above, models_text

ID, TITLE = "L3", "How much the metrics agree"
CLAIM = "All metrics but Modularity are mildly correlated, BetaVAE with FactorVAE and MIG with DCI strongly."
SOURCE = "Locatello 2019, Figure 2, Noisy-dSprites (slides: Key experimental results 2)"
PAPER, SCALES = study.PAPER, study.SCALES
CHOICES = (
    *study.CHOICES,
    "'Mildly correlated': ours is that the lowest mean (over data sets) rank correlation of any two of the five is "
    "above 0.3 (until a review: above 0); 'strongly': above the mean of the other pairs without Modularity.",
)


MILD = 0.3  # a rank correlation


def _means(frame: pd.DataFrame) -> pd.DataFrame:
    """a, b, kind, rho: the mean over data sets of each pair."""
    found = metric_agreement(frame)
    return found.assign(kind=kinds(found)).groupby(["a", "b", "kind"], sort=False)["rho"].mean().reset_index()


def lowest(frame: pd.DataFrame) -> float:
    found = _means(frame)
    return float(found[found["kind"] != "apart"]["rho"].min())


def modularity_behind(frame: pd.DataFrame) -> float:
    found = _means(frame)
    apart = found["kind"] == "apart"
    return float(found[~apart]["rho"].mean() - found[apart]["rho"].mean())


def _lead(pair: tuple[str, str]) -> Callable[[pd.DataFrame], float]:
    """How far a pair's correlation is above the mean of the other pairs without Modularity."""

    def statistic(frame: pd.DataFrame) -> float:
        found = _means(frame)
        own = (found["a"] == f"mean.{pair[0]}") & (found["b"] == f"mean.{pair[1]}")
        return float(found[own]["rho"].mean() - found[~own & (found["kind"] != "apart")]["rho"].mean())

    return statistic


def _compute(settings: Settings, work: Work) -> Numbers:
    frame = study.trained_models(settings, work)
    found, names = metric_agreement(frame), metric_columns(frame)
    table = {str(data): part.set_index(["a", "b"])["rho"] for data, part in found.groupby("data")}
    matrices = {
        data: [[1.0 if a == b else float(rho.get((a, b), rho.get((b, a), 0.0))) for b in names] for a in names]
        for data, rho in table.items()
    }
    tested = {"lowest": lowest, "modularity": modularity_behind} | {"-".join(pair): _lead(pair) for pair in STRONG}
    return {
        "about": study.about(frame),
        "names": [label(name) for name in names],
        "matrices": matrices,
        **{key: study.without_each(frame, statistic) for key, statistic in tested.items()},
    }


def _judge(numbers: Numbers) -> list[VerdictRow]:
    rows = [
        above("lowest", "the lowest rank correlation of two metrics, Modularity left out", "mildly correlated",
              numbers["lowest"], limit=MILD),
        above("modularity", "other pairs above pairs with Modularity, by", "all metrics except Modularity",
              numbers["modularity"]),
    ]  # fmt: skip
    for pair in STRONG:
        names = " with ".join(label(f"mean.{metric}") for metric in pair)
        rows.append(above("-".join(pair), f"{names} above the other pairs, by", "strongly", numbers["-".join(pair)]))
    each = "; ".join(f"{data} {np.mean(off_diagonal(m)):.2f}" for data, m in numbers["matrices"].items())
    return [*rows, beyond("mean", "mean rank correlation of all pairs, by data set", each)]


def off_diagonal(matrix: list[list[float]]) -> np.ndarray:
    return np.array(matrix)[np.triu_indices(len(matrix), 1)]


def _draw(numbers: Numbers) -> Figure:
    """A matrix a data set."""
    fig, axes = panel_each(numbers["matrices"], 3.4, 3.3)
    for ax, (data, matrix) in zip(axes, numbers["matrices"].items(), strict=True):
        heat(ax, matrix, numbers["names"], numbers["names"], size=7, turn=45)
        ax.set_title(f"{data}: rank correlation x 100")
    return fig


def _conclude(numbers: Numbers, rows: VerdictRows) -> str:
    return (
        f"{models_text(numbers['about'])}. "
        f"The lowest correlation of two metrics but Modularity is {rows['lowest'].ours}; "
        f"pairs with Modularity lie {rows['modularity'].ours} below the others. BetaVAE with FactorVAE is ahead of the "
        f"other pairs by {rows['beta-vae-factor-vae'].ours}, MIG with DCI by {rows['mig-dci-disentanglement'].ours} "
        "(with 95 % intervals)."
    )


compute, judge, draw, conclude = study.on_both_studies(_compute, _judge, _draw, _conclude)
