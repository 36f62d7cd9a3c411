"""Our values beside the reference's on the same arrays: python benchmarks/_agreement.py FOLDER [--dci] [--sklearn].

FOLDER holds `dsprites.npz` (nine representations), `dsprites.json` and `second_reference_dsprites.json` (the values
of two public implementations). Prints Markdown: the largest difference of each metric, then ours / theirs by case.
`--dci` adds DCI by LightGBM, `--sklearn` by scikit-learn too (about ten minutes).
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from unseam.axes import Factor, FactorSpace
from unseam.metrics import beta_vae, dci, factor_vae, score, udr
from unseam.metrics.beta_vae import accuracy

SIZES = (3, 6, 40, 32, 32)
SPACE = FactorSpace(tuple(Factor(n, s) for n, s in zip(("shape", "scale", "angle", "x", "y"), SIZES, strict=True)))
WARPS = (lambda x: x, lambda x: np.tanh(2 * x), lambda x: x**3, np.expm1)
# ours -> (metric of the first reference, its value)
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
SECOND = {"modularity": "Modularity", "jemmig": "JEMMIG", "dcimig": "DCIMIG", "mig-sup": "MIG-sup", "rmig": "MIG-RMIG"}


class Pairs(dict):
    """metric -> [(ours, theirs), ...], one pair a case."""

    def note(self, name: str, ours: float, theirs: float) -> None:
        self.setdefault(name, []).append((ours, theirs))


def sampler_of(data: dict, case: str):
    """The map behind a case, z = Q g(W s) + N e, as a sampler for the interventional metrics."""
    w, q, n, g = (data[f"map_{k}__{case}"] for k in ("W", "Q", "N", "g"))
    mean, std = np.array([(s - 1) / 2 for s in SIZES]), np.array([np.sqrt((s * s - 1) / 12) for s in SIZES])
    rng = np.random.default_rng(1)

    def encode(factors: np.ndarray) -> np.ndarray:
        h = ((factors - mean) / std) @ w.T
        h = np.stack([WARPS[int(k)](h[:, j]) for j, k in enumerate(g)], axis=1)
        return (h @ q.T + rng.normal(size=h.shape) @ n.T).astype(np.float32)

    return encode


def compare_arrays(pairs: Pairs, data: dict, case: str, first: dict, second: dict) -> None:
    found = score(data[f"rep_train__{case}"], data["factors_train"], metrics=[*FIRST, *SECOND], **held_out(data, case))
    for name, (metric, key) in FIRST.items():
        pairs.note(name, found[name].value, first[metric]["values"][key])
    train = first["modularity_explicitness"]["values"]["explicitness_score_train"]
    pairs.note("explicitness, training rows", found["explicitness"].extra["train"], train)
    for name, metric in SECOND.items():
        pairs.note(f"{name}, second reference", found[name].value, second[metric]["value"])


def compare_interventions(pairs: Pairs, data: dict, case: str, first: dict) -> None:
    for name, function in (("factor-vae", factor_vae), ("beta-vae", beta_vae)):
        theirs = first[f"{name.replace('-', '_')}_score"]["values"]["eval_accuracy"]
        sampled = function(space=SPACE, sampler=sampler_of(data, case))
        matched = function(data[f"rep_train__{case}"], data["factors_train"], **held_out(data, case))
        pairs.note(f"{name}, sampler", sampled.value, theirs)
        pairs.note(f"{name}, arrays", matched.value, theirs)


def compare_dci(pairs: Pairs, data: dict, case: str, first: dict, backends: list[str]) -> None:
    for rows in ("2000_1000", "10000_5000"):
        n, m = map(int, rows.split("_"))
        for backend in backends if f"dci_{rows}" in first else ():
            if backend == "sklearn" and n > 2000:
                continue
            held = {k: v[:m] for k, v in held_out(data, case).items()}
            for name, s in dci(
                data[f"rep_train__{case}"][:n], data["factors_train"][:n], backend=backend, **held
            ).items():
                key = name.removeprefix("dci-").replace("informativeness", "informativeness_test")
                pairs.note(f"{name}, {backend}, {n} + {m} rows", s.value, first[f"dci_{rows}"]["values"][key])


def held_out(data: dict, case: str) -> dict:
    return {"test_codes": data[f"rep_test__{case}"], "test_factors": data["factors_test"]}


def compare_udr(pairs: Pairs, data: dict, cases: list[str], first: dict) -> None:
    for strength in ("lasso", "spearman"):
        ours = udr([data[f"rep_train__{c}"] for c in cases], strength=strength)
        for s, theirs in zip(ours, first[f"udr_{strength}"]["values"]["model_scores"], strict=True):
            pairs.note(f"udr, {strength}", s.value, theirs)


def compare_classifier(pairs: Pairs, folder: Path, case: str, first: dict) -> None:
    """The BetaVAE classifier alone, on the points that the reference's classifier saw."""
    p = np.load(folder / f"betavae_points_dsprites_{case}.npz")
    x, y, xt, yt = (p[k] for k in ("train_points", "train_labels", "eval_points", "eval_labels"))
    value = accuracy(x, y.astype(int), xt, yt.astype(int), len(SIZES))[0]
    pairs.note(
        "beta-vae, classifier on the reference's points", value, first["beta_vae_score"]["values"]["eval_accuracy"]
    )


def report(pairs: Pairs, cases: list[str]) -> None:
    print("| metric | largest difference | rank correlation |\n| --- | ---: | ---: |")
    for name, found in pairs.items():
        ours, theirs = np.array(found).T
        rank = spearmanr(np.round(ours, 6), np.round(theirs, 6)).statistic if len(ours) > 2 else np.nan
        print(f"| {name} | {np.abs(ours - theirs).max():.1e} | {rank:.3f} |")
    print("\n| ours / reference | " + " | ".join(cases) + " |\n| --- |" + " --- |" * len(cases))
    for name, found in pairs.items():
        if len(found) == len(cases):
            print(f"| {name} | " + " | ".join(f"{a:.4f} / {b:.4f}" for a, b in found) + " |")


def main(folder: Path, backends: list[str]) -> None:
    warnings.simplefilter("ignore")
    data = dict(np.load(folder / "dsprites.npz"))
    first = json.loads((folder / "dsprites.json").read_text())
    second = json.loads((folder / "second_reference_dsprites.json").read_text())
    cases = [c for c in first if c != "*all*"]
    pairs = Pairs()
    for case in cases:
        print(case, file=sys.stderr)
        compare_arrays(pairs, data, case, first[case], second[case])
        compare_interventions(pairs, data, case, first[case])
        compare_dci(pairs, data, case, first[case], backends)
    compare_udr(pairs, data, cases, first["*all*"])
    for case in ("b_noise01", "d_pairs20"):
        compare_classifier(pairs, folder, case, first[case])
    report(pairs, cases)


if __name__ == "__main__":
    wanted = {"--dci": "lightgbm", "--sklearn": "sklearn"}
    main(Path(sys.argv[1]), [backend for flag, backend in wanted.items() if flag in sys.argv])
