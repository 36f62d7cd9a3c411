"""Which of many scores are worth reporting? Clusters of their rank correlations over the models of a study.

    python benchmarks/_which_scores.py STUDY_DIR_OR_TABLE.parquet [--at 0.8] > table.md

Takes the tidy frame of a study (one row per model; `mean.METRIC`, `sampled.METRIC`, `downstream.KIND.N`). Within each
data set the models are ranked by every score; Spearman's correlations are averaged over the data sets, so that a score
does not agree with another because both know which data set is easy. Scores whose average correlation (average linkage
on 1 - |rho|) is at least `at` form a cluster; its representative is the one with the highest mean |rho| with the
others of the cluster. A score that orders the models backwards counts as the same order: its sign is told.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from unseam.errors import BadInput
from unseam.stats import spearman

AT = 0.8  # mean |rank correlation| within a cluster
FEWEST = 5  # models of a data set with both scores, for a correlation to count
KINDS = ("mean.", "downstream.")


class Cluster(NamedTuple):
    """Scores that order models alike, the one that stands for them, and how well it does."""

    representative: str
    scores: list[str]  # the representative first, then by |rho| with it
    rho: list[float]  # with the representative, signed
    within: float  # mean |rho| of the pairs inside (1 for a score alone)
    outside: float  # largest |rho| of the representative with another cluster's


def correlations(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Mean over the data sets of Spearman's rho of each pair of scores; NaN where no data set has enough models.

    >>> frame = pd.DataFrame({"data": list("aaaaabbbbb"), "mean.x": range(10), "mean.y": [*range(5), *range(5)]})
    >>> round(float(correlations(frame, ["mean.x", "mean.y"]).loc["mean.x", "mean.y"]), 6)
    1.0
    """
    out = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    for i, a in enumerate(names):
        for b in names[:i]:
            found = [one(part[[a, b]].dropna()) for _, part in frame.groupby("data")]
            known = [rho for rho in found if rho is not None]
            out.loc[a, b] = out.loc[b, a] = float(np.mean(known)) if known else np.nan
    return out


def one(pair: pd.DataFrame) -> float | None:
    return spearman(pair.iloc[:, 0].to_numpy(), pair.iloc[:, 1].to_numpy()) if len(pair) >= FEWEST else None


def clusters(rho: pd.DataFrame, at: float = AT) -> list[Cluster]:
    """The largest first.

    >>> rho = pd.DataFrame([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]], index=list("abc"), columns=list("abc"))
    >>> [c.scores for c in clusters(rho)]
    [['a', 'b'], ['c']]
    """
    strength = rho.abs().fillna(0.0).to_numpy().copy()
    np.fill_diagonal(strength, 1.0)
    if len(rho) < 2:
        labels = np.ones(len(rho), int)
    else:
        labels = fcluster(linkage(squareform(1 - strength, checks=False), "average"), 1 - at, "distance")
    found = [described(rho, strength, np.flatnonzero(labels == label)) for label in np.unique(labels)]
    return sorted(found, key=lambda c: (-len(c.scores), c.representative))


def described(rho: pd.DataFrame, strength: np.ndarray, members: np.ndarray) -> Cluster:
    inside = strength[np.ix_(members, members)]
    n = len(members)
    best = members[inside.sum(axis=1).argmax()]
    order = members[np.argsort(-inside[:, members == best][:, 0], kind="stable")]
    order = np.concatenate([[best], order[order != best]])
    others = np.setdiff1d(np.arange(len(rho)), members)
    within = float((inside.sum() - n) / (n * (n - 1))) if n > 1 else 1.0
    outside = float(strength[best, others].max()) if len(others) else 0.0
    signed = [float(rho.iloc[best, j]) if j != best else 1.0 for j in order]
    return Cluster(rho.index[best], [rho.index[j] for j in order], signed, within, outside)


def scores_of(frame: pd.DataFrame) -> list[str]:
    """Columns that are scores and vary over the finished models of at least one data set."""
    named = [c for c in frame.columns if c.startswith(KINDS)]
    kept = [c for c in named if frame.groupby("data")[c].nunique().max() > 1]
    if len(kept) < 2:
        raise BadInput(f"the study has {len(kept)} score(s) that vary ({', '.join(KINDS)}...); nothing to compare")
    return kept


def which_scores(frame: pd.DataFrame, at: float = AT) -> tuple[pd.DataFrame, list[Cluster]]:
    """Rank correlations of the scores of a study's tidy frame, and their clusters."""
    if "data" not in frame:
        raise BadInput("the frame has no column 'data'; give a study's table, one row per model")
    done = frame[frame["status"] == "finished"] if "status" in frame else frame
    rho = correlations(done, scores_of(done))
    return rho, clusters(rho, at)


def as_markdown(found: list[Cluster], models: int, at: float) -> str:
    """A table, and a recommendation in three lines."""
    lines = [
        "| report | stands for (rank correlation with it) | within | nearest other |",
        "| --- | --- | ---: | ---: |",
    ]
    for c in found:
        rest = (
            ", ".join(f"{name} {rho:+.2f}" for name, rho in zip(c.scores[1:], c.rho[1:], strict=True)) or "itself alone"
        )
        lines.append(f"| {c.representative} | {rest} | {c.within:.2f} | {c.outside:.2f} |")
    together = [c for c in found if len(c.scores) > 1]
    alone = [c.representative for c in found if len(c.scores) == 1]
    total = sum(len(c.scores) for c in found)
    lines += [
        "",
        f"Of {total} scores on {models} models {len(found)} orders remain at a mean rank correlation of {at:g}.",
        f"Report {', '.join(c.representative for c in together) or 'none'}: each stands for its row.",
        f"Ask {', '.join(alone) or 'no other'} for what {'it alone measures' if len(alone) == 1 else 'they measure'}.",
    ]
    return "\n".join(lines)


def load(place: str) -> pd.DataFrame:
    """A table in a .parquet or .csv, or a study's folder."""
    path = Path(place)
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".csv":
        return pd.read_csv(path)
    from unseam.study import load as study

    return study(path).table()


def main(arguments: list[str]) -> None:
    if not arguments or (len(arguments) > 1 and arguments[1] != "--at"):
        raise SystemExit(__doc__)
    at = float(arguments[2]) if len(arguments) > 2 else AT
    frame = load(arguments[0])
    _, found = which_scores(frame, at)
    print(as_markdown(found, len(frame), at))


if __name__ == "__main__":
    main(sys.argv[1:])
