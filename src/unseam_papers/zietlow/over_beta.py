"""Z9: Figure 3.7 of Zietlow 2022. DS and DtO over beta: a plateau, then collapse in steps at beta = l_i / s2."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from unseam.train import Run
from unseam.types import Array
from unseam_papers.frame.draw import BLUE, GREY, INK, ORANGE, figure
from unseam_papers.frame.exhibit import Exhibit, Numbers, Row, Work, holds
from unseam_papers.zietlow.setups import CHOICES, SETUPS, SIZES, WITH_FACTORS, Size, members, scores, search

LINEAR = "Synth. Lin."
PLATEAU = (1e-3, 1e-2)  # well below the first collapse; fixed before the search was run


@dataclass(frozen=True)
class Settings:
    """How much of each set-up is trained."""

    sizes: dict[str, Size]


def collapse_points(run: Run) -> Array:
    """beta_i = l_i / s2 with l_i the variances along the data's principal axes, largest first."""
    x = run.data.batch(run.held_out()).flatten(1).double().numpy()
    return np.linalg.eigvalsh(np.cov(x.T))[::-1] / run.config.architecture.s2


def information(run: Run, chosen: Sequence[int]) -> list[list[float]]:
    """KL of each latent at the end, largest first, one row a member."""
    rows = run.latents()
    last = rows[rows["step"] == run.config.training.steps]
    return [sorted(last[last["member"] == member]["kl"].tolist(), reverse=True) for member in chosen]


def measured(run: Run, chosen: Sequence[int]) -> Numbers:
    return {**scores(run, chosen), "KL": information(run, chosen)}


def compute(settings: Settings, work: Work) -> Numbers:
    """DS, DtO and the KL of each latent, of every restart at every beta."""
    sets: Numbers = {}
    for name, size in settings.sizes.items():
        run, betas = search(work, name, size), SETUPS[name].betas
        points = [work.once(f"{name}-{beta}", partial(measured, run, members(run, beta))) for beta in betas]
        sets[name] = {"betas": betas, "points": points, "epochs": size.epochs}
        if not SETUPS[name].stands_in:
            sets[name]["collapse"] = collapse_points(run)[: SETUPS[name].latents].tolist()
    return {"sets": sets}


def predicted(beta: float, collapse: Sequence[float]) -> Array:
    """KL_i = 1/2 log(beta_i / beta) of an active latent of the linear VAE at its optimum, 0 of a collapsed one.

    >>> predicted(0.5, [0.5, 0.5 * np.e**2]).round(6).tolist()
    [0.0, 1.0]
    """
    return 0.5 * np.log(np.maximum(np.asarray(collapse) / beta, 1.0))


def judge(numbers: Numbers) -> list[Row]:
    found = numbers["sets"][LINEAR]
    at = dict(zip(found["betas"], found["points"], strict=True))
    plateau = [float(np.mean(at[beta]["DS"])) for beta in PLATEAU]
    errors = [
        float(np.abs(np.mean(point["KL"], 0) - predicted(beta, found["collapse"])).max()) for beta, point in at.items()
    ]
    right = [
        (np.array(point["KL"]) > 0.02).sum(1) == (predicted(beta, found["collapse"]) > 0.02).sum()
        for beta, point in at.items()
    ]
    share = 100 * float(np.concatenate(right).mean())
    short = found["epochs"] < SETUPS[LINEAR].epochs
    note = f"{found['epochs']:g} of {SETUPS[LINEAR].epochs} epochs" if short else ""
    return [
        Row(
            "Synth. Lin.: plateau of DS",
            "almost 1.0",
            f"{min(plateau):.2f} to {max(plateau):.2f} at beta = 0.001 and 0.01",
            "not comparable" if short else holds(min(plateau) > 0.95),
            note,
        ),
        Row(
            "Synth. Lin.: collapses in steps, latent i at beta = l_i / s2",
            "in discrete stages",
            f"number of latents in use as predicted in {share:.0f} % of {sum(map(len, right))} restarts",
            holds(share >= 95),
            "in use: KL above 0.02 nats",
        ),
        Row(
            "Synth. Lin.: KL of each latent is 1/2 log(beta_i / beta)",
            "not published",
            f"largest deviation of a mean {max(errors):.3f} nats over {len(errors)} betas",
            "not comparable",
        ),
        *[_ends(name, found) for name, found in numbers["sets"].items()],
    ]


