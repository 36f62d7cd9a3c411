"""Which factors that `find` graded *found* are right, how well factors are matched, and how well rivals do.

A factor graded *found* is right if it passes one of two rules with a true factor, one to one:
codes     |rank correlation| of its codes with the true factor is above 0.9 times that of the best linear guess of the
          factor from the columns (1 for curved tables): what noise hides is not held against an axis. And what the
          codes have of the true factors is one of them: their projection on the true factors correlates above 0.9
          with it (linear tables; without this the sum of factors that noise hides would pass);
loadings  Tucker's congruence of its loadings with the true factor's, in standardised columns, is above 0.95. Only
          where the structure is simple: dense columns of one sign are all alike.
In a table where no axis can be known every *found* is wrong. A second factor that matches the same true factor is
wrong. The match (MCC) is the mean matched |rank correlation| over the true factors; a factor that is missed counts 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from _calibration_kinds import Simulated
from scipy.optimize import linear_sum_assignment
from scipy.stats import beta

from unseam.stats import matched, rank_correlations

Array = np.ndarray
RANK, CONGRUENCE = 0.9, 0.95


def filled(table: pd.DataFrame) -> tuple[Array, list[str]]:
    """Numeric columns with missing cells at the column's mean, words as indicators of all but one class; the names."""
    numeric = pd.get_dummies(table, drop_first=True).astype(float)
    numeric = numeric.fillna(numeric.mean())
    numeric = numeric.loc[:, numeric.std() > 0]
    return numeric.to_numpy(), list(numeric.columns)


def standardised(x: Array) -> Array:
    return (x - x.mean(0)) / x.std(0)


def congruences(a: Array, b: Array) -> Array:  # (n, A), (n, B) -> (A, B)
    """Tucker's congruence, without its sign.

    >>> congruences(np.array([[1.0], [2.0]]), np.array([[-2.0, 2.0], [-4.0, -1.0]])).round(2)
    array([[1., 0.]])
    """
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    return np.abs(a.T @ b) / np.where(scale > 0, scale, np.inf)


def mcc(codes: Array, factors: Array) -> float:  # (N, k), (N, F)
    if not codes.shape[1]:
        return 0.0
    return float(matched(np.abs(rank_correlations(factors, codes))).values.mean())


def best_guesses(made: Simulated) -> Array:  # (F,)
    """|Rank correlation| of each true factor with its best linear guess; 1 where the best guess is not linear."""
    assert made.factors is not None
    if not made.linear:
        return np.ones(made.factors.shape[1])
    x, z = standardised(filled(made.table)[0]), standardised(made.factors)
    guess = x @ np.linalg.lstsq(x, z, rcond=None)[0]
    return np.diag(np.abs(rank_correlations(guess, z)))


def purities(codes: Array, factors: Array) -> Array:  # (N, k), (N, F) -> (k, F)
    """|Correlation| of each true factor with the projection of the codes on all true factors."""
    u, z = standardised(codes), standardised(factors)
    projected = z @ np.linalg.lstsq(z, u, rcond=None)[0]
    return np.abs(standardised(projected).T @ z) / len(z)


def own_loadings(findings: Any, made: Simulated) -> Array:  # (columns, k)
    """The loadings of the findings for the columns of the table; correlations with codes where there are none."""
    loadings = getattr(findings, "loadings", None)
    if loadings is None:
        x, names = filled(made.table)
        codes = np.asarray(findings.codes, float)
        together = np.corrcoef(standardised(x).T, standardised(codes).T)[: len(names), len(names) :]
        loadings = pd.DataFrame(together, index=names)
    names = [name for name in made.table.columns if pd.api.types.is_numeric_dtype(made.table[name])]
    return loadings.reindex(names).fillna(0.0).to_numpy()


def judge(findings: Any, made: Simulated, answer: str) -> dict[str, Any]:
    """What was found, and for each factor graded *found* whether it is right and by which rule."""
    document = findings.to_json()
    grades = [factor["grade"] for factor in document["factors"]]
    row: dict[str, Any] = {
        "count": document["count"], "true": made.count, "numbers": document.get("numbers"), "grades": grades,
        "clues": [factor.get("clue", factor.get("axis_by")) for factor in document["factors"]],
        "model": document["model"], "settled": document["settled"],
    }  # fmt: skip
    codes = np.asarray(findings.codes, float).reshape(len(made.table), -1)
    if made.factors is not None:
        row["mcc"] = round(mcc(codes, made.factors), 4)
    chosen = [i for i, grade in enumerate(grades) if grade == "found"]
    rules: list[str | None] = [None] * len(chosen)
    if made.factors is not None and chosen:
        by_codes = np.abs(rank_correlations(codes[:, chosen], made.factors))
        bars = RANK * best_guesses(made)
        passes = by_codes > bars
        if made.linear:
            passes &= purities(codes[:, chosen], made.factors) > RANK
        row["rank"] = by_codes.max(1).round(3).tolist()
        row["bar"] = bars[by_codes.argmax(1)].round(3).tolist()
        by_loadings = np.zeros_like(passes)
        if made.loadings is not None:
            together = congruences(own_loadings(findings, made)[:, chosen], made.loadings)
            row["congruence"] = together.max(1).round(3).tolist()
            by_loadings = together > CONGRUENCE
        if answer != "none":
            at, of = linear_sum_assignment(-((passes | by_loadings) + 0.001 * by_codes))
            for i, j in zip(at, of, strict=True):
                rules[i] = "codes" if passes[i, j] else "loadings" if by_loadings[i, j] else None
    row["rules"], row["wrong"] = rules, rules.count(None)
    if answer == "known" and made.factors is not None:
        row["knowable"] = made.factors.shape[1] if made.knowable is None else int(made.knowable.sum())
        row["right"] = len(rules) - row["wrong"]
    return row


