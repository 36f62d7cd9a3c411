"""How often is *found* right? Random truths of seven kinds, ours beside PCA, FastICA and NMF.

python benchmarks/find.py measure FOLDER KIND FIRST LAST    one line of JSON a truth, none twice
                                                            KIND may end in -orthogonal, -linear (without a network)
                                                            or a number of rows: parts-300
python benchmarks/find.py table FOLDER [FIRST LAST]         the table of docs/find.md, in Markdown
python benchmarks/find.py known FOLDER [NAME ...]           data sets that nobody here prepared: wine, diabetes, ...

A factor graded *found* is right if its rank correlation with a true factor is above 0.9, matched one to one. Rivals are
told the true number of factors; ours is not. MCC: the mean matched rank correlation over the true factors, all rows.
The rules of `find` were tuned on seeds 0..19 (nongaussian 0..39); docs/find.md says which are published.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import unseam
from unseam.finding.columns import prepare
from unseam.finding.read import read
from unseam.finding.search import examine
from unseam.stats import matched, rank_correlations

N = 1200
RIGHT = 0.9
KINDS = ("gaussian", "nongaussian", "parts", "counts", "smooth", "sheared", "images", "noise")
MANIFOLDS = ("log-polar", "parabolic", "elliptic", "torus")


class Truth(NamedTuple):
    """Observations and the factors they were made of."""

    x: np.ndarray  # (N, ...)
    s: np.ndarray  # (N, F)


def gaussian(g: np.random.Generator, seed: int) -> Truth:
    """Orthogonal columns of distinct lengths, Gaussian factors: PCA's home."""
    d, n = int(g.integers(2, 5)), int(g.integers(6, 13))
    A = np.linalg.qr(g.standard_normal((n, d)))[0] * 0.6 ** np.arange(d)
    s = g.standard_normal((N, d))
    return Truth(s @ A.T + 0.03 * g.standard_normal((N, n)), s)


def shaped(g: np.random.Generator) -> np.ndarray:
    laplace, uniform = g.laplace(size=N) / np.sqrt(2), g.uniform(-np.sqrt(3), np.sqrt(3), N)
    return (laplace, uniform, g.exponential(size=N) - 1)[int(g.integers(3))]


def nongaussian(g: np.random.Generator, seed: int) -> Truth:
    """A random matrix of heavy-tailed, bounded or skewed factors: ICA's home."""
    d, n = int(g.integers(2, 6)), int(g.integers(7, 13))
    s = np.stack([shaped(g) for _ in range(d)], axis=1)
    return Truth(s @ g.standard_normal((d, n)) + 0.1 * g.standard_normal((N, n)), s)


def parts(g: np.random.Generator, seed: int) -> Truth:
    """Sparse non-negative amounts of sparse non-negative parts, non-negative noise: NMF's home."""
    d, n = int(g.integers(2, 6)), int(g.integers(8, 13))
    s = g.exponential(size=(N, d)) * (g.uniform(size=(N, d)) < 0.7)
    A = g.uniform(0.2, 1.0, (d, n)) * (g.uniform(size=(d, n)) < 0.5)
    A[np.arange(d), g.permutation(n)[:d]] = 1.0
    return Truth(s @ A + np.abs(0.05 * g.standard_normal((N, n))), s)


def counts(g: np.random.Generator, seed: int) -> Truth:
    """Poisson counts of d programs at library sizes that vary; what a program contributes is the factor."""
    d, n = int(g.integers(2, 5)), 12
    s = g.gamma(1.0, size=(N, d)) * np.exp(0.5 * g.standard_normal((N, 1)))
    W = g.dirichlet(np.full(n, 0.5), size=d)
    return Truth(g.poisson(200 * s @ W), s)


def manifold(g: np.random.Generator, seed: int, shear: float) -> Truth:
    kind = MANIFOLDS[int(g.integers(4))]
    data = unseam.load_data("manifolds", kind=kind, pairs=int(g.integers(1, 3)), size=N, seed=seed, shear=shear)
    rows = torch.arange(N)
    x = data.batch(rows).numpy().astype(float)
    return Truth(x + 0.02 * x.std() * g.standard_normal(x.shape), data.factors(rows).numpy())


