"""L2, does strength make codes uncorrelated: Gaussian total correlation of sampled and of mean codes."""

from __future__ import annotations

import pandas as pd

from unseam.study.analyse.correlate import relation

NEEDS = "unsup.tc-sampled and unsup.tc-mean on four finished models of one method at two strengths"
CODES = {"sampled": "unsup.tc-sampled", "mean": "unsup.tc-mean"}
ODD_METHOD = "annealed-vae"  # its strength is a capacity: more is weaker, and the paper's figure leaves it out


def total_correlation(models: pd.DataFrame) -> pd.DataFrame:
    """data, method, code, rho with strength, low, high, n, and the mean at the weakest and the strongest, in nats."""
    rows = [
        {"data": data, "method": method, "code": code, **found, **_ends(group, column)}
        for (data, method), group in models.groupby(["data", "method"], sort=True)
        for code, column in CODES.items()
        if column in group and (found := relation(group["strength"], group[column]))
    ]
    names = ["data", "method", "code", "rho", "low", "high", "n", "weakest", "strongest"]
    return pd.DataFrame(rows, columns=names)


def _ends(group: pd.DataFrame, column: str) -> dict[str, float]:
    """The means at the ends of the strengths."""
    means = group.dropna(subset=column).groupby("strength", sort=True)[column].mean()
    return {"weakest": float(means.iloc[0]), "strongest": float(means.iloc[-1])}
