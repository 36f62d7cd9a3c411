"""How well can one choose a model without labels? Every rule that a study's table holds, judged by labels afterwards.

A pool holds models among which a rule takes one: the settings (method and strength) of one data set and seed, or the
seeds of one setting. A metric says which share of the pool's other models that one beats, ties half; chance has 1/2
exactly. The *success rate* is the mean over metrics and pools, its interval Student's over pools.

Rules that are fitted see half of the settings and of the seeds of other data sets; they are tested on the other half
of both, of a data set that they have not seen. Percentile ranks within the pool are all that they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unseam.study.analyse.columns import DIRECTIONS, finished_models, label, metric_columns
from unseam.study.analyse.intervals import of_mean

LONG = True
SPLITS = 20  # random halves
POOLS = {"settings": ["table", "data", "seed"], "restarts": ["table", "data", "method", "strength"]}
SHOWN = ("free.rank", "free.dto-over-chance", "free.udr", "unsup.elbo")  # unfitted rules beside the fitted ones


def tables(folder: Path | None = None) -> pd.DataFrame:
    """The finished models of the shipped study `sprites16`, or of all tables of a folder; `table` says which."""
    here = Path(__file__).resolve().parent
    places = [here.parents[1] / "unseam_papers" / "studies", here.parent / "studies"] if folder is None else [folder]
    pattern = "sprites16.parquet" if folder is None else "*.parquet"
    found = {path.stem: pd.read_parquet(path) for place in places for path in sorted(place.glob(pattern))}
    parts = [finished_models(t).assign(table=name) for name, t in found.items() if "all-scores" not in name]
    return pd.concat(parts, ignore_index=True)


def wins(values: np.ndarray) -> np.ndarray:  # (n, metrics) -> (n, metrics)
    """The share of the other models that each one beats, by each metric.

    >>> wins(np.array([[1.0], [2.0], [2.0]])).ravel()
    array([0.  , 0.75, 0.75])
    """
    beaten = (values[:, None] > values) + 0.5 * (values[:, None] == values)
    return (beaten.sum(axis=1) - 0.5) / (len(values) - 1)


def taken(score: np.ndarray, won: np.ndarray) -> float:
    """What the model of the largest score wins, the mean over those that tie; NaN is never taken."""
    if not np.isfinite(score).any():
        return float("nan")
    return float(won[score == np.nanmax(score)].mean())


def percentiles(pool: pd.DataFrame, names: Iterable[str]) -> np.ndarray:  # (n, rules), larger is better
    """Percentile ranks within the pool less 1/2; a missing one is in the middle."""
    signed = pd.DataFrame({name: pool[name] * DIRECTIONS[name] for name in names})
    return (signed.rank(pct=True) - 0.5).fillna(0.0).to_numpy()


def at_the_commonest_count(pool: pd.DataFrame) -> np.ndarray:
    """The ELBO, of models with the commonest number (two or more) of active latents."""
    active = pool["free.active"].where(pool["free.active"] >= 2)
    return pool["unsup.elbo"].where(active == active.mode().max()).to_numpy()


def single_rules(models: pd.DataFrame) -> dict[str, Callable[[pd.DataFrame], np.ndarray]]:
    rules = {
        name: (lambda pool, name=name: (pool[name] * DIRECTIONS[name]).to_numpy())
        for name in DIRECTIONS
        if name in models and models[name].notna().any()
    }
    return {**rules, "ELBO at the commonest number of active latents": at_the_commonest_count}


def by_labels(values: np.ndarray, won: np.ndarray) -> dict[str, float]:
    """What labels reach: one other metric chooses, all other metrics do, or all metrics (that judge as well)."""
    ranks = pd.DataFrame(values).rank(pct=True).to_numpy()
    n = values.shape[1]
    one = [taken(values[:, i], won[:, j]) for i in range(n) for j in range(n) if i != j]
    rest = [taken(np.delete(ranks, j, axis=1).mean(axis=1), won[:, j]) for j in range(n)]
    return {
        "labels: one other metric": float(np.mean(one)),
        "labels: the mean rank by all other metrics": float(np.mean(rest)),
        "the best possible: the mean rank by the judges themselves": taken(ranks.mean(axis=1), won.mean(axis=1)),
    }


def outcomes(models: pd.DataFrame, pool: str) -> pd.DataFrame:  # pools x rules
    """The success of each rule in each pool of a kind."""
    judges, rules, rows = metric_columns(models, "mean"), single_rules(models), []
    for _, part in models.groupby(POOLS[pool], sort=True):
        values = part[judges].to_numpy()
        won = wins(values)
        rows.append({name: taken(rule(part), won.mean(axis=1)) for name, rule in rules.items()})
        rows[-1] |= by_labels(values, won)
    return pd.DataFrame(rows)


def summary(found: pd.DataFrame) -> list[dict[str, Any]]:
    """The mean of each rule over pools with its interval, best first."""
    rows = [
        {"rule": label(name) if name in DIRECTIONS else name, "rate": found[name].mean(), "pools": found[name].count(),
         **dict(zip(("low", "high"), map(float, np.clip(of_mean(found[name].dropna()), 0, 1)), strict=True))}
        for name in found
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row["rate"])


def fitted(models: pd.DataFrame, splits: int = SPLITS) -> pd.DataFrame:
    """Tests of fitted rules, one row for each pool: the mean over the random halves in which it is one of the tests."""
    from sklearn.linear_model import Ridge

    judges, names = metric_columns(models, "mean"), [n for n in DIRECTIONS if n in models and models[n].notna().any()]
    pairs = [*((n,) for n in names), *combinations(names, 2)]
    apart = "table" if models["table"].nunique() > 1 else "data"
    cells = models.groupby("table")[["method", "strength"]]
    settings = {table: part.drop_duplicates().reset_index(drop=True) for table, part in cells}
    rows = []
    for split in range(splits):
        rng = np.random.default_rng(split)
        half: set[tuple[str, str, float]] = set()
        for table, every in settings.items():
            for method, part in every.groupby("method"):
                chosen = rng.permutation(part["strength"])[: len(part) // 2]
                half |= {(str(table), str(method), float(s)) for s in chosen}
        keys = zip(models["table"], models["method"], models["strength"], strict=True)
        first = np.array([(t, m, float(s)) in half for t, m, s in keys])
        seeds = rng.permutation(models["seed"].unique())
        early = models["seed"].isin(seeds[: (len(seeds) + 1) // 2]).to_numpy()
        for held in models[apart].unique():
            other = (models[apart] != held).to_numpy()
            train = [part for _, part in models[other & first & early].groupby(POOLS["settings"]) if len(part) > 2]
            test = [part for _, part in models[~other & ~first & ~early].groupby(POOLS["settings"]) if len(part) > 2]
            won = [wins(part[judges].to_numpy()).mean(axis=1) for part in train]
            seen = [percentiles(part, names) for part in train]
            columns = {pair: [names.index(n) for n in pair] for pair in pairs}
            rates = {p: np.mean([taken(x[:, c].mean(axis=1), w) for x, w in zip(seen, won, strict=True)])
                     for p, c in columns.items()}  # fmt: skip
            one = max((p for p in pairs if len(p) == 1), key=lambda p: rates[p])
            two = max((p for p in pairs if len(p) == 2), key=lambda p: rates[p])
            x, y = np.vstack(seen), np.concatenate(won)
            ridge = Ridge(3.0).fit(np.hstack([x, x**2]), y)
            for part in test:
                values = part[judges].to_numpy()
                each, now = wins(values), percentiles(part, names)
                mean = each.mean(axis=1)
                rows.append({
                    "unit": f"{part['table'].iloc[0]} {part['data'].iloc[0]} {part['seed'].iloc[0]}",
                    "fitted: the best single rule": taken(now[:, columns[one]].mean(axis=1), mean),
                    "fitted: the best mean of two rules": taken(now[:, columns[two]].mean(axis=1), mean),
                    "fitted: ridge regression on all rules and their squares":
                        taken(ridge.predict(np.hstack([now, now**2])), mean),
                    **{n: taken((part[n] * DIRECTIONS[n]).to_numpy(), mean) for n in SHOWN if n in names},
                    **by_labels(values, each),
                })  # fmt: skip
    return pd.DataFrame(rows).groupby("unit").mean()


def text(title: str, rows: list[dict[str, Any]]) -> str:
    """A table for docs/choose.md."""
    lines = [f"{title}\n", "| rule | success | 95 % | pools |", "| --- | ---: | --- | ---: |"]
    for r in rows:
        lines.append(f"| {r['rule']} | {100 * r['rate']:.0f} % | {100 * r['low']:.0f} to {100 * r['high']:.0f} | "
                     f"{r['pools']} |")  # fmt: skip
    return "\n".join(lines) + "\n"


def run(out: Path | None = None, **_: Any) -> dict[str, Any]:
    """All tables; `out` is a folder of other studies' tables."""
    models = tables(out)
    found = {f"among the {pool}": summary(outcomes(models, pool)) for pool in POOLS}
    found["on settings, seeds and data that no rule was fitted on"] = summary(fitted(models))
    return {
        "ratios": {},
        "how": f"{len(models):,} models of {', '.join(models['data'].unique())}; chance 50 %",
        "models": len(models),
        "text": "\n".join(text(title, rows) for title, rows in found.items()),
        **found,
    }
