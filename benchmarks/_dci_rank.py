"""Do the fast DCI backend and the reference's rank representations alike? python benchmarks/_dci_rank.py

The fourteen known representations, 2,000 rows, DCI by LightGBM and by scikit-learn's GradientBoosting.
"""

import sys

from _known import CASES, known
from scipy.stats import spearmanr

from unseam.metrics import dci


def main() -> None:
    rows: dict[str, dict[str, list[float]]] = {}
    for case in CASES:
        codes, factors = known(case, 2000)
        for backend in ("lightgbm", "sklearn"):
            for name, s in dci(codes, factors, backend=backend).items():
                rows.setdefault(name, {}).setdefault(backend, []).append(s.value)
        print(case, {n: [round(v[-1], 4) for v in b.values()] for n, b in rows.items()}, file=sys.stderr, flush=True)
    for name, by in rows.items():
        rank = spearmanr(by["lightgbm"], by["sklearn"]).statistic
        print(f"{name}: Spearman {rank:.4f} over {len(CASES)} representations")
        for case, a, b in zip(CASES, by["lightgbm"], by["sklearn"], strict=True):
            print(f"| {case} | {a:.4f} | {b:.4f} |")


if __name__ == "__main__":
    main()