def smooth(g: np.random.Generator, seed: int) -> Truth:
    """Even seeds: orthogonal coordinates of Gaussian factors; odd: uniform factors through random smooth functions."""
    if seed % 2 == 0:
        return manifold(g, seed, 0.0)
    d, n = int(g.integers(2, 4)), 12
    s = g.uniform(-1, 1, (N, d))
    x = np.tanh(s @ g.standard_normal((d, 8)) + 0.5 * g.standard_normal(8)) @ g.standard_normal((8, n))
    return Truth(x + 0.02 * x.std() * g.standard_normal(x.shape), s)


def images(g: np.random.Generator, seed: int) -> Truth:
    """Even: a sprite of 16 x 16 that moves and grows; odd: a room of 8 x 8 with three hues (of five) and a size."""
    name = "rooms" if seed % 2 else "sprites"
    how = {"colours": 5, "shapes": 1, "orientations": 1} if seed % 2 else {"shapes": 1, "orientations": 1}
    data = unseam.load_data(name, size=8 if seed % 2 else 16, **how)
    rows = torch.from_numpy(g.choice(len(data), min(N, len(data)), replace=False))
    s = data.factors(rows).numpy().astype(float)
    return Truth(data.batch(rows).numpy(), s[:, s.std(0) > 0])


def noise(g: np.random.Generator, seed: int) -> Truth:
    """Nothing is shared."""
    n = int(g.integers(6, 13))
    return Truth(g.standard_normal((N, n)), np.zeros((N, 0)))


def truth(kind: str, seed: int) -> Truth:
    g = np.random.default_rng([seed, KINDS.index(kind)])
    make = {"gaussian": gaussian, "nongaussian": nongaussian, "parts": parts, "counts": counts, "smooth": smooth,
            "images": images, "noise": noise, "sheared": lambda g, seed: manifold(g, seed, 0.8)}  # fmt: skip
    return make[kind](g, seed)


def mcc(codes: np.ndarray, s: np.ndarray) -> float:  # (N, k), (N, F)
    if not codes.shape[1]:
        return 0.0
    return float(matched(np.abs(rank_correlations(s, codes))).values.sum() / s.shape[1])


def rival(name: str, x: np.ndarray, s: np.ndarray) -> float:
    """The MCC of a method of scikit-learn with as many components as there are factors."""
    from sklearn.decomposition import NMF, PCA, FastICA

    d = s.shape[1]
    models: dict[str, Any] = {
        "PCA": PCA(d),
        "FastICA": FastICA(d, whiten="unit-variance", max_iter=300, random_state=0),
        "NMF": NMF(d, init="nndsvda", max_iter=300, random_state=0),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return round(mcc(models[name].fit(x).transform(x), s), 3)


def measure(kind: str, seed: int, effort: str = "quick", **how: object) -> dict:
    x, s = truth(kind, seed)
    began = time.monotonic()
    table, _, shape = read(x)
    found = examine(prepare(table, shape=shape), effort=effort, show=False, with_rivals=False, **how)
    row = {"kind": kind, "seed": seed, "true": s.shape[1], "count": found.count, "model": found.kind}
    row |= {"seconds": round(time.monotonic() - began, 1), "grades": [f.grade for f in found.factors]}
    if kind != "noise":
        codes = found.codes.to_numpy()
        like = np.abs(rank_correlations(codes, s)).max(1) if found.count else np.zeros(0)
        pair = matched(np.abs(rank_correlations(codes, s))).values if found.count else np.zeros(0)
        row |= {"like": like.round(3).tolist(), "one_to_one": pair.round(3).tolist()}
        flat = x.reshape(len(x), -1).astype(float)
        row["mcc"] = {"unseam": round(mcc(codes, s), 3)} | {
            n: rival(n, found.prepared.x, s) for n in ("PCA", "FastICA")
        }
        if flat.min() >= 0:
            row["mcc"]["NMF"] = rival("NMF", flat, s)
    row["by"], row["notes"] = [f.by for f in found.factors], list(found.notes[1:])
    return row


def known(name: str):
    """A data set of scikit-learn's as it comes, or 1,000 images of fashion-mnist (Debian: dataset-fashion-mnist)."""
    from sklearn import datasets

    if name == "fashion-mnist":
        data = unseam.load_data(name)
        return data.batch(torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:1000]).numpy()
    loaded = getattr(datasets, f"load_{name}")(as_frame=name != "digits")
    return loaded.images if name == "digits" else loaded.data


