"""What a study of many models says: pure functions from the tidy frame (one row per model) to tables, and one page.

columns            names, directions, the rows that count
total_correlation  L2      agreement   L3      overlap     L4      variance    L5
transfer           L6      selection   L6      downstream  L7      efficiency  L8
words              the slides' five key results, and the question they end on, with a study's numbers
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from unseam.progress import bar
from unseam.study.analyse import (
    agreement,
    columns,
    downstream,
    efficiency,
    overlap,
    selection,
    total_correlation,
    transfer,
    variance,
)

# table -> how it is made of the models, and what it needs when it comes out empty
ANALYSES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "total-correlation": (total_correlation.total_correlation, total_correlation.NEEDS),
    "agreement": (agreement.metric_agreement, agreement.NEEDS),
    "methods": (overlap.methods, overlap.NEEDS),
    "strengths": (overlap.strength_overlap, overlap.NEEDS),
    "variance": (variance.variance, variance.NEEDS),
    "scores": (selection.scores_against_metrics, selection.NEEDS),
    "transfer": (transfer.transfer, transfer.NEEDS),
    "choices": (selection.selection_outcomes, selection.NEEDS),
    "downstream": (downstream.downstream_agreement, downstream.NEEDS),
    "efficiency": (efficiency.efficiency, efficiency.NEEDS),
}


def analyse(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the analysis, by name; one that cannot be made of these models is empty.

    >>> row = {"data": "a", "method": "beta-vae", "strength": 1.0, "seed": 0, "mean.mig": 0.5}
    >>> sorted(name for name, table in analyse(pd.DataFrame([row])).items() if len(table))
    ['models']
    """
    models = columns.finished_models(frame)
    out = {"models": models}
    with bar("analysis", len(ANALYSES)) as advance:
        for name, (make, _) in ANALYSES.items():
            out[name] = make(models)
            advance(note=name)
    chosen = out.pop("choices")
    return out | {"selection": selection.selection(chosen), "selection-by-metric": selection.by_metric(chosen)}


__all__ = ["ANALYSES", "analyse"]
