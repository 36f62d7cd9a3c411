"""L8, do better scores save labels: efficiency = accuracy with few labels / accuracy with many, against each metric."""

from __future__ import annotations

import pandas as pd

from unseam.study.analyse.columns import metric_columns
from unseam.study.analyse.correlate import relations
from unseam.study.analyse.downstream import tasks

NEEDS = "accuracies of one predictor at two numbers of labels (the paper: 100 and 10,000), and a metric"
_FEW = 100  # labels, as published; the fewest where there are none of it


def sizes(models: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """kind -> few and many labels: 100 (or the fewest) and the most.

    >>> sizes(pd.DataFrame({f"downstream.trees.{n}": [0.5] for n in (10, 100, 10_000)}))
    {'trees': (100, 10000)}
    """
    found: dict[str, list[int]] = {}
    for task in tasks(models):
        found.setdefault(task.split(".")[1], []).append(int(task.split(".")[2]))
    few = {kind: _FEW if _FEW in counts else min(counts) for kind, counts in found.items()}
    return {kind: (few[kind], max(counts)) for kind, counts in found.items() if max(counts) > few[kind]}


def with_efficiency(models: pd.DataFrame) -> pd.DataFrame:
    """The models with a column efficiency.KIND for each predictor."""
    ratios = {}
    for kind, (few, many) in sizes(models).items():
        most = models[f"downstream.{kind}.{many}"]
        ratios[f"efficiency.{kind}"] = models[f"downstream.{kind}.{few}"] / most.where(most > 0)
    return models.assign(**ratios)


def efficiency(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """data, a (efficiency.KIND), b (metric), rho, low, high, n."""
    pairs = [(f"efficiency.{kind}", metric, 1) for kind in sizes(models) for metric in metric_columns(models, code)]
    return relations(with_efficiency(models), pairs)
