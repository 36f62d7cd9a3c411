"""L1: Theorem 1 of Locatello 2019, built: a perfect code, a map that no distribution can see, and what metrics say.

f = g^-1 o h^-1 o A o h o g: g the marginal distribution functions, h the normal quantile, A = I - 2 v v' (see
`unseam.metrics.impossibility`). u and f(u) have the same distribution; f mixes every coordinate with every other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import ks_2samp, uniform
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from unseam.metrics import score
from unseam.metrics.impossibility import entangle, jacobian, reflection
from unseam.rng import numpy_generator
from unseam.types import Array, Factor, FactorSpace
from unseam_papers.frame.draw import BLUE, GREEN, GREY, INK, ORANGE, RED, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds

NAMES = {  # the six metrics of Locatello 2019
    "beta-vae": "BetaVAE",
    "factor-vae": "FactorVAE",
    "mig": "MIG",
    "modularity": "Modularity",
    "dci-disentanglement": "DCI",
    "sap": "SAP",
}
COLLAPSED = 0.5  # of the way from the perfect code's score down to chance
STRONGEST = 0.25  # the a of the tests of the distribution


@dataclass(frozen=True)
class Settings:
    rows: int
    a: tuple[float, ...]  # members of the family
    d: tuple[int, ...]  # dimensions; the first is the one that is judged
    values: int = 10  # of each factor
    repeats: int = 5


def sample(d: int, rows: int, seed: int) -> Array:  # (N, d) uniform on [0, 1]^d
    return numpy_generator(seed, "l1", d).uniform(size=(rows, d))


def scores(codes: Array, u: Array, values: int) -> dict[str, float]:
    """The six metrics of codes for the factors v_i = which of `values` equal parts of [0, 1] u_i falls in."""
    factors = np.minimum((u * values).astype(np.int64), values - 1)
    space = FactorSpace(tuple(Factor(f"v{i + 1}", values) for i in range(u.shape[1])))
    found = score(codes, factors, space, metrics=list(NAMES))
    return {name: found[name].value for name in NAMES}


def codes_of(u: Array, a: float | str, seed: int) -> Array:
    """The perfect code u itself, u reordered and reflected, f_a(u), or noise that knows nothing."""
    if a == "permuted":
        return 1 - u[:, ::-1]
    if a == "noise":
        return sample(u.shape[1], len(u), seed + 1)
    return u if isinstance(a, str) else entangle(u, uniform, a)


def table(d: int, kinds: Sequence[float | str], settings: Settings) -> dict[str, dict[str, list[float]]]:
    """kind -> metric -> one value a repeat."""
    out: dict[str, dict[str, list[float]]] = {str(k): {n: [] for n in NAMES} for k in kinds}
    for seed in range(settings.repeats):
        u = sample(d, settings.rows, seed)
        for kind in kinds:
            for name, value in scores(codes_of(u, kind, seed), u, settings.values).items():
                out[str(kind)][name].append(value)
    return out


def told_apart(one: Array, other: Array, seed: int) -> float:
    """Area under the curve of boosted trees that tell rows of one from rows of the other, on the second halves."""
    x = np.concatenate([one, other])
    y = np.repeat([0, 1], [len(one), len(other)])
    order = numpy_generator(seed, "l1-order").permutation(len(x))
    half = len(x) // 2
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(x[order[:half]], y[order[:half]])
    return float(roc_auc_score(y[order[half:]], model.predict_proba(x[order[half:]])[:, 1]))


def distribution(settings: Settings) -> dict[str, Any]:
    """Is f(u) distributed as u? Fresh samples on either side; u turned without g and h as the control."""
    d = settings.d[0]
    out: dict[str, Any] = {"p": [], "auc": [], "control": [], "rows": settings.rows}  # half of 2 N rows are tested
    for seed in range(settings.repeats + 2):
        u, w = sample(d, settings.rows, seed), sample(d, settings.rows, seed + 1000)
        f = entangle(w, uniform, STRONGEST)
        out["p"] += [float(ks_2samp(u[:, i], f[:, i]).pvalue) for i in range(d)]
        out["auc"].append(told_apart(u, f, seed))
        out["control"].append(told_apart(u, 0.5 + (w - 0.5) @ reflection(d, STRONGEST).T, seed))
    return out


def derivatives(settings: Settings) -> dict[str, Any]:
    """The smallest |df_i/du_j| over points and a, and how far log|det J| is from the 0 of a uniform density."""
    u = sample(settings.d[0], settings.rows, 0)
    every = [jacobian(u, uniform, a) for a in settings.a]
    return {
        "least": float(min(np.abs(J).min() for J in every)),
        "log_det": float(max(np.abs(np.linalg.slogdet(J)[1]).max() for J in every)),
    }


def compute(settings: Settings, work: Work) -> Numbers:
    first = settings.d[0]
    kinds: list[float | str] = ["perfect", "permuted", "noise", *settings.a]
    size = {
        str(d): work.once(f"d{d}", partial(table, d, ["perfect", "noise", STRONGEST], settings)) for d in settings.d
    }
    return {
        "a": list(settings.a),
        "d": list(settings.d),
        "scores": work.once("scores", lambda: table(first, kinds, settings)),
        "size": size,
        "distribution": work.once("distribution", lambda: distribution(settings)),
        "derivatives": work.once("derivatives", lambda: derivatives(settings)),
    }


def kept(table: dict[str, dict[str, list[float]]], kind: str, name: str) -> float:
    """How much of the way from chance to the perfect code's score is left: 1 all, 0 nothing."""
    perfect, noise, value = (float(np.mean(table[k][name])) for k in ("perfect", "noise", kind))
    return (value - noise) / (perfect - noise) if perfect - noise > 1e-9 else 1.0


