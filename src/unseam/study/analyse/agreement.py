"""L3, how much do metrics agree: Spearman's rank correlation of every two of them over the models of a data set."""

from __future__ import annotations

from itertools import combinations

import pandas as pd

from unseam.study.analyse.columns import metric_columns
from unseam.study.analyse.correlate import relations

NEEDS = "two metrics that vary, on four finished models of one data set"
STRONG = (("beta-vae", "factor-vae"), ("mig", "dci-disentanglement"))  # the pairs the paper calls strongly correlated
ODD_METRIC = "modularity"  # the metric it excepts


def metric_agreement(models: pd.DataFrame, code: str = "mean") -> pd.DataFrame:
    """data, a, b, rho, low, high, n for every two metrics of one code."""
    return relations(models, [(a, b, 1) for a, b in combinations(metric_columns(models, code), 2)])


def kinds(found: pd.DataFrame) -> pd.Series[str]:
    """What the paper says of each pair: strong, mild, or apart (it has Modularity).

    >>> kinds(pd.DataFrame({"a": ["mean.beta-vae", "mean.mig"], "b": ["mean.factor-vae", "mean.modularity"]})).tolist()
    ['strong', 'apart']
    """
    pairs = [frozenset(str(x).partition(".")[2] for x in pair) for pair in zip(found["a"], found["b"], strict=True)]
    strong = {frozenset(pair) for pair in STRONG}
    named = ["apart" if ODD_METRIC in pair else "strong" if pair in strong else "mild" for pair in pairs]
    return pd.Series(named, index=found.index, dtype=object)
