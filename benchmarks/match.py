"""Matching of large dictionaries: processor seconds against the matrix product alone, and peak memory.

Each point is a process of its own. Dictionaries are made of `shared` common directions with noise (cosine 0.95) and
others at random. `unseam bench match-65536` measures a part; those above 32,768 run only when they are named.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = {  # directions of both sides, dimensions, share that both have
    "8192": (8192, 8192, 1024, 0.75),
    "32768": (32768, 32768, 1024, 0.75),
    "none-shared": (32768, 32768, 1024, 0.0),
    "unequal": (131072, 2048, 1024, 0.75),
    "131072": (131072, 131072, 1024, 0.75),
    "131072-narrow": (131072, 131072, 64, 0.75),
}
USUAL = ("8192", "32768")
PARTS = tuple(SIZES)
BLOCK = 4096  # rows made, or multiplied, at a time


def dictionaries(folder: Path, a: int, b: int, n: int, share: float) -> list[Path]:
    """Two files of float32; the directions of the second are shuffled."""
    paths = [folder / "one.npy", folder / "two.npy"]
    one, two = (np.lib.format.open_memmap(p, "w+", np.float32, (s, n)) for p, s in zip(paths, (a, b), strict=True))
    order = np.random.default_rng(0).permutation(b)
    for i in range(0, max(a, b), BLOCK):
        rng = np.random.default_rng(1 + i)
        fresh = rng.standard_normal((BLOCK, n), np.float32)
        noisy = fresh + 0.33 * rng.standard_normal((BLOCK, n), np.float32)
        unlike = rng.random(BLOCK) >= share
        noisy[unlike] = rng.standard_normal((int(unlike.sum()), n), np.float32)
        one[i : i + BLOCK] = fresh[: max(0, a - i)]
        two[order[i : i + BLOCK]] = noisy[: max(0, b - i)]
    return paths


def point(part: str) -> dict[str, float]:
    """CPU seconds and peak memory of this process, and the time of the product alone at a sample of its blocks."""
    import unseam

    a, b, n, share = SIZES[part]
    with tempfile.TemporaryDirectory() as folder:
        files = dictionaries(Path(folder), a, b, n, share)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        began, wall = time.process_time(), time.perf_counter()
        found = unseam.match(*files, signed=True, show=False)
        seconds, wall = time.process_time() - began, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        one, two = (np.load(path, mmap_mode="r")[:BLOCK].copy() for path in files)
        one @ two.T
        began = time.process_time()
        for _ in range(3):
            one @ two.T
        product = (time.process_time() - began) / 3 * a * b / (len(one) * len(two))
    pair = found.pairs[0]
    return {
        "seconds": seconds, "wall": wall, "product": product, "memory_GiB": peak, "memory_before_GiB": before,
        "stable": float(found.stable.mean()), "loss": pair.loss, "mean": float(pair.values.mean()),
        "chance": pair.chance, "hard_chance": pair.hard_chance, "hard_limit": pair.hard_limit,
    }  # fmt: skip


def run(parts: tuple[str, ...] = USUAL) -> dict:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    found = {}
    for part in parts:
        command = [sys.executable, __file__, part]
        done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        found[part] = json.loads(done.stdout.splitlines()[-1])
    return {
        "ratios": {f"match-{part}": one["seconds"] / one["product"] for part, one in found.items()},
        "how": "processor seconds of match over those of the product of the two matrices alone, one thread; "
        + "; ".join(f"{p}: {v['seconds']:.0f} s, {v['memory_GiB']:.2f} GiB" for p, v in found.items()),
        **found,
    }


if __name__ == "__main__":
    print(json.dumps(point(sys.argv[1])))
