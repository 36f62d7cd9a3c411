"""A trained run, scored: members x metrics -> rows. The one place where models meet metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unseam.errors import BadInput
from unseam.metrics import Score, score
from unseam.progress import bar
from unseam.represent import represent, sample_rows
from unseam.train import Run


def evaluate(
    run: Run,
    metrics: str | Sequence[str] = "mig",
    members: Iterable[int] | None = None,
    samples: int = 10_000,
    seed: int = 0,
    show: bool | None = None,
) -> dict[int, dict[str, Score]]:
    """Scores of each member on `samples` rows of the data, also written to the run's `scores` table."""
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
            seen = represent(run.model(member), data, rows)
            out[member] = dict(score(seen.codes, seen.factors, seen.space, metrics=metrics, seed=seed))
            run.rows.write_scores(member, {n: (s.value, dict(s.settings)) for n, s in out[member].items()})
            advance()
    return out