def above_chance(auc: Sequence[float], rows: int) -> float:
    """z of a mean area under the curve; each has the variance (N + 1) / (3 N^2), N test rows, half of either kind."""
    return float((np.mean(auc) - 0.5) * np.sqrt(3 * len(auc) / (rows + 1)) * rows)


def judge(numbers: Numbers) -> list[Row]:
    found, tested, slopes = numbers["scores"], numbers["distribution"], numbers["derivatives"]
    z, seen = (above_chance(tested[name], tested["rows"]) for name in ("auc", "control"))
    least = min(1.0, min(tested["p"]) * len(tested["p"]))
    rows = [
        Row(
            "marginals of u and f(u)",
            "the same",
            f"Kolmogorov-Smirnov: least of {len(tested['p'])} p-values {least:.2g} (Bonferroni)",
            holds(least > 0.05),
        ),
        Row(
            "joint distribution of u and f(u)",
            "the same",
            f"told apart with AUC {np.mean(tested['auc']):.3f} (z = {z:.1f}); a plain turn of u: "
            f"{np.mean(tested['control']):.3f}",
            holds(z < 1.645 < seen),
            "0.5 is chance; the turn is a control that the trees must tell from u",
        ),
        Row(
            "every df_i/du_j differs from 0",
            "almost everywhere",
            f"least |df_i/du_j| {slopes['least']:.2g}; |log |det J|| at most {slopes['log_det']:.1g}",
            holds(slopes["least"] > 0 and slopes["log_det"] < 1e-3),
            "log |det J| = 0: a uniform density stays as it is, exactly",
        ),
    ]
    for name, label in NAMES.items():
        left = [kept(found, str(a), name) for a in numbers["a"]]
        perfect, after = np.mean(found["perfect"][name]), [np.mean(found[str(a)][name]) for a in numbers["a"]]
        rows.append(
            Row(
                f"{label} of f(u), d = {numbers['d'][0]}, {len(after)} members of the family",
                "entangled",
                f"{perfect:.2f} -> {min(after):.2f} to {max(after):.2f} (chance {np.mean(found['noise'][name]):.2f})",
                holds(max(left) < COLLAPSED),
                f"permuted and reflected: {np.mean(found['permuted'][name]):.2f}",
            )
        )
    return rows


