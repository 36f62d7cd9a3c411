"""The gamma-lambda solver against a Python loop, and I_m at (8, 8) against every one of its 8^8 assignments."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from unseam.linear import Scenario, best_partition, brute_force, gaussian_tables
from unseam.linear.gamma_lambda import random_starts, solve

sys.path.insert(0, str(Path(__file__).parent))
from _loop_gamma_lambda import solve_one

GAMMA, LAM = np.linspace(0.98, 1.02, 5), np.linspace(-0.02, 0.02, 5)
STARTS, LOOPED = 100, 2  # starts a (gamma, lambda) pair for the batch; how many of them the loop repeats
STEPS = 1000


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def gamma_lambda() -> dict:
    """25 pairs x 100 starts at once; the loop does 2 of the starts each time, interleaved; per problem."""
    Sy, starts = Scenario(n=4, groups=((0, 1), (2,))).Sy, random_starts((5, 5, STARTS), 4, 3)

    def batch():
        return solve(Sy, GAMMA[:, None, None], LAM[:, None], starts, steps=STEPS)

    def loop():
        pairs = [(i, j, k) for i in range(5) for j in range(5) for k in range(LOOPED)]
        return {(i, j, k): solve_one(Sy, GAMMA[i], LAM[j], starts[i, j, k], steps=STEPS) for i, j, k in pairs}

    runs = [(timed(batch), timed(loop)) for _ in range(3)]
    (ours, solution), (theirs, looped) = (min(column, key=lambda r: r[0]) for column in zip(*runs, strict=True))
    same = [
        solution.outcome[key] == end[3] and np.allclose(solution.B[key], end[0], atol=1e-6)
        for key, end in looped.items()
    ]
    work = solution.steps.sum() / solution.steps[..., :LOOPED].sum()  # steps the batch took for each the loop took
    return {
        "ratio": theirs * work / ours,
        "batch_seconds": ours,
        "loop_seconds": theirs,
        "problems": starts[..., 0, 0].size,
        "microseconds_a_step": 1e6 * ours / solution.steps.sum(),
        "same_outcome_and_encoder": float(np.mean(same)),
    }


def partition(s: int = 8, m: int = 8) -> dict:
    rng = np.random.default_rng(0)
    Sv = Scenario(n=s, groups=tuple((j, j + 1) for j in range(0, s, 2))).Sv
    B = rng.normal(size=(m, s))
    tables = gaussian_tables(Sv, np.diag(B @ Sv @ B.T) + 0.3, B @ Sv)
    brute, (value, _) = timed(lambda: brute_force(tables))
    ours, found = min((timed(lambda: best_partition(tables)) for _ in range(5)), key=lambda r: r[0])
    return {
        "ratio": brute / ours,
        "brute_force_seconds": brute,
        "search_seconds": ours,
        "value": found.value,
        "difference": abs(found.value - float(value)),
        "nodes": found.nodes,
        "assignments": m**s,
    }


def partition_ten() -> dict:
    rng = np.random.default_rng(0)
    B = rng.normal(size=(10, 10))
    L = rng.normal(size=(10, 10)) / 10**0.5
    Sv = L @ L.T + 0.3 * np.eye(10)
    tables = gaussian_tables(Sv, np.diag(B @ Sv @ B.T) + 0.3, B @ Sv)
    seconds, found = timed(lambda: best_partition(tables))
    return {"seconds": seconds, "nodes": found.nodes, "gap": found.gap, "value": found.value}


def run() -> dict:
    solver, search, ten = gamma_lambda(), partition(), partition_ten()
    return {
        "ratios": {
            "linear gamma-lambda batched / Python loop": solver["ratio"],
            "linear I_m search / brute force (8,8)": search["ratio"],
        },
        "how": (
            f"{solver['problems']} gamma-lambda problems at once against eq. 9-10 in a NumPy loop, time a step, best "
            f"of 3 interleaved runs, same ends in {100 * solver['same_outcome_and_encoder']:.0f} %; I_m at (8,8): "
            f"{search['nodes']} nodes against {search['assignments']} assignments tried in vectorised chunks, values "
            f"differ by {search['difference']:.1e}; at (10,10) {ten['seconds']:.2f} s, gap {ten['gap']}"
        ),
        "gamma-lambda": solver,
        "partition": search,
        "partition (10,10)": ten,
    }
