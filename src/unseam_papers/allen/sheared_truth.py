"""A11: the true components are found if the true map's Jacobian has orthogonal columns, and lost when it is sheared.

With x = g(S A w), g conformal, the singular directions of the map are those of S A = U T V^T, the same everywhere. A
diagonal posterior finds V^T w. A true w_i and the nearest of these have Pearson correlation c = max(|cos t|, |sin t|)
and, being Gaussian, rank correlation 6/pi asin(c / 2), where for S = diag(1, 1/r) and a shear a

    tan 2t = 2 a / (1 - a^2 - 1/r^2).

So the recovery must fall from 1 to 0.69 at a = sqrt(1 - 1/r^2), and then rise again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unseam.runs.align import weakest_correlation
from unseam_papers.allen import shapes
from unseam_papers.allen.shapes import worst_axes_cost
from unseam_papers.frame.axes import recovery
from unseam_papers.frame.draw import BLUE, DARK, GREEN, GREY, ORANGE, Figure, column, key, panels
from unseam_papers.frame.exhibit import Numbers, Work
from unseam_papers.frame.rows import VerdictRow, VerdictRows, ranged
from unseam_papers.frame.verdicts import as_kind, beyond, control, limit, ordering, p_above

ID, TITLE = "A11", "Non-linear truth: components are found if the columns are orthogonal, lost when sheared"
CLAIM = (
    "If the true map is non-linear with orthogonal Jacobian columns, a VAE gives each true component a latent of its "
    "own; with a shear it finds the singular directions instead, and with equal singular values no axes at all."
)
SOURCE = "Allen 2024, Corollary 2.1 and section 3.2.3"
PAPER = shapes.LARGER
_RATIO = shapes.LENGTH_RATIO  # of the shear curve
FOUND = 0.9  # a component counts as found above this rank correlation
FAST = 1e-2  # a learning rate at which training itself turns the axes
_CLOSE = 0.05  # how near the medians must lie to the prediction
CONTROLS = {"beta-vae-sigma": ("full posterior", ORANGE, "s"), "ae": ("autoencoder", GREY, "^")}
RULES = {
    "straight": "no shear: rank correlation of each true component with one latent, the weaker",
    "identified": "identifies statistically independent components with distinct latent dimensions",
    "directions": "rank correlation with the singular directions, at the shear where it is lowest",
    "factors": "independent factors in X can be identified (3.2.3, case 2)",
    "lost": "rank correlation with the true components: no shear above the shear where the prediction is lowest",
    "V": "sub-manifolds V are unidentifiable (3.2.3, case 2)",
    "unequal": "singular values that differ, the ratio where it is lowest",
    "unique": "if ground truth singular values are unique, the model is fully identified",
    "equal": "the largest ratio above equal singular values (ratio 1)",
}
CHOICES = (
    *shapes.CHOICES,
    "How recovery is measured: not given. Ours: factors and latents matched one to one by absolute rank correlation; "
    "the weakest matched one counts. A rotation by t gives 6/pi asin(max(|cos t|, |sin t|) / 2), so 0.69 is the worst "
    "that a rotation alone can do.",
    "When it counts as found: above 0.9. When the curve fits: medians within 0.05. When a control holds: below the VAE "
    "(p < 0.05) and not found. The limits were fixed after trial runs and before the runs shown.",
    "The learning rate: trial runs at 0.01 aligned the full posterior too; 0.003 was taken for all, and the control is "
    "judged at both.",
    "The ratio of the shear curve: 2 was tried first, with 3,000 steps. It followed the prediction up to a shear of "
    "0.85; from 1.1 on the second latent had not settled (median 0.53 for 0.76 at shear 1.1), and ratio 1.1 without "
    "shear fell short (0.89). Ratio 1.5 and 6,000 steps were taken for that reason. The quick scale ends at a shear of "
    "1.2, because 8,000 steps had not settled every restart at 1.4.",
)


@dataclass(frozen=True)
class Settings:
    """The two curves: over the shear at ratio 1.5, and over the ratio without shear."""

    shears: tuple[float, ...]
    ratios: tuple[float, ...]
    controls: tuple[float, ...]  # shears at which the controls are trained
    restarts: int
    steps: int
    rows: int = 1000


_QUICK = (0.0, 0.2, 0.4, 0.6, 0.75, 1.0, 1.2), (1.0, 1.1, 1.3, 2.0), (0.0, 0.75)  # shears, ratios, controls
_FULL = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9, 1.05, 1.2, 1.4), (1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
SCALES = {
    "tiny": Settings((0.0, 0.75), (1.0, 2.0), controls=(0.0,), restarts=2, steps=20, rows=200),
    "quick": Settings(*_QUICK, restarts=5, steps=6000),
    "paper": Settings(*_FULL, controls=(0.0, 0.4, 0.75, 1.2), restarts=12, steps=30_000),
}


def predicted_correlation(shear: float, ratio: float = _RATIO) -> float:
    """The rank correlation of a true component with the nearest singular direction.

    >>> [round(predicted_correlation(a, ratio=2.0), 3) for a in (0.0, 0.75**0.5, 10.0)]
    [1.0, 0.69, 0.995]
    """
    return recovery(0.5 * np.arctan2(2 * shear, 1 - shear**2 - ratio**-2))


def _measure(
    settings: Settings, work: Work, objective: str, shear: float, ratio: float, lr: float = shapes.LR
) -> dict[str, Any]:
    """Per restart: the weakest match of a latent with a true component, and with a predicted one."""
    run = shapes.train_on_shape(work, objective, settings.restarts, settings.steps, lr, shear=shear, ratio=ratio)
    rows = run.held_out()[: settings.rows]
    true, theory = run.data.factors(rows).numpy(), shapes.components(run.data, rows)  # type: ignore[arg-type]
    found = shapes.posterior_means(run, rows)
    return {
        "shear": shear,
        "ratio": ratio,
        "predicted": predicted_correlation(shear, ratio),
        "true": [weakest_correlation(z, true) for z in found],
        "theory": [weakest_correlation(z, theory) for z in found],
    }


def compute(settings: Settings, work: Work) -> Numbers:
    """One cohort a point of a curve; each point is remembered."""

    def point(objective: str, shear: float, ratio: float = _RATIO, lr: float = shapes.LR) -> Any:
        name = f"{objective}-shear{shear}-ratio{ratio}-lr{lr}"
        return work.once(name, lambda: _measure(settings, work, objective, shear, ratio, lr))

    return {
        "fast": point("beta-vae-sigma", 0.0, lr=FAST),
        "shear": [point("beta-vae", a) for a in settings.shears],
        "ratio": [point("beta-vae", 0.0, r) for r in settings.ratios],
        "controls": {c: [point(c, a) for a in settings.controls] for c in CONTROLS},
    }


def _median(point: Mapping[str, Any], what: str = "true") -> float:
    return float(np.median(point[what]))


def unfound(key: str, what: str, point: Mapping[str, Any], vae: Mapping[str, Any]) -> VerdictRow:
    """A control that prefers no axis: below the VAE, and its components are not found."""
    p, note = p_above(vae["true"], point["true"]), "expected: no axis is preferred"
    rule = f"below the VAE (one-sided Mann-Whitney test, p = {p:.2g}) and a median of {FOUND} or less"
    what, good = f"no shear, {what}: the weakest correlation", p < 0.05 and _median(point) <= FOUND
    return control(key, what, ranged(point["true"]), good, rule, note)


def judge(numbers: Numbers) -> list[VerdictRow]:
    curve, ratios = numbers["shear"], numbers["ratio"]
    straight, worst = curve[0], min(curve, key=lambda p: p["predicted"])
    off = max(curve, key=lambda p: abs(_median(p) - p["predicted"]))
    axes, least = min(curve, key=lambda p: _median(p, "theory")), min(ratios[1:], key=_median)
    far, at = _median(off) - off["predicted"], f"shear {axes['shear']:g}"
    low = f"shear {worst['shear']:g}, predicted {worst['predicted']:.2f}"
    medians = "; ".join(f"ratio {p['ratio']:g}: {_median(p):.2f}" for p in ratios[1:])
    what = f"the curve over {len(curve)} shears against our prediction, medians"
    ours = f"largest difference {far:+.3f} at {off['shear']:g}"
    twins = ordering("equal", RULES["equal"], "not identified", ratios[-1]["true"], ratios[0]["true"])
    fast = f"full posterior at a learning rate of {FAST:g} for {shapes.LR:g}"
    return [
        limit("straight", RULES["straight"], RULES["identified"], straight["true"], above=FOUND),
        limit("directions", RULES["directions"], RULES["factors"], axes["theory"], above=FOUND, note=at),
        ordering("lost", RULES["lost"], RULES["V"], straight["true"], worst["true"], note=low),
        limit("unequal", RULES["unequal"], RULES["unique"], least["true"], above=FOUND, note=medians),
        beyond("curve", what, ours, abs(far) < _CLOSE, f"within {_CLOSE}"),
        as_kind(twins, "own control"),
        *(unfound(name, label, numbers["controls"][name][0], straight) for name, (label, _, _) in CONTROLS.items()),
        unfound("fast", fast, numbers["fast"], straight),
    ]


def scatter(ax: Axes, points: Sequence[Any], x: Iterable[float], colour: str, marker: str, what: str) -> None:
    for point, at in zip(points, x, strict=True):
        column(ax, at, point[what], colour, marker, alpha=0.45, ms=4.5, mew=0)


def draw(numbers: Numbers) -> Figure:
    """Recovery over the shear beside the prediction; the same against the predicted axes; recovery over the ratio."""
    fig, (left, middle, right) = panels(10.0, 3.5, columns=3, sharey=True)
    curve, ratios = numbers["shear"], numbers["ratio"]
    shears = [p["shear"] for p in curve]
    fine = np.linspace(0, max(shears), 200)
    left.plot(fine, [predicted_correlation(a) for a in fine], "-", color=DARK, lw=1.4)
    left.annotate(
        "predicted", (fine[60], predicted_correlation(fine[60])), (6, 6), textcoords="offset points", color=DARK
    )
    scatter(left, curve, shears, BLUE, "o", "true")
    left.plot(shears, [_median(p) for p in curve], "_", color=BLUE, ms=12, mew=2)
    left.set(title="with the true components", xlabel="shear of the true map", ylabel="weakest rank correlation")
    middle.axhline(1, color=DARK, lw=1.4)
    scatter(middle, curve, shears, BLUE, "o", "theory")
    for name, (label, colour, marker) in CONTROLS.items():
        for ax, what in ((left, "true"), (middle, "theory")):
            points = numbers["controls"][name]
            shift = 0.045 if marker == "s" else 0.09
            scatter(ax, points, [p["shear"] + shift for p in points], colour, marker, what)
        key(middle, colour, label, marker)
    key(middle, BLUE, "diagonal posterior (VAE)", "o")
    middle.legend(loc="lower left")
    middle.set(title="with the singular directions", xlabel="shear of the true map")
    at = np.arange(len(ratios))
    scatter(right, ratios, at, GREEN, "o", "true")
    right.plot(at, [_median(p) for p in ratios], "_", color=GREEN, ms=12, mew=2)
    right.plot([0, 0], [predicted_correlation(0.75**0.5, ratio=2.0), 1], "-", color=DARK, lw=5, alpha=0.2)
    right.annotate("any rotation", (0, 0.72), (5, -12), textcoords="offset points", color=DARK)
    right.plot(at[1:], np.ones(len(at) - 1), "-", color=DARK, lw=1.4)
    labels = [f"{p['ratio']:g}\n{worst_axes_cost(p['ratio']):.3f}" for p in ratios]
    right.set(title="no shear, other ratios", xlabel="ratio of the singular values, and its pull in nats")
    right.set_xticks(at, labels)
    right.set_ylim(max(0.0, min(0.48, *right.get_ylim())), 1.03)
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    curve, ratios = numbers["shear"], numbers["ratio"]
    off = float(np.mean([abs(_median(p) - p["predicted"]) for p in curve]))
    lowest, worst = min(curve, key=_median), min(curve, key=lambda p: p["predicted"])
    weak = [p for p in ratios[1:] if _median(p) <= FOUND]
    slow = (
        f" At ratio {' and '.join(format(p['ratio'], 'g') for p in weak)} the median stays below {FOUND}: the pull on "
        f"the axes is {max(worst_axes_cost(p['ratio']) for p in weak):.3f} nats at most, likely too little for "
        "the training given."
        if weak
        else ""
    )
    kept = min(_median(p, "theory") for p in curve)
    shift = (
        "The shear does not stop the model from finding components, it changes which ones: "
        if kept > FOUND
        else "Not every shear was followed in the training given: "
    )
    return (
        f"The recovery of the true components over the shear lies {off:.3f} from the prediction on average; there is "
        f"no free number in the prediction. It is lowest at shear {lowest['shear']:g} (predicted: "
        f"{worst['shear']:g}). {shift}against the singular directions of the sheared map the medians are {kept:.2f} or "
        f"more. With equal singular values restarts end between {min(ratios[0]['true']):.2f} and "
        f"{max(ratios[0]['true']):.2f}.{slow} {_controls(numbers, rows)}"
    )


def _controls(numbers: Numbers, rows: VerdictRows) -> str:
    slow, fast = (numbers["controls"]["beta-vae-sigma"][0], numbers["fast"])
    worse = "does worse" if rows["beta-vae-sigma"].verdict == "holds" else "is not shown to do worse"
    text = f"The full posterior, whose loss sees no rotation, {worse} at a learning rate of {shapes.LR:g} "
    text += f"({_median(slow):.2f}) and has a median of {_median(fast):.2f} at {FAST:g}."
    if _median(fast) > FOUND:
        text += (
            " So its axes are not left to chance there, the control fails, and an aligned model does not prove by "
            "itself that the diagonal posterior did it. A likely reason, which we did not test: steps of Adam are not "
            "the same in every rotation."
        )
    return text
