"""Processor seconds of `find` without networks on one thread, beside one factor analysis that is told the number.

    unseam bench find-speed

A questionnaire of 2,800 rows and 25 items, and 50,000 rows of 30 columns with five independent factors.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import FactorAnalysis
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent))
from _calibration_kinds import Array, frame, levels, shaped

import unseam


def questionnaire(g: np.random.Generator) -> Array:
    """Five factors with five items of six levels each."""
    L = np.kron(np.eye(5), np.full((5, 1), 0.65)) + 0.08 * g.standard_normal((25, 5))
    x = g.standard_normal((2800, 5)) @ L.T + 0.75 * g.standard_normal((2800, 25))
    return levels(g, x, 6)


def independent_factors(g: np.random.Generator) -> Array:
    x = shaped(g, 50_000, 5) @ g.standard_normal((5, 30))
    return np.asarray(x + 0.3 * g.standard_normal(x.shape))


TABLES = {"2,800 x 25 items": (questionnaire, 5), "50,000 x 30 numbers": (independent_factors, 5)}


def run() -> dict[str, Any]:
    rows = {}
    for name, (make, k) in TABLES.items():
        x = make(np.random.default_rng(0))
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.process_time()
            found = unseam.find(frame(x), network=False, show=False)
            ours = time.process_time() - began
            began = time.process_time()
            FactorAnalysis(k, rotation="varimax").fit((x - x.mean(0)) / x.std(0))
            theirs = time.process_time() - began
        grades = [factor.grade for factor in found.factors]
        rows[name] = {"seconds": ours, "factor_analysis_seconds": theirs, "found": grades.count("found"), "of": k}
    text = "\n".join(
        f"  {name}: {r['seconds']:.1f} s of one processor, {r['found']} of {r['of']} factors found; "
        f"one factor analysis with varimax, told {r['of']}: {r['factor_analysis_seconds']:.2f} s"
        for name, r in rows.items()
    )
    return {"how": "find without networks, one thread, this machine", "ratios": {}, "text": text, **rows}
