"""A trained run, scored: members x metrics -> rows. The one place where models meet metrics."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from unseam.errors import BadInput
from unseam.metrics import Score
from unseam.metrics.suite import score_representation
from unseam.progress import bar
from unseam.runs.represent import represent, sample_rows, without_constants
from unseam.train import Run


def evaluate(
    run: Run,
    metrics: str | Sequence[str] = "mig",
    members: Iterable[int] | None = None,
    samples: int = 10_000,
    seed: int = 0,
    ci: bool = False,
    show: bool | None = None,
) -> dict[int, dict[str, Score]]:
    """Scores of each member on `samples` rows of the data, also written to the run's `scores` table.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> small = {"network": "linear", "latents": 2, "steps": 5, "data_parameters": {"size": 300}}
    >>> run = fit("synth-linear", out=tempfile.mkdtemp() + "/run", **small)
    >>> sorted(evaluate(run, "mig,mcc")[0])
    ['mcc', 'mig']
    """
    data = run.data
    if data.space is None:
        raise BadInput(f"data={run.config.data['name']!r} has no factors to score against; give --data.factors FILE")
    if samples < 2:
        raise BadInput(f"samples={samples} must be at least 2")
    rows = sample_rows(len(data), samples, seed)
    chosen = list(range(len(run.members)) if members is None else members)
    out: dict[int, dict[str, Score]] = {}
    with bar("scoring", len(chosen), show) as advance:
        for member in chosen:
            seen = without_constants(represent(run.model(member), data, rows))
            if seen.space is None:
                raise BadInput("every factor of the data is constant on these rows; there is nothing to score against")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # each Score keeps its notes
                out[member] = dict(score_representation(seen, metrics=metrics, seed=seed, ci=ci))
            run.rows.write_scores(member, {n: (s.value, dict(s.settings)) for n, s in out[member].items()})
            advance()
    return out
