"""The slides' five key results, each with a study's number, and the question they end on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from unseam.study.analyse import ANALYSES, agreement, overlap
from unseam.study.analyse.columns import METHOD_TITLES, label
from unseam.study.analyse.selection import LABELS
from unseam.study.analyse.total_correlation import ODD_METHOD
from unseam.study.analyse.transfer import PUBLISHED

_Tables = Mapping[str, pd.DataFrame]
_GEOMETRY = ("free.rank", "free.dto-over-chance", "free.entanglement-cost")  # the first that is there answers
POOLS = {
    "restarts": "Among seeds of one setting",
    "settings": "Among methods and strengths",
}


class Key(NamedTuple):
    """One key result: the question, what the slides say, what these models say."""

    question: str
    slides: str
    here: str


def needs(table: str) -> str:
    return f"Not computed: it needs {ANALYSES[table][1]}."


def percent(x: float) -> str:
    """
    >>> percent(0.256), percent(0.0004)
    ('26 %', '0 %')
    """
    return f"{100 * x:.0f} %"


def between(low: float, high: float) -> str:
    """An interval of shares, where there is one."""
    return f" ({100 * low:.0f} to {100 * high:.0f})" if pd.notna(low) and pd.notna(high) else " (no interval)"


def _codes(tables: _Tables) -> str:
    found = tables["total-correlation"]
    regular = found[found["method"] != ODD_METHOD]
    if regular.empty:
        return needs("total-correlation")
    falls, rises = regular[regular["code"] == "sampled"], regular[regular["code"] == "mean"]
    sentences = [f"the sampled code's falls in {(falls['high'] < 0).sum()} and rises in {(falls['low'] > 0).sum()} of "
            f"{len(falls)} pairs of data set and method", f"the mean code's rises in {(rises['low'] > 0).sum()} and "
            f"falls in {(rises['high'] < 0).sum()} of {len(rises)}"]  # fmt: skip
    return f"Over strength, {sentences[0]}; {sentences[1]} (counted where the 95 % interval excludes 0)."


def metrics_agree(tables: _Tables) -> str:
    found = tables["agreement"]
    if found.empty:
        return needs("agreement")
    kinds = found.assign(kind=agreement.kinds(found))
    pairs = kinds[kinds["kind"] == "strong"].groupby(["a", "b"], sort=False)["rho"].mean().reset_index()
    sentences = [f"{label(r['a'])} and {label(r['b'])} {r['rho']:.2f}" for r in pairs.to_dict("records")]
    means = kinds.groupby("kind")["rho"].mean()
    sentences += [f"other pairs without Modularity {means['mild']:.2f}"] if "mild" in means else []
    sentences += [f"pairs with Modularity {means['apart']:.2f}"] if "apart" in means else []
    many = found["data"].nunique()
    return f"Mean rank correlation over {many} data set{'s' * (many > 1)}: {', '.join(sentences)}."


def what_matters(tables: _Tables) -> str:
    found = tables["variance"]
    sentences = []
    for by, part in found.groupby("by", sort=False):
        mean = part[["explained", "adjusted", "null"]].mean()
        beside = f"adjusted {percent(mean['adjusted'])}; shuffled scores {percent(mean['null'])}"
        sentences.append(f"{by} explains {percent(mean['explained'])} of the variance ({beside})")
    strengths = tables["strengths"]
    if len(strengths):
        beside = f"shuffled scores {percent(strengths['null'].mean())}"
        rate = percent(strengths["p"].mean())
        sentences.append(f"a run with a method's worst strength beats one with its best in {rate} ({beside})")
    methods = tables["methods"]
    if len(methods):
        shared = overlap.mutual(methods["p"]).mean()
        sentences.append(f"two methods overlap by {percent(shared)} (100: each as likely to win)")
    return f"Mean over metrics and data sets: {'; '.join(sentences)}." if sentences else needs("variance")


def recipes(tables: _Tables) -> str:
    found = tables["transfer"]
    if found.empty:
        return needs("transfer")
    sentences = [f"{r['kind']} {percent(r['rate'])}{between(r['low'], r['high'])}" for r in found.to_dict("records")]
    return f"The best setting of one seed beats another setting at another seed: {', '.join(sentences)}."


def useful(tables: _Tables) -> str:
    accuracy, saving = tables["downstream"], tables["efficiency"]
    if accuracy.empty:
        return needs("downstream")
    text = (
        f"Metrics and accuracy: mean rank correlation {accuracy['rho'].mean():.2f} over {len(accuracy)} combinations."
    )
    if saving.empty:
        return f"{text} Efficiency: {needs('efficiency').lower()}"
    up, down = (saving["low"] > 0).sum(), (saving["high"] < 0).sum()
    return (
        f"{text} Metrics and efficiency: {saving['rho'].mean():.2f}; of {len(saving)} combinations of metric, "
        f"predictor and data set {up} are above 0 and {down} below."
    )


def key_results(tables: _Tables) -> list[Key]:
    """The five, in the slides' order."""
    rates = ", ".join(f"{kind} {rate} %" for kind, rate in PUBLISHED.items())
    return [
        Key("Do the methods make codes uncorrelated?",
            "The sampled code's total correlation falls with strength, the mean code's rises (Color-dSprites).",
            _codes(tables)),
        Key("Do the metrics agree?",
            "All but Modularity mildly; BetaVAE with FactorVAE and MIG with DCI strongly (Noisy-dSprites).",
            metrics_agree(tables)),
        Key("What matters: method, strength or seed?",
            "Objective 37 %, objective x strength 59 % of the variance (mean of two tables, 7 data sets); scores of "
            "methods overlap heavily.", what_matters(tables)),
        Key("Is there a recipe for choosing?", f"Better than a random model: {rates}.", recipes(tables)),
        Key("Are higher scores useful?",
            "Metrics go along with accuracy; they do not reliably save labels.", useful(tables)),
    ]  # fmt: skip


