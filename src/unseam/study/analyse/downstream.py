"""L7, are better scores useful: rank correlation of each metric with the accuracy of predicting the factors."""

from __future__ import annotations

import re

import pandas as pd

from unseam.study.analyse.columns import metric_columns
from unseam.study.analyse.correlate import relations

NEEDS = "accuracies (columns downstream.KIND.N) and a metric on four finished models of one data set"


def tasks(models: pd.DataFrame) -> list[str]:
    """The columns downstream.KIND.N that hold something, by kind and number of labels.

    >>> tasks(pd.DataFrame({"downstream.trees.1000": [0.5], "downstream.trees.100": [0.4], "mean.mig": [0.1]}))
    ['downstream.trees.100', 'downstream.trees.1000']
    """
    named = [str(name) for name in models if re.fullmatch(r"downstream\.\w+\.[0-9]{1,9}", str(name))]
    found = [name for name in named if models[name].notna().any()]
    return sorted(found, key=lambda name: (name.split(".")[1], int(name.split(".")[2])))


def downstream_agreement(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """data, a (task), b (metric), rho, low, high, n."""
    return relations(models, [(task, metric, 1) for task in tasks(models) for metric in metric_columns(models, code)])
