"""Our values beside the reference's on the same arrays: python benchmarks/_agreement.py FOLDER [--dci].

FOLDER holds `dsprites.npz` (arrays), `dsprites.json` and `second_reference_dsprites.json` (values), as described
in docs/metrics/agreement.md. Prints one Markdown table, one row a metric: the largest absolute difference.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from unseam.metrics import beta_vae, factor_vae, score, udr
from unseam.metrics.beta_vae import accuracy
from unseam.metrics.dci import compute_completeness, compute_disentanglement, compute_informativeness
from unseam.metrics.inputs import prepare
from unseam.types import Factor, FactorSpace

SIZES = (3, 6, 40, 32, 32)
SPACE = FactorSpace(tuple(Factor(n, s) for n, s in zip(("shape", "scale", "angle", "x", "y"), SIZES, strict=True)))
# ours -> (metric of the reference, value of it)
FIRST = {
    "mig": ("mig", "discrete_mig"),
    "sap": ("sap", "SAP_score"),
    "sap-r2": ("sap_continuous", "SAP_score"),
    "modularity": ("modularity_explicitness", "modularity_score"),
    "explicitness": ("modularity_explicitness", "explicitness_score_test"),
    "irs": ("irs", "IRS"),
    "gaussian-tc": ("unsupervised", "gaussian_total_correlation"),
    "wasserstein-dependency": ("unsupervised", "gaussian_wasserstein_correlation"),
    "wasserstein-dependency-norm": ("unsupervised", "gaussian_wasserstein_correlation_norm"),
    "code-mutual-information": ("unsupervised", "mutual_info_score"),
}
SECOND = {"jemmig": "JEMMIG", "dcimig": "DCIMIG", "modularity": "Modularity", "mig-sup": "MIG-sup", "rmig": "MIG-RMIG"}
WARPS = (lambda x: x, lambda x: np.tanh(2 * x), lambda x: x**3, np.expm1)


def sampler_of(data: dict, case: str):
    """The map behind a case, z = Q g(W s) + N e, as a sampler for the interventional metrics."""
    w, q, n, g = (data[f"map_{k}__{case}"] for k in ("W", "Q", "N", "g"))
    mean = np.array([(s - 1) / 2 for s in SIZES])
    std = np.array([np.sqrt((s * s - 1) / 12) for s in SIZES])
    rng = np.random.default_rng(1)

    def encode(factors: np.ndarray) -> np.ndarray:
        h = ((factors - mean) / std) @ w.T
        h = np.stack([WARPS[int(k)](h[:, j]) for j, k in enumerate(np.ravel(g))], axis=1)
        e = rng.normal(size=(len(h), n.shape[1] if n.ndim == 2 else h.shape[1]))
        return (h @ q.T + (e @ n.T if n.ndim == 2 else e * n)).astype(np.float32)

    return encode


def main(folder: Path, with_dci: bool) -> None:
    warnings.simplefilter("ignore")
    data = dict(np.load(folder / "dsprites.npz"))
    first = json.loads((folder / "dsprites.json").read_text())
    second = json.loads((folder / "second_reference_dsprites.json").read_text())
    cases = [c for c in first if c != "*all*"]
    rows: dict[str, list[tuple[float, float]]] = {}

    def note(name: str, ours: float, theirs: float) -> None:
        rows.setdefault(name, []).append((ours, theirs))

    for case in cases:
        v, vt = data["factors_train"], data["factors_test"]
        z, zt = data[f"rep_train__{case}"], data[f"rep_test__{case}"]
        found = score(z, v, metrics=[*FIRST, *SECOND], test_codes=zt, test_factors=vt)
        for name, (metric, key) in FIRST.items():
            note(name, found[name].value, first[case][metric]["values"][key])
        note(
            "explicitness (train)",
            found["explicitness"].extra["train"],
            first[case]["modularity_explicitness"]["values"]["explicitness_score_train"],
        )
        for name, metric in SECOND.items():
            note(f"{name} (second reference)", found[name].value, second[case][metric]["value"])
        for name, function in (("factor-vae", factor_vae), ("beta-vae", beta_vae)):
            theirs = first[case][f"{name.replace('-', '_')}_score"]["values"]["eval_accuracy"]
            note(f"{name} (sampler)", function(space=SPACE, sampler=sampler_of(data, case)).value, theirs)
            note(f"{name} (arrays)", function(z, v, test_codes=zt, test_factors=vt).value, theirs)
        if with_dci:
            for backend in ("lightgbm", "sklearn"):
                table = prepare(z[:2000], v[:2000], test_codes=zt[:1000], test_factors=vt[:1000])
                for compute in (compute_disentanglement, compute_completeness, compute_informativeness):
                    s = compute(table, backend)
                    key = s.name.removeprefix("dci-").replace("informativeness", "informativeness_test")
                    note(f"{s.name} ({backend}, 2000/1000)", s.value, first[case]["dci_2000_1000"]["values"][key])
    for strength in ("lasso", "spearman"):
        ours = udr([data[f"rep_train__{c}"] for c in cases], strength=strength)
        for s, theirs in zip(ours, first["*all*"][f"udr_{strength}"]["values"]["model_scores"], strict=True):
            note(f"udr-{strength}", s.value, theirs)
    for case in ("b_noise01", "d_pairs20"):
        points = folder / f"betavae_points_dsprites_{case}.npz"
        if points.exists():
            p = np.load(points)
            print(f"beta-vae points of {case}: {list(p.keys())}", file=sys.stderr)
            x, y = (p[k] for k in list(p.keys())[:2])
            print(
                "  training accuracy",
                accuracy(x, y.astype(int), x, y.astype(int), 5)[1],
                first[case]["beta_vae_score"]["values"]["train_accuracy"],
                file=sys.stderr,
            )
    short = [c.split("_")[0] for c in cases]
    print("| metric | largest difference | " + " | ".join(short) + " |")
    print("| --- | --- |" + " --- |" * len(short))
    for name, pairs in rows.items():
        worst = max(abs(a - b) for a, b in pairs)
        cells = " | ".join(f"{a:.4f} / {b:.4f}" for a, b in pairs)
        print(f"| {name} | {worst:.1e} | {cells} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--dci" in sys.argv)