def measure_known(name: str, effort: str = "quick") -> dict:
    x, began = known(name), time.process_time()
    found = unseam.find(x, effort=effort, show=False)
    factors = [
        {"grade": f.grade, "nats": round(f.nats, 2), "moves": [str(m) for m in f.moves[:4]]} for f in found.factors
    ]
    row = {"name": name, "shape": list(x.shape), "model": found.kind, "cpu": round(time.process_time() - began, 1)}
    return row | {"sentence": found.sentence, "factors": factors, "rivals": found.rivals, "notes": found.notes}


def rows_of(folder: Path, kind: str) -> list[dict]:
    path = folder / f"{kind}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def judged(rows: list[dict]) -> tuple[int, int]:
    """How many factors are graded found, and how many of these are right."""
    found = [
        v for r in rows for g, v in zip(r["grades"], r.get("one_to_one", r["grades"]), strict=True) if g == "found"
    ]
    return len(found), sum(not isinstance(v, str) and v > RIGHT for v in found)


def line(kind: str, rows: list[dict]) -> str:
    found, right = judged(rows)
    number = sum(r["count"] == r["true"] for r in rows)
    mean = {
        name: np.mean([r["mcc"][name] for r in rows if name in r.get("mcc", {})] or [np.nan])
        for name in ("unseam", "PCA", "FastICA", "NMF")
    }
    cells = ["-" if np.isnan(v) else f"{v:.3f}" for v in mean.values()]
    seconds = np.mean([r["seconds"] for r in rows])
    nets = sum(r["model"] == "non-linear" for r in rows)
    return f"| {kind}, {len(rows)} | {number} | {nets} | {found} | {right} | {' | '.join(cells)} | {seconds:.0f} |"


def main() -> None:
    torch.set_num_threads(1)
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "table":
        first, last = (int(v) for v in sys.argv[3:5]) if len(sys.argv) > 3 else (0, 10**6)
        print("| truths | number right | network | found | right | ours | PCA | FastICA | NMF | seconds |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for path in sorted(folder.glob("*.jsonl")):
            rows = [r for r in rows_of(folder, path.stem) if first <= r["seed"] < last]
            print(line(path.stem, rows)) if rows else None
        return
    if what == "known":
        folder.mkdir(parents=True, exist_ok=True)
        for name in sys.argv[3:] or ("wine", "diabetes", "breast_cancer", "digits", "fashion-mnist"):
            row = measure_known(name)
            (folder / f"{name}.json").write_text(json.dumps(row, indent=1))
            print(json.dumps({k: row[k] for k in ("name", "model", "cpu", "sentence")}), flush=True)
        return
    kind, first, last = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    folder.mkdir(parents=True, exist_ok=True)
    name, _, suffix = kind.partition("-")
    global N
    N = int(suffix) if suffix.isdigit() else N
    how = {"orthogonal": {"orthogonal": True}, "linear": {"network": False}}.get(suffix, {})
    done = {r["seed"] for r in rows_of(folder, kind)}
    for seed in sorted(set(range(first, last)) - done):
        row = measure(name, seed, **how)
        with (folder / f"{kind}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps({k: v for k, v in row.items() if k not in ("notes",)}), flush=True)


if __name__ == "__main__":
    main()
