"""Score your own representation: arrays in, no model needed.

    python examples/score_arrays.py

Codes and factors may be NumPy arrays, torch tensors or DataFrames. Here the codes are made up: four factors, copied
with a little noise to four of six latents, the last two mixed by a rotation.
"""

import numpy as np

from unseam.metrics import mig, score
from unseam.metrics.suite import as_latex, as_text


def made_up(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    factors = np.stack([rng.integers(0, size, n) for size in (3, 5, 8, 8)], axis=1)
    codes = np.concatenate([factors / factors.std(axis=0), rng.normal(size=(n, 2))], axis=1)
    turn = np.deg2rad(30)
    codes[:, 2:4] = codes[:, 2:4] @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return codes + 0.1 * rng.normal(size=codes.shape), factors


def main() -> None:
    codes, factors = made_up(3000, np.random.default_rng(0))
    names = ["shape", "scale", "x", "y"]

    # one metric: the value, and where it comes from
    gap = mig(codes, factors)
    print(f"MIG {gap.value:.3f}; by factor", dict(zip(names, gap.per_factor.round(3).tolist(), strict=True)))
    print("latent that knows most about each factor:", gap.matrix.argmax(axis=1).tolist(), "\n")

    # many at once, with intervals and chance levels; the expensive parts are shared
    chosen = "mig,sap-r2,modularity,explicitness,dci-disentanglement,dci-completeness,mcc,infoe"
    scores = score(codes, factors, names=names, metrics=chosen, ci=10, chance=2)
    print(as_text(scores), "\n")
    print(as_latex(scores))


if __name__ == "__main__":
    main()