def draw(numbers: Numbers) -> Figure:
    """Left: a grid of u and where f takes it. Middle: the metrics before and after. Right: over d."""
    fig = figure(9.6, 3.5)
    grid, bars, sizes = fig.subplots(1, 3, width_ratios=(1, 1.5, 1.2))
    t = np.linspace(0.004, 0.996, 160)
    for level in np.linspace(0.1, 0.9, 9):
        for line, colour in ((np.stack([t, 0 * t + level], 1), BLUE), (np.stack([0 * t + level, t], 1), ORANGE)):
            grid.plot(*entangle(line, uniform, STRONGEST).T, color=colour, lw=1)
    grid.set(
        title=f"lines of constant u₁, u₂ under f\n(d = 2, a = {STRONGEST})", xlabel="f₁", ylabel="f₂", aspect="equal"
    )
    grid.grid(False)
    found, place = numbers["scores"], np.arange(len(NAMES))
    for kind, colour, marker, label in (("perfect", GREEN, "o", "u"), ("noise", GREY, "x", "chance")):
        bars.plot([np.mean(found[kind][n]) for n in NAMES], place, marker, color=colour, label=label, ms=7)
    for i, a in enumerate(numbers["a"]):
        y = place + 0.09 * (i - (len(numbers["a"]) - 1) / 2)
        bars.plot(
            [np.mean(found[str(a)][n]) for n in NAMES], y, ".", color=RED, label="f(u), one dot an a" if not i else None
        )
    bars.set(yticks=place, yticklabels=NAMES.values(), xlim=(-0.03, 1.05), xlabel="score")
    bars.invert_yaxis()
    bars.set_title(f"the six metrics, d = {numbers['d'][0]}")
    bars.legend(loc="lower right")
    d = sorted(numbers["d"])
    for (name, label), colour in zip(NAMES.items(), (INK, GREY, RED, GREEN, BLUE, ORANGE), strict=True):
        left = [kept(numbers["size"][str(n)], str(STRONGEST), name) for n in d]
        sizes.plot(d, left, "o-", ms=3, color=colour, label=label)
    sizes.axhline(COLLAPSED, color=INK, lw=0.8, ls="--")
    sizes.set(
        xlabel="dimension d", ylabel="share of the score kept by f(u)", ylim=(-0.15, 1.35), title=f"a = {STRONGEST}"
    )
    sizes.set_xticks(d)
    sizes.legend(ncols=3, loc="upper center", fontsize=7, columnspacing=0.8)
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    last = str(max(numbers["d"]))
    fallen = [label for (_, label), row in zip(NAMES.items(), rows[3:], strict=True) if row.verdict == "agrees"]
    left = {label: kept(numbers["size"][last], str(STRONGEST), name) for name, label in NAMES.items()}
    high = [f"{label} {value:.0%}" for label, value in left.items() if value >= COLLAPSED]
    same = {r.verdict for r in rows[:2]} == {"agrees"}
    seen = "see no difference between" if same else "do not settle that there is no difference between"
    return (
        f"Tests of the marginals and of the joint distribution {seen} u and f(u). log|det J| of f is at most "
        f"{numbers['derivatives']['log_det']:.1g} in size; on paper it is 0, so that no model that is trained on data "
        f"alone can prefer one to the other. Of the six metrics {len(fallen)} lose more than half of their way above "
        f"chance for every member of the family tried{' (' + ', '.join(fallen) + ')' if fallen else ''}. How much is "
        "lost depends on a and d: all entries of A = I - 2vv' have the size 1/2 at d = 4 and a = 0.25, the most even "
        f"mixture, and its diagonal but for the first entry goes to 1 as d grows. At d = {last} "
        + (f"{', '.join(high)} of the score is still there" if high else "no metric keeps half of its score")
        + ": every derivative differs from 0, but 'entangled' in the theorem's sense is not yet 'bad' in a metric's."
    )


L1 = Exhibit(
    id="L1",
    title="Theorem 1, built: a perfect code and its entangled twin",
    claim="For factorising p(z) there is a family of bijections that entangle all coordinates and leave p(z) as it is.",
    source="Locatello 2019, Theorem 1 (slides: How difficult is the problem of unsupervised disentanglement?)",
    choices=(
        "p(z): any that factorises. Ours: uniform on [0, 1]^d; the factors to be found are z cut into 10 equal parts.",
        "Which f: the proof's own, A = I - 2vv' with v_1^2 = a; ours for several a, and for several d at a = 0.25.",
        "When a metric is entangled: it loses more than half of its way from a perfect code down to chance "
        "(a code that is noise). Modularity is high even for noise, so the plain value says little.",
        "Same distribution: Kolmogorov-Smirnov for each coordinate, boosted trees for the joint, and |det J| = 1.",
    ),
    scales={
        "tiny": Settings(rows=300, a=(0.25,), d=(3, 4), values=4, repeats=1),
        "quick": Settings(rows=3000, a=(0.02, 0.1, 0.25, 0.4, 0.49), d=(4, 2, 3, 6, 10), repeats=1),
        "paper": Settings(
            rows=10_000, a=(0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.49), d=(4, 2, 3, 5, 6, 8, 10), repeats=10
        ),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
