"""The scores that a study did not compute, from the codes it kept: a table for `_which_scores.py`.

    python benchmarks/_all_scores.py STUDY_DIR TABLE.parquet [PART OF]     (PART OF: pieces PART, PART + OF, ...)

Every metric that asks for codes and factors alone, on the 1,000 rows of which every piece keeps mean codes; trees are
left out, for the study has them on 10,000. The study's own columns stand beside them under their names.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from unseam.errors import BadInput
from unseam.metrics.registry import METRICS
from unseam.metrics.suite import score
from unseam.run import load_run
from unseam.study import load
from unseam.study.evaluate import Evaluator
from unseam.study.pieces import Place, places

TREES = ("dci-", "downstream-", "efficiency-")  # the study has them


def of_piece(place: Place) -> pd.DataFrame:
    """One row per model: its place and every score."""
    run, codes = load_run(place.folder / "run"), np.load(place.folder / "codes.npy")
    rows = Evaluator(run, place.piece).rows[: codes.shape[1]]
    factors = run.data.factors(rows).numpy()
    found = [{"piece": place.piece.name, "member": m, **scores_of(z, factors)} for m, z in enumerate(codes)]
    return pd.DataFrame(found)


def scores_of(codes: np.ndarray, factors: np.ndarray) -> dict[str, float]:
    out = {}
    for name in METRICS:
        if name.startswith(TREES) or not np.isfinite(codes).all():
            continue
        try:
            out[f"mean.{name}"] = score(codes, factors, metrics=name, workers=1)[name].value
        except BadInput:  # it asks for more than codes and factors
            continue
    return out


def main(folder: str, out: str, part: str = "0", of: str = "1") -> None:
    warnings.simplefilter("ignore")
    study = load(folder)
    assert study.grid is not None
    tables = [of_piece(place) for place in places(study.path, study.grid)[int(part) :: int(of)]]
    table = study.table()
    new = pd.concat(tables)
    kept = [name for name in new if name in ("piece", "member") or name not in table]
    table.merge(new[kept], on=["piece", "member"]).to_parquet(Path(out), index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
