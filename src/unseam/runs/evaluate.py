"""A trained run, scored: members x metrics -> rows. The one place where models meet metrics."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unseam.data.base import Dataset
from unseam.data.wrap import Labelled
from unseam.errors import BadInput
from unseam.metrics import METRICS, Score, score
from unseam.metrics.suite import select_metrics
from unseam.progress import bar
from unseam.run import Run
from unseam.runs.choices import Which
from unseam.runs.diagnose import chosen_members
from unseam.runs.represent import ENOUGH, EncodedRows, RowSample, represent, sample_rows, without_constants

_SAMPLES = 10_000  # rows to score on, unless a metric asks for more
TRAINING_SHARE = 2 / 3  # of the rows are what a predictor is fitted on; the others test it


def evaluate(
    run: Run,
    metrics: str | Sequence[str] = "mig",
    members: Iterable[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
    ci: bool = False,
    show: bool | None = None,
    rows: Which | None = None,
) -> dict[int, dict[str, Score]]:
    """Scores of each member, also written to the run's `scores` table; `rows_for` says on which rows.

    Factors that came later, in a table of their own: `evaluate(with_factors(run, "truth.csv"))`.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> small = {"network": "linear", "latents": 2, "steps": 5, "data_parameters": {"size": 300}}
    >>> run = fit("synth-linear", out=tempfile.mkdtemp() + "/run", **small)
    >>> sorted(evaluate(run, "mig,mcc")[0]), str(rows_for(run, "mig"))
    (['mcc', 'mig'], '300 rows, held-out and trained on')
    """
    if run.data.space is None:
        raise BadInput(f"data={run.config.data['name']!r} has no factors to score against; give --factors FILE")
    row_sample = rows_for(run, metrics, rows, samples, seed)
    chosen = chosen_members(run, members)
    out: dict[int, dict[str, Score]] = {}
    with bar("scoring", len(chosen), show) as advance:
        for member in chosen:
            out[member] = _scores_of(run, member, row_sample, metrics, seed, ci)
            if run.keeps or isinstance(run.other_data, Labelled):
                on = {"rows": row_sample.to_json(), **named_table(run)}
                run.rows.write_scores(member, {n: (s.value, {**s.settings, **on}) for n, s in out[member].items()})
            advance()
    return out


def named_table(run: Run) -> dict[str, str]:
    """The file name of a table of factors, without its private folder."""
    if not isinstance(run.other_data, Labelled):
        return {}
    return {"factors": Path(run.other_data.table).name if isinstance(run.other_data.table, str | Path) else "given"}


def with_factors(run: Run, table: Any) -> Run:
    """The run with the factors of a table (path, DataFrame or array), one row an observation of its data."""
    return replace(run, other_data=Labelled(run.data, table))


def rows_for(
    run: Run,
    metrics: str | Sequence[str] = "mig",
    which: Which | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> RowSample:
    """The rows that these metrics are computed on: held-out ones where there are as many as they need, else any."""
    if samples is not None and samples < 2:
        raise BadInput(f"samples={samples} must be at least 2")
    needed = rows_needed(metrics)
    return sample_rows(
        run, which, samples or max(_SAMPLES, needed), seed, enough=max(ENOUGH, min(needed, samples or needed))
    )


def rows_needed(metrics: str | Sequence[str]) -> int:
    """As many rows as leave the largest number of labels that a metric fits a predictor on.

    >>> rows_needed("mig"), rows_needed("downstream-trees-1000"), rows_needed("efficiency-logistic")
    (0, 1500, 15000)
    """
    labels = [0]
    for metric in select_metrics(metrics)[0]:
        found = re.fullmatch(r"downstream-\w+-(\d+)", metric.name)
        labels.append(int(found[1]) if found else 10_000 * metric.name.startswith("efficiency-"))
    return round(max(labels) / TRAINING_SHARE)


def _scores_of(
    run: Run, member: int, row_sample: RowSample, metrics: str | Sequence[str], seed: int, ci: bool
) -> dict[str, Score]:
    whole = represent(run.model(member), row_sample.of or run.data, row_sample.rows)
    encoded = without_constants(whole)
    if encoded.space is None:
        raise BadInput("every factor of the data is constant on these rows; there is nothing to score against")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # each Score keeps its notes
        about: dict[str, Any] = {"variances": encoded.variances, "active": encoded.active}
        found = score(encoded.codes, encoded.factors, encoded.space, metrics, ci=ci, seed=seed, **about)
        more = {"passive": list(found.inputs.passive), "scored_factors": list(encoded.space.names)}
        notes = fixed_here(whole, encoded, row_sample.of or run.data)
        out = {}
        for name, s in found.items():
            counted = (f"{name}: {METRICS[name].counts}, in use or not",) if METRICS[name].counts else ()
            all_notes = (*s.notes, *notes, *(counted if more["passive"] else ()))
            out[name] = s.having(settings={**s.settings, **more}, notes=all_notes)
        return out


def fixed_here(whole: EncodedRows, encoded: EncodedRows, data: Dataset) -> tuple[str, ...]:
    """Factors that vary in the data but not on these rows: the scores do not speak of them, and should say so."""
    assert whole.space is not None
    assert encoded.space is not None
    sizes = {factor.name: factor.size for factor in data.space or ()}
    fixed = [name for name in whole.space.names if name not in encoded.space.names and sizes[name] != 1]
    return (f"not scored, because constant on these rows: {', '.join(fixed)}",) if fixed else ()
