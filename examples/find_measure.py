"""How often is *found* right? Random truths of each cheap kind, ours beside rivals; scikit-learn's tables as they come.

python examples/find_measure.py KIND FIRST LAST [EFFORT]      prints one line of JSON a truth
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch

import unseam
from unseam.statistics import matched, rank_correlations

N = 2000
RIGHT = 0.9  # rank correlation with a true factor


def truth(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:  # (N, n), (N, F)
    g = np.random.default_rng([seed, 7])
    d, n = int(g.integers(2, 6)), int(g.integers(8, 16))
    if kind in ("manifold", "sheared"):
        names = ("log-polar", "parabolic", "elliptic", "torus")
        shear = 0.8 if kind == "sheared" else 0.0
        data = unseam.load_data("manifolds", kind=names[seed % 4], pairs=1 + seed % 2, size=N, seed=seed, shear=shear)
        rows = torch.arange(N)
        x, s = data.batch(rows).numpy().astype(float), data.factors(rows).numpy()
        return x + 0.02 * x.std() * g.standard_normal(x.shape), s
    draw = {
        "gaussian": lambda: g.standard_normal((N, d)),
        "nongaussian": lambda: np.stack([_shaped(g, int(g.integers(3))) for _ in range(d)], axis=1),
        "noise": lambda: np.zeros((N, 1)),
    }[kind]()
    return draw @ g.standard_normal((draw.shape[1], n)) + (0.1 if kind != "noise" else 1.0) * g.standard_normal(
        (N, n)
    ), draw


def _shaped(g: np.random.Generator, which: int) -> np.ndarray:
    return (g.laplace(size=N) / np.sqrt(2), g.uniform(-np.sqrt(3), np.sqrt(3), N), g.exponential(size=N) - 1)[which]


def measure(kind: str, seed: int, effort: str) -> dict[str, object]:
    x, s = truth(kind, seed)
    began = time.monotonic()
    found = unseam.find(x, factors=None if kind == "noise" else s, effort=effort, show=False)
    row: dict[str, object] = {"kind": kind, "seed": seed, "true": 0 if kind == "noise" else s.shape[1]}
    row |= {"count": found.count, "model": found.kind, "seconds": round(time.monotonic() - began, 1)}
    row["grades"] = [f.grade for f in found.factors]
    if kind != "noise" and found.count:
        like = matched(np.abs(rank_correlations(found.codes.to_numpy(), s))).values
        row["like"] = [round(float(v), 3) for v in like]
        row["found"] = row["grades"].count("found")  # type: ignore[attr-defined]
        row["right"] = sum(int(g == "found" and v > RIGHT) for g, v in zip(row["grades"], like, strict=True))  # type: ignore[call-overload]
        row["mcc"] = {name: round(r["mcc"] or 0, 3) for name, r in found.rivals.items()}
    return row


if __name__ == "__main__":
    kind, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    effort = sys.argv[4] if len(sys.argv) > 4 else "normal"
    torch.set_num_threads(1)
    for seed in range(first, last):
        print(json.dumps(measure(kind, seed, effort)), flush=True)