def _ends(name: str, found: Numbers) -> Row:
    """Too large a beta is worse than the best one, in DS."""
    means = [float(np.mean(point["DS"])) for point in found["points"]]
    best = int(np.argmax(means))
    label = SETUPS[name].label(name)
    ours = f"best {means[best]:.2f} at beta = {found['betas'][best]:g}, {means[-1]:.2f} at {found['betas'][-1]:g}"
    return Row(f"{label}: DS rises, then collapses", "yes", ours, holds(means[-1] < means[best] - 0.05))


def draw(numbers: Numbers) -> Figure:
    """DS and DtO over beta, and the KL of each latent with its prediction in the linear case; a column a data set."""
    sets = numbers["sets"]
    fig = figure(3.3 * len(sets) + 0.4, 5.2)
    axes = fig.subplots(2, len(sets), squeeze=False)
    for column, (name, found) in zip(axes.T, sets.items(), strict=True):
        betas = np.array(found["betas"])
        for score, colour in (("DS", ORANGE), ("DtO", BLUE)):
            for beta, point in zip(betas, found["points"], strict=True):
                column[0].plot([beta] * len(point[score]), point[score], "o", ms=2.5, color=colour, alpha=0.4, mew=0)
            column[0].plot(betas, [np.mean(p[score]) for p in found["points"]], color=colour, label=score)
        kl = np.array([np.mean(p["KL"], 0) for p in found["points"]])
        for latent in kl.T:
            column[1].plot(betas, latent, "o-", ms=3, color=INK, lw=0.8)
        fine = np.geomspace(betas.min(), betas.max(), 300)
        if name == LINEAR:
            curves = np.array([predicted(beta, found["collapse"]) for beta in fine])
            column[1].plot(fine, curves, color=ORANGE, lw=2.5, alpha=0.5)
        for ax in column:
            ax.axvline(SETUPS[name].beta, color=GREY, ls="--", lw=1)
            for place in found.get("collapse", ()) if name == LINEAR else ():
                ax.axvline(place, color=ORANGE, ls=":", lw=1.2)
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter(NullFormatter())
        column[0].set_title(SETUPS[name].label(name))
        column[0].legend()
        column[1].set_xlabel("beta (dashed: the one of Z5)")
    axes[0, 0].set_ylabel("DS and DtO")
    axes[1, 0].set_ylabel("KL of each latent, nats")
    return fig


def conclude(numbers: Numbers, rows: Sequence[Row]) -> str:
    found = numbers["sets"][LINEAR]
    first = [float(np.mean(p["DS"])) for p in found["points"]][:2]
    collapse = " and ".join(f"{value:.3f}" for value in sorted(found["collapse"]))
    stages = {
        "agrees": "the latents collapse one after the other where theory puts it",
        "differs": "not every restart has as many latents in use as theory says (training may be too short)",
    }
    return (
        f"In the linear case {stages[rows[1].verdict]}: at beta = {collapse} (dotted), the variances along the "
        "principal axes over s2; below that the KL of each should follow 1/2 log(beta_i / beta) (orange). At the two "
        f"smallest betas, {found['betas'][0]:g} and {found['betas'][1]:g}, DS is {first[0]:.2f} and {first[1]:.2f}: "
        "the force that turns the axes is proportional to beta, so a small beta needs long training. The dashed lines "
        "are the betas of Z5 (Table 3.1 for the synthetic sets)."
    )


Z9 = Exhibit(
    id="Z9",
    title="Figure 3.7: a search over beta",
    claim="Over beta the disentanglement score reaches a plateau, and then the latents collapse in discrete stages.",
    source="Zietlow 2022, Figure 3.7",
    choices=(
        *CHOICES,
        "Which betas: not printed. Ours: see the figure; collapse points of Synth. Lin. lie between them.",
    ),
    scales={
        "tiny": Settings({"Synth. Lin.": Size(2, 0.1)}),
        "quick": Settings(SIZES["quick"]),
        "paper": Settings(WITH_FACTORS),
    },
    compute=compute,
    judge=judge,
    draw=draw,
    conclude=conclude,
)