# --- rivals, told the true number of factors ------------------------------------------------------------------------


def compressed(x: Array) -> Array:  # (N, n) -> (2n, n)
    """Rows with the mean and the covariance of x: all that a Gaussian likelihood sees of a table, in 2n rows."""
    mean, n = x.mean(0), x.shape[1]
    root = np.linalg.qr(x - mean, mode="r") * np.sqrt(n / len(x))
    return mean + np.concatenate([root, -root])


def factor_codes(x: Array, k: int, rotation: str | None) -> Array:
    """scikit-learn's maximum likelihood, converged, in its own axes, turned by varimax, or on by promax."""
    from sklearn.decomposition import FactorAnalysis

    turned = None if rotation is None or k == 1 else "varimax"
    model = FactorAnalysis(k, tol=1e-6, max_iter=3000, svd_method="lapack", rotation=turned).fit(compressed(x))
    if rotation != "promax" or k == 1:
        return model.transform(x)
    pattern, together = promax(model.components_.T)
    covariance = pattern @ together @ pattern.T + np.diag(model.noise_variance_)
    return (x - x.mean(0)) @ np.linalg.solve(covariance, pattern @ together)


def promax(loadings: Array, power: int = 4) -> tuple[Array, Array]:  # varimax loadings (n, k) -> pattern, correlations
    """Hendrickson and White (1964): an oblique rotation towards a power of the varimax loadings."""
    target = np.sign(loadings) * np.abs(loadings) ** power
    turn = np.linalg.lstsq(loadings, target, rcond=None)[0]
    turn *= np.sqrt(np.diag(np.linalg.inv(turn.T @ turn)))
    inverse = np.linalg.inv(turn)
    return loadings @ turn, inverse @ inverse.T


def rivals(made: Simulated) -> dict[str, float]:
    """The match of each rival with the true factors."""
    from sklearn.decomposition import NMF, PCA, FastICA

    assert made.factors is not None
    k = made.factors.shape[1]
    raw, _ = filled(made.table)
    whole = (raw == np.round(raw)).all()
    counts = raw.min() >= 0 and whole and raw.max() > 10
    x = standardised(np.log1p(raw) if counts else raw)
    told: dict[str, Callable[[], Array]] = {
        "PCA": lambda: PCA(k, random_state=0).fit_transform(x),
        "FA": lambda: factor_codes(x, k, None),
        "FA varimax": lambda: factor_codes(x, k, "varimax"),
        "FA promax": lambda: factor_codes(x, k, "promax"),
        "FastICA": lambda: FastICA(k, whiten="unit-variance", random_state=0, max_iter=500).fit_transform(x),
    }
    if raw.min() >= 0:
        told["NMF"] = lambda: NMF(k, init="nndsvda", max_iter=500, random_state=0).fit_transform(raw / raw.std(0))
    return {name: round(mcc(make(), made.factors), 4) for name, make in told.items()}


# --- summary --------------------------------------------------------------------------------------------------------


def upper_bound(events: int, tables: int, level: float = 0.95) -> float:
    """The one-sided Clopper-Pearson bound: rates above it would give so few events in less than 5 % of cases.

    >>> round(upper_bound(0, 200), 4), round(upper_bound(0, 20), 3), upper_bound(3, 3)
    (0.0149, 0.139, 1.0)
    """
    return 1.0 if events >= tables else float(beta.ppf(level, events + 1, tables - events))


def summary(kind: str, answer: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One kind: how often a *found* is wrong, power, how often the count is right, the match and the best rival's."""
    tables = len(rows)
    wrong = sum(row["wrong"] > 0 for row in rows)
    found = sum(len(row["rules"]) for row in rows)
    counted = [row for row in rows if row["true"] is not None]
    out: dict[str, Any] = {
        "kind": kind, "answer": answer, "tables": tables, "wrong_tables": wrong, "wrong_share": wrong / tables,
        "upper_bound": upper_bound(wrong, tables), "found": found,
        "found_right": found - sum(row["wrong"] for row in rows),
        "count_right": sum(row["count"] == row["true"] for row in counted) / len(counted) if counted else None,
        "cpu_seconds": float(np.mean([row["cpu"] for row in rows])),
        "wrong_seeds": [row["table"] for row in rows if row["wrong"]],
        "miscounted_seeds": [row["table"] for row in counted if row["count"] != row["true"]],
    }  # fmt: skip
    if answer == "known":
        knowable = sum(row["knowable"] for row in rows)
        out["power"] = sum(row["right"] for row in rows) / knowable if knowable else None
    scored = [row for row in rows if row.get("rivals")]
    if scored and answer == "known":
        names = [n for n in scored[0]["rivals"] if all(n in row["rivals"] for row in scored)]
        means = {name: float(np.mean([row["rivals"][name] for row in scored])) for name in names}
        best = max(means, key=means.__getitem__)
        ours = float(np.mean([row["mcc"] for row in scored]))
        out |= {"mcc": ours, "rivals": means, "best_rival": best, "best_rival_mcc": means[best]}
        out["difference"] = ours - means[best]
        out["behind_seeds"] = [row["table"] for row in scored if row["mcc"] < row["rivals"][best] - 0.05]
    return out
