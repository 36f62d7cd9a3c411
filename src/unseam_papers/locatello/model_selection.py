"""L6: choosing models: scores without labels, transfer of settings, and our label-free selectors (Locatello 2019)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from unseam.study.analyse.agreement import ODD_METRIC
from unseam.study.analyse.columns import DIRECTIONS, label, metric_columns
from unseam.study.analyse.selection import LABELS, scores_against_metrics, selection, selection_outcomes
from unseam.study.analyse.transfer import PUBLISHED, TRANSFERS, transfer
from unseam_papers.frame.draw import BLUE, GREY, ORANGE, Figure, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import Verdict, VerdictRow, VerdictRows, join_parts
from unseam_papers.frame.verdicts import because, beyond, unrun
from unseam_papers.locatello import models as study
from unseam_papers.locatello.models import STANDS_IN, STUDY_HOURS, Settings, above, models_text

ID, TITLE = "L6", "Choosing a model: without labels, and by what was good elsewhere"
CLAIM = "Scores without labels show no clear pattern; good settings transfer between seeds, hardly between data sets."
SOURCE = "Locatello 2019 (slides: Key experimental results 4)"
PAPER, SCALES = study.PAPER, study.SCALES
_SAME, _DATA, BOTH = "same metric, same data", "same metric, other data", "other metric, other data"
CHOICES = (
    *study.CHOICES,
    "Transfer: the best setting (method, strength) of the models of one seed, by one metric on one data set; settings "
    "that tie for best share the choice. Its model of another seed is compared with that seed's model of every other "
    "setting; a tie counts half. The paper draws 10,000 times at random; ours is the exact mean over all combinations.",
    "'No clear pattern': a clear one would be a score whose rank correlation has one sign, with a 95 % interval "
    "without 0, for every metric but Modularity on every data set. Where none has it, nothing is shown: not to find a "
    "pattern is not to show that there is none.",
    "Choosing without labels (beyond the paper): in a pool (the seeds of one setting; or the settings of one seed) a "
    "selector takes one model; it is judged by how many others of the pool it beats, by each metric. Chance: 50 %. "
    "Labels: choosing by one metric, judged by another. Intervals are Student's over pools.",
)


def _rate(kind: str) -> Callable[[pd.DataFrame], float]:
    def statistic(frame: pd.DataFrame) -> float:
        found = transfer(frame).set_index("kind")["rate"]
        return 100 * float(found.get(kind, float("nan")))

    return statistic


def _behind(better: str, worse: str) -> Callable[[pd.DataFrame], float]:
    return lambda frame: _rate(better)(frame) - _rate(worse)(frame)


def patterns(frame: pd.DataFrame) -> list[str]:
    """The unsupervised scores whose correlation has one sign, shown, with every metric but Modularity everywhere."""
    found = scores_against_metrics(frame)
    found = found[~found["b"].str.endswith(ODD_METRIC)]
    wanted = (len(metric_columns(frame)) - (f"mean.{ODD_METRIC}" in metric_columns(frame))) * frame["data"].nunique()
    return [
        str(name)
        for name, part in found[found["a"].str.startswith("unsup.")].groupby("a", sort=False)
        if len(part) == wanted and ((part["low"] > 0).all() or (part["high"] < 0).all())
    ]


def _compute(settings: Settings, work: Work) -> Numbers:
    frame = study.trained_models(settings, work)
    tested = {kind: _rate(kind) for kind in TRANSFERS}
    tested |= {"other data behind": _behind(_SAME, _DATA), "other metric behind": _behind(_DATA, BOTH)}
    chosen = selection(selection_outcomes(frame)).astype(object)
    return {
        "about": study.about(frame),
        "patterns": patterns(frame),
        "selection": chosen.where(chosen.notna(), None).to_dict("records"),
        "tested": {key: study.without_each(frame, statistic) for key, statistic in tested.items()},
    }


def _judge(numbers: Numbers) -> list[VerdictRow]:
    tested, rows = numbers["tested"], []
    for kind, published in PUBLISHED.items():
        found = above(kind, f"{kind}: the chosen setting wins", f"{published} %", tested[kind], 50, form=".1f")
        rows.append(unrun(f"{kind}, number", found.what, found.published, STUDY_HOURS, found.ours))
        rows.append(above(kind, f"{kind}: more often than chance", f"{published} % against 50 %", tested[kind], 50,
                          form=".1f"))  # fmt: skip
    rows += [
        above("other data behind", "other data behind the same data, points", "80.7 % against 59.3 %",
              tested["other data behind"], form=".1f"),
        above("other metric behind", "other data and metric behind other data, points", "59.3 % against 54.9 %",
              tested["other metric behind"], form=".1f"),
        pattern(numbers["patterns"]),
    ]  # fmt: skip
    return [*rows, *map(chosen, numbers["selection"])]


def pattern(found: list[str]) -> VerdictRow:
    """No clear pattern: refuted by one, never shown by none."""
    ours = ", ".join(label(name) for name in found) or "none"
    rule = "one sign, 95 % interval without 0, for every metric but Modularity on every data set"
    verdict: Verdict = "differs" if found else "not comparable"
    row = VerdictRow("patterns", "unsupervised scores with a clear pattern", "no clear pattern emerges", ours,
               "published ordering", verdict, rule=rule)  # fmt: skip
    if found:
        return because(row, "stand-in", STANDS_IN)
    return because(row, "cannot be asked", "that none is found in these models does not show that there is none")


def chosen(row: Mapping[str, float]) -> VerdictRow:
    """One selector in one kind of pool; ours (geometry) hold when their interval lies above chance."""
    name, low, high = str(row["selector"]), row["low"], row["high"]
    ours = f"{100 * row['rate']:.0f} %" + ("" if low is None else f" ({100 * low:.0f} to {100 * high:.0f})")
    gap = "" if row["behind"] is None else f"{100 * row['behind']:+.0f} points against labels"
    gap += "" if row["behind_low"] is None else f" ({100 * row['behind_low']:+.0f} to {100 * row['behind_high']:+.0f})"
    spoken = "labels (another metric)" if name == LABELS else label(name)
    holds = bool(low > 0.5) if name.startswith("free.") and low is not None else None
    rule = join_parts(
        "holds when the 95 % interval is above 50 %" if holds is not None else "", f"{row['pools']} pools"
    )
    return beyond(f"{row['pool']} {name}", f"chosen among {row['pool']} by {spoken}", ours, holds, rule, gap)


def _draw(numbers: Numbers) -> Figure:
    """Left: transfer, published as diamonds. Right: how often what a selector chose wins."""
    fig, (left, *right) = panels(11, 4.2, columns=3, width_ratios=(1, 1, 1))
    for i, kind in enumerate(reversed(TRANSFERS)):
        found = numbers["tested"][kind]
        if found["value"] is not None:
            half = study.t_and_half(found)[1] if found["without"] else 0.0
            left.errorbar(found["value"], i, xerr=half, fmt="o", color=ORANGE, capsize=2)
        left.plot(PUBLISHED.get(kind), i, "D", mfc="none", color=GREY) if kind in PUBLISHED else None
    left.set_yticks(range(len(TRANSFERS)), list(reversed(TRANSFERS)))
    left.set(xlabel="chosen setting wins, %; diamonds: published", title="transfer")
    names = [name for name in (*DIRECTIONS, LABELS) if any(r["selector"] == name for r in numbers["selection"])][::-1]
    for ax, pool in zip(right, ("restarts", "settings"), strict=True):
        for row in (r for r in numbers["selection"] if r["pool"] == pool):
            colour = BLUE if row["selector"] == LABELS else ORANGE if row["selector"].startswith("free.") else GREY
            ends = [100 * (row["rate"] if row[end] is None else row[end]) for end in ("low", "high")]
            place = names.index(row["selector"])
            ax.plot(ends, [place, place], color=colour)
            ax.plot(100 * row["rate"], place, "o", color=colour, ms=4)
        spoken = ["labels" if n == LABELS else label(n) for n in names]
        ax.set_yticks(range(len(names)), spoken if pool == "restarts" else [])
        ax.set(title=f"choosing among {pool}", xlabel="beats a random other model, %")
    for ax in (left, *right):
        ax.axvline(50, color=GREY, ls="--", lw=0.8)
    return fig


def _conclude(numbers: Numbers, rows: VerdictRows) -> str:
    ours = [r for r in rows.values() if r.key.split(" ")[-1].startswith("free.")]
    winners = [f"{r.what.removeprefix('chosen ')} {r.ours}" for r in ours if r.verdict == "holds"]
    best = {pool: rows[f"{pool} {LABELS}"].ours for pool in ("restarts", "settings") if f"{pool} {LABELS}" in rows}
    labels = ", ".join(f"{pool} {rate}" for pool, rate in best.items())
    shown = f": {'; '.join(winners)}" if winners else ""
    return (
        f"{models_text(numbers['about'])}. The best setting of one seed beats another setting at another seed in "
        f"{rows[_SAME].ours} % on the same data, {rows[_DATA].ours} % on other data and {rows[BOTH].ours} % on other "
        f"data by another metric. Does geometry choose better than chance? Of {len(ours)} label-free selectors, among "
        f"restarts or settings, {len(winners)} are shown to{shown}. Labels reach "
        f"{labels or 'nothing that can be said'}. Intervals are of one selector each, not corrected for their number."
    )


compute, judge, draw, conclude = study.on_both_studies(_compute, _judge, _draw, _conclude)
