"""What a study will cost here: every method is tried for some steps, a model is scored, the rest is arithmetic."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from unseam.atomic import cores
from unseam.errors import BadInput
from unseam.progress import bar
from unseam.study.evaluate import Evaluator
from unseam.study.grid import Grid, Piece
from unseam.study.pieces import Deadline, Place, train_piece

_STEPS = 40  # of a trial
_SETTLING = 10  # of them not timed


def cost(grid: Grid, workers: int = 0, show: bool | None = None) -> dict[str, Any]:
    """Models, pieces, hours and bytes; where the data is not there, only what can be counted.

    Seconds are those of a processor, so that a busy machine does not change them; hours are theirs over the workers.
    """
    workers = workers or cores()
    counted = {"grid": grid.name, "models": len(grid.models), "pieces": len(grid.pieces), "workers": workers}
    try:
        step, disk, score = trials(grid, show)
    except BadInput as error:
        return {**counted, "unknown": str(error)}
    training = sum(step[p.models[0].data, p.method.name] * len(p.models) for p in grid.pieces)
    training *= int(grid.settings.get("steps", 10_000))
    scoring = score * len(grid.models)
    document = {"training_hours": training / 3600 / workers, "evaluation_hours": scoring / 3600 / workers}
    return {**counted, **document, "evaluation_seconds": score, "bytes": int(disk * len(grid.models)),
            "step_seconds": {f"{data}/{method}": s for (data, method), s in step.items()}}  # fmt: skip


def trials(grid: Grid, show: bool | None) -> tuple[dict[tuple[str, str], float], float, float]:
    """Seconds of a model's step by data set and method, bytes of a model, seconds of a model's evaluation.

    All methods are tried on the first data set, the first method on the others: costs are taken to multiply.
    """
    first: dict[tuple[str, str], Piece] = {}
    for piece in grid.pieces:
        first.setdefault((piece.models[0].data, piece.method.name), piece)
    data, methods = list(dict.fromkeys(d for d, _ in first)), list(dict.fromkeys(m for _, m in first))
    first_cells = [key for key in first if key[0] == data[0] or key[1] == methods[0]]
    step, disk = {}, 0.0
    with bar("trial steps", len(first_cells) + 1, show) as advance:
        for key in first_cells:
            step[key], size = trial(first[key])
            disk = max(disk, size)
            advance(note="/".join(key))
        score = max(scoring(first[d, methods[0]]) for d in (data[0], data[-1]))
        advance()
    base = step[data[0], methods[0]]
    rest = {(d, m): step[d, methods[0]] * step[data[0], m] / base for d, m in first if (d, m) not in step}
    return step | rest, disk, score


def trial(piece: Piece) -> tuple[float, float]:
    """Seconds a step and bytes, both of one model of a piece."""
    stamps: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(piece, Path(folder))
        with suppress(Deadline):
            train_piece(place, lambda _: stamps.append(time.process_time()), lambda: len(stamps) >= _STEPS)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    timed = stamps[min(_SETTLING, len(stamps) - 2) :]
    return (timed[-1] - timed[0]) / (len(timed) - 1) / len(piece.models), size / len(piece.models)


def scoring(piece: Piece) -> float:
    """Seconds to evaluate one model, trained for a moment."""
    alone = replace(piece, models=piece.models[:1], settings={**piece.settings, "steps": _STEPS})
    with tempfile.TemporaryDirectory() as folder:
        run = train_piece(Place(alone, Path(folder)), lambda _: None, lambda: False)
        evaluator = Evaluator(run, alone)
        _ = evaluator.x  # shared by all models of a piece
        began = time.process_time()
        evaluator.row(0)
        return time.process_time() - began