def answer(tables: _Tables) -> list[str]:
    """Does geometry choose better than chance? One sentence for each kind of pool, by one selector named beforehand."""
    found = tables["selection"]
    return [text for pool in POOLS if (text := _answer(found[found["pool"] == pool], pool))]


def _answer(found: pd.DataFrame, pool: str) -> str:
    rows = {str(row["selector"]): row for row in found.to_dict("records")}
    name = next((name for name in _GEOMETRY if name in rows), None)
    if name is None:
        return ""
    row = rows[name]
    rate = f"{percent(row['rate'])}{between(row['low'], row['high'])} of comparisons in {int(row['pools'])} pools"
    text = f"{POOLS[pool]}: {_verdict(row['low'], row['high'])}. The model chosen by {label(name)} beats another one "
    text += f"in {rate} (chance: 50 %)."
    if LABELS in rows:
        text += f" A choice by another, labelled metric: {percent(rows[LABELS]['rate'])} ({against_labels(row)})."
    return text


def _verdict(low: float, high: float) -> str:
    """
    >>> _verdict(0.51, 0.6), _verdict(0.4, 0.6), _verdict(0.3, 0.4), _verdict(float("nan"), float("nan"))
    ('yes', 'not shown', 'no, worse', 'too few pools to tell')
    """
    if pd.isna(low) or pd.isna(high):
        return "too few pools to tell"
    return "yes" if low > 0.5 else "no, worse" if high < 0.5 else "not shown"


def against_labels(row: Mapping[Any, Any]) -> str:
    """Below 0: labels choose better.

    >>> against_labels({"behind": -0.01, "behind_low": -0.21, "behind_high": 0.2})
    'difference -1 points, -21 to +20'
    """
    gap, low, high = (100 * row[name] for name in ("behind", "behind_low", "behind_high"))
    if pd.isna(low):
        return "no interval of the difference"
    return f"difference {gap:+.0f} points, {low:+.0f} to {high:+.0f}"


def models_compared(models: pd.DataFrame, frame: pd.DataFrame) -> str:
    """What was compared, on how many models."""
    known = [METHOD_TITLES.get(str(name), str(name)) for name in models["method"].unique()]
    diverged = len(frame) - len(models)
    return (
        f"{len(models):,} finished models{f' ({diverged} other rows are left out)' if diverged else ''}: "
        f"{', '.join(map(str, models['data'].unique()))}; {', '.join(known)}; "
        f"{models.groupby(['method', 'strength']).ngroups} settings, up to {models['seed'].nunique()} seeds each."
    )
