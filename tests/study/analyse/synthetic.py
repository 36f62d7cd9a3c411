"""Frames of models whose truth is known."""

import numpy as np
import pandas as pd

METHODS = ("beta-vae", "factor-vae", "beta-tcvae", "dip-vae-i", "dip-vae-ii", "annealed-vae")
METRICS = ("beta-vae", "factor-vae", "mig", "dci-disentanglement", "modularity", "sap")


def grid(data=("sprites",), methods=METHODS, strengths=6, seeds=9):
    """The rows of a full grid without any numbers."""
    rows = [
        {"data": d, "method": m, "strength": float(s), "strength_name": "beta", "seed": n, "status": "finished"}
        for d in data
        for m in methods
        for s in range(1, strengths + 1)
        for n in range(seeds)
    ]
    return pd.DataFrame(rows)


def noise(frame, columns, seed=0):
    """Columns of independent standard normal numbers."""
    values = np.random.default_rng(seed).normal(size=(len(frame), len(columns)))
    return frame.assign(**dict(zip(columns, values.T, strict=True)))


def study(data=("sprites", "sprites-colour", "sprites-noisy"), methods=METHODS, strengths=6, seeds=9, seed=0):
    """A frame like a real study's: quality q = method + strength + seed; metrics and geometry see it with noise."""
    r, f = np.random.default_rng(seed), grid(data, methods, strengths, seeds)
    n = len(f)

    def effect(*columns):
        place = f.groupby(list(columns)).ngroup()
        return r.normal(size=place.max() + 1)[place]

    q = 0.6 * effect("method") + 0.7 * effect("method", "strength") + 0.4 * effect("data", "method", "strength")
    q = q + r.normal(size=n)
    trust = {"beta-vae": 0.8, "factor-vae": 0.8, "mig": 1.0, "dci-disentanglement": 1.0, "modularity": -0.1, "sap": 0.7}
    for metric, weight in trust.items():
        f[f"mean.{metric}"] = 1 / (1 + np.exp(-(weight * q + 0.6 * r.normal(size=n) - 0.5)))
        f[f"sampled.{metric}"] = f[f"mean.{metric}"] * 0.9 + 0.02 * r.normal(size=n)
    for kind in ("logistic", "trees"):
        for labels, level in ((10, 0.3), (100, 0.45), (1000, 0.6), (10_000, 0.7)):
            f[f"downstream.{kind}.{labels}"] = level + 0.04 * q + 0.03 * r.normal(size=n)
    for name in ("reconstruction", "elbo", "kl", "regulariser", "wasserstein", "mi-pairs"):
        f[f"unsup.{name}"] = 10 + r.normal(size=n)
    f["unsup.tc-sampled"] = 3 / f["strength"] * np.exp(0.2 * r.normal(size=n))
    f["unsup.tc-mean"] = 0.5 * f["strength"] * np.exp(0.2 * r.normal(size=n))
    f["free.dto"] = 1 - 0.1 * q + 0.2 * r.normal(size=n)
    f["free.dto-chance"] = 1.5
    f["free.dto-over-chance"] = f["free.dto"] / 1.5
    f["free.entanglement-cost"] = np.exp(-0.5 * q + r.normal(size=n))
    f["free.active"] = r.integers(3, 9, size=n).astype(float)
    f["free.udr"] = 0.4 + 0.05 * q + 0.1 * r.normal(size=n)
    f["free.rank"] = f.groupby(["data", "method", "strength"])["free.dto-over-chance"].rank()
    return f.assign(steps=1000, seconds=1.0, model_num=-1, piece="abc", member=np.arange(n))
