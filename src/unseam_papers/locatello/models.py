"""The models that L3 to L8 look at: a study's tidy table, from a finished one or trained for the purpose; and how an
ordering is tested on them.

A statistic of all models is computed again without each seed in turn (the jackknife); a one-sided t test of these says
whether it lies above a limit. The models of a seed are taken as one draw; data sets, methods and strengths are as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from unseam.errors import BadInput
from unseam.study import load
from unseam.study.analyse.columns import METHOD_TITLES, METRIC_TITLES
from unseam.study.analyse.columns import finished_models as finished
from unseam_papers.frame.draw import BLUE, DARK, GREEN, GREY, ORANGE, RED, Figure
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.reasons import few_of_t
from unseam_papers.frame.rows import SECOND_KEY, VerdictRow, VerdictRows, as_kind
from unseam_papers.frame.verdicts import LEVEL, because, shown

Compute = Callable[[Any, Work], Numbers]
Judge = Callable[[Numbers], Sequence[VerdictRow]]
Draw = Callable[[Numbers], Figure]
Conclude = Callable[[Numbers, VerdictRows], str]
COLOURS = dict(zip(METHOD_TITLES, (BLUE, ORANGE, GREEN, RED, DARK, GREY), strict=True))
STANDS_FOR = {"sprites": "dSprites", "sprites-colour": "Color-dSprites", "sprites-noisy": "Noisy-dSprites"}
STANDS_IN = "small models of small drawings stand in for the 12,600 published ones; on these the opposite is shown"
STUDY_HOURS = "other data, networks and training; the 12,600 published models take about 7 core-years here"
_FEWEST = 3  # seeds that a test needs
_SECOND = "second study"  # its numbers, beside those of the first
# a study of minutes on two cores: 144 models, a part of the preset `hour`
_DATA, SEEDS, _TOGETHER, _STEPS = ("sprites", "sprites-noisy"), (0, 1, 2, 3), 4, 2000
_EVALUATION: dict[str, Any] = {"rows": 2000, "test": 1000, "labels": (100, 2000), "tree_labels": (100, 2000),
                              "points": 100, "kept": 500}  # fmt: skip
CHOICES = (
    "The data: seven sets at 64 x 64 in the paper; `unseam data fetch` can get them, the machine that made these rows "
    "could not. Ours: sprites that we draw, 16 x 16, plain, coloured and on noise.",
    "Networks, steps and strengths: convolutional, 300,000 steps (the paper; the slides print none). Ours: small MLPs, "
    "thousands of steps, and strengths for images whose loss is tens of nats.",
    "A second study: 600 models that learn their factors (`unseam study evening`: sprites of unequal reach and rooms, "
    "ten seeds), because the first one's are weak (mean MIG 0.07). Its preset was chosen by MIG alone, on seeds of its "
    "own. It stands beside the first and is not counted; that was settled before it was looked at.",
    "How an ordering is tested: the statistic without each seed in turn (jackknife), one-sided t test at 5 %. Data "
    "sets, methods and strengths are taken as they are.",
)


@dataclass(frozen=True)
class Settings:
    grid: str  # what is trained: minutes, a preset of `unseam study`; random: no models, for tests
    table: str = ""  # a finished study that comes with the package, taken instead
    second: str = ""  # another one, shown beside it


SCALES = {
    "tiny": Settings("random"),
    "quick": Settings("minutes"),
    "large": Settings("minutes", table="sprites16.parquet", second="evening.parquet"),
    "paper": Settings("locatello"),
}
PAPER = "the published grid of 12,600 models, where its data sets and machines are"


def trained_models(settings: Settings, work: Work) -> pd.DataFrame:
    """The finished models. The one place where an exhibit meets the engine."""
    if settings.table:
        return finished(load(packaged_study(settings.table)).table())
    if settings.grid == "random":
        return finished(random_models())
    from unseam.study.engine import study  # type: ignore[import-not-found,unused-ignore]

    out = work.runs / f"study-{settings.grid}"
    study(minutes() if settings.grid == "minutes" else settings.grid, out)
    return finished(load(out).table())


def on_both_studies(
    compute: Compute, judge: Judge, draw: Draw, conclude: Conclude
) -> tuple[Compute, Judge, Draw, Conclude]:
    """The four functions of an exhibit, which then show a second study beside the first; its rows are not counted."""

    def compute_both(settings: Any, work: Work) -> Numbers:
        first = compute(settings, work)
        if not settings.second:
            return first
        return {**first, _SECOND: compute(replace(settings, table=settings.second, second=""), work)}

    def judge_both(numbers: Numbers) -> list[VerdictRow]:
        more = [row for row in judge(numbers[_SECOND]) if row.counted] if _SECOND in numbers else []
        again = [replace(row, key=f"{SECOND_KEY}{row.key}", what=f"{_SECOND}: {row.what}") for row in more]
        return [*judge(_first(numbers)), *(as_kind(row, "beyond the paper") for row in again)]

    def draw_first(numbers: Numbers) -> Figure:
        return draw(_first(numbers))

    def conclude_both(numbers: Numbers, rows: VerdictRows) -> str:
        text = conclude(_first(numbers), rows)
        if _SECOND not in numbers:
            return text
        again = {row.key: row for row in judge(numbers[_SECOND])}
        return f"{text} Second study: {conclude(numbers[_SECOND], again)}"

    return compute_both, judge_both, draw_first, conclude_both


def _first(numbers: Numbers) -> Numbers:
    return {key: value for key, value in numbers.items() if key != _SECOND}


def packaged_study(name: str) -> Path:
    """The table of a study that comes with the package, or lies in the checkout; never one of the working folder."""
    here = Path(__file__).resolve()
    for folder in (here.parents[1] / "studies", here.parents[3] / "studies"):
        if (folder / name).is_file():
            return folder / name
    raise BadInput(f"study={name!r} did not come with this installation of unseam; install it again")


def minutes() -> Any:
    """Every second strength of the preset `hour`, on two of its data sets, trained and scored more shortly."""
    from unseam.study.grid import load_grid  # type: ignore[import-not-found,unused-ignore]

    hour = load_grid("hour")
    return replace(
        hour,
        name="minutes",
        data={name: hour.data[name] for name in _DATA},
        methods=tuple(replace(method, strengths=method.strengths[::2]) for method in hour.methods),
        seeds=SEEDS,
        together=_TOGETHER,
        settings={**hour.settings, "steps": _STEPS},
        evaluation=replace(hour.evaluation, **_EVALUATION),
    )


def random_models(seeds: int = 3) -> pd.DataFrame:
    """Numbers without meaning in the form of a study: what tests of the exhibits run on."""
    generator = np.random.default_rng(0)
    cells = [
        (d, m, s, n) for d in ("sprites", "sprites-noisy") for m in METHOD_TITLES for s in (1, 2) for n in range(seeds)
    ]
    frame = pd.DataFrame(cells, columns=["data", "method", "strength", "seed"]).assign(status="finished")
    names = [f"mean.{metric}" for metric in METRIC_TITLES] + [f"downstream.trees.{n}" for n in (100, 10_000)]
    names += ["unsup.elbo", "unsup.kl", "unsup.tc-mean", "unsup.tc-sampled", "free.dto-over-chance", "free.rank"]
    return frame.assign(**{name: generator.uniform(0.2, 0.9, len(frame)) for name in names})


def about(frame: pd.DataFrame) -> dict[str, Any]:
    """What a reader must know of the models."""
    steps = int(frame["steps"].max()) if "steps" in frame else 0
    return {"models": len(frame), "data": list(frame["data"].unique()), "seeds": frame["seed"].nunique(),
            "settings": frame.groupby(["method", "strength"]).ngroups, "steps": steps}  # fmt: skip


def models_text(about: Mapping[str, Any]) -> str:
    """
    >>> models_text({"models": 8, "data": ["sprites"], "seeds": 2, "settings": 4, "steps": 100})
    '8 models (sprites; 4 settings, 2 seeds, 100 steps)'
    """
    named = f"{', '.join(about['data'])}; {about['settings']} settings, {about['seeds']} seeds, {about['steps']} steps"
    return f"{about['models']} models ({named})"


def without_each(frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> Numbers:
    """The statistic of all models, and of all but those of one seed."""
    seeds = sorted(frame["seed"].unique())
    left = [statistic(frame[frame["seed"] != seed]) for seed in seeds] if len(seeds) >= _FEWEST else []
    value, kept = statistic(frame), [x for x in left if np.isfinite(x)]
    return {"value": value if np.isfinite(value) else None, "without": kept if len(kept) == len(left) else []}


def t_and_half(found: Mapping[str, Any]) -> tuple[float, float]:
    """Standard error of a statistic by its values without each seed, and half its 95 % interval.

    >>> round(t_and_half({"value": 2.0, "without": [2.5, 2.0, 1.5]})[0], 4)  # the mean of 1, 2, 3: s / sqrt(n)
    0.5774
    """
    x = np.asarray(found["without"], float)
    error = float(np.sqrt((len(x) - 1) / len(x) * ((x - x.mean()) ** 2).sum()))
    return error, float(t.ppf(1 - LEVEL / 2, len(x) - 1)) * error


def above(key: str, what: str, published: str, found: Mapping[str, Any], limit: float = 0.0, sign: int = 1,
          form: str = ".2f", note: str = "") -> VerdictRow:  # fmt: skip
    """A statistic lies above (sign 1) or below (-1) a limit.

    >>> above("a", "a", "yes", {"value": 2.0, "without": [2.1, 2.0, 1.9]}).verdict
    'agrees'
    """
    if found["value"] is None or not found["without"]:
        few = f"fewer than {_FEWEST} seeds, or models are missing"
        row = VerdictRow(key, what, published, "none", "published ordering", "not comparable", note, few)
        return because(row, "few restarts", few)
    error, half = t_and_half(found)
    value, n = found["value"], len(found["without"])
    p = float(t.sf(sign * (value - limit) / error, n - 1)) if error else float(sign * (value - limit) <= 0)
    ours = f"{value:{form}} ({value - half:{form}} to {value + half:{form}})"
    side = "above" if sign > 0 else "below"
    rule = f"one-sided t test, jackknife over {n} seeds, p = {p:.2g}"
    row = VerdictRow(key, what, published, ours, "published ordering", shown(p, 1 - p), note, rule, f"{side} {limit:g}")
    if row.verdict == "differs":
        return because(row, "stand-in", STANDS_IN)
    return because(row, "few restarts", few_of_t(sign * (value - limit), error, n))
