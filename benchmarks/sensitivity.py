"""How sensitive are the axes of a VAE to small violations of orthogonality? The figure of docs/geometry.md.

Left: the true map is sheared, so its columns leave the right angle. Lines: the closed form for a Gaussian truth whose
columns have lengths 1 and 1/r. Points: VAEs trained on such a truth (five seeds a point).
Right: the data is changed where it hurts most (`unseam stress`), by a share of its standard deviation.
Lines: how far axes turn in closed form, for two latents of a linear decoder with 12 outputs.

python benchmarks/sensitivity.py OUT        # trains (minutes), writes benchmarks/results/sensitivity.json and the figure
python benchmarks/sensitivity.py --draw     # the figure alone, from the stored numbers
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from unseam.perturb.stress import stress
from unseam.runs.align import weakest_correlation
from unseam_papers.allen import shapes
from unseam_papers.allen.sheared_truth import predicted_correlation
from unseam_papers.frame.axes import recovery
from unseam_papers.frame.draw import BLUE, GREEN, ORANGE, panels, save_figure, style
from unseam_papers.frame.exhibit import Work

HERE = Path(__file__).resolve()
KEPT = HERE.parent / "results" / "sensitivity.json"
FIGURE = HERE.parents[1] / "docs" / "figures" / "sensitivity.svg"
RATIOS = {1.1: GREEN, 1.5: BLUE, 3.0: ORANGE}
TRAINED = 1.5
SHEARS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75)
SEEDS, STEPS, ROWS = 5, 6000, 1000


def off_angle(shear: float, ratio: float) -> float:
    """Degrees by which the columns (1, 0) and (shear, 1/ratio) miss the right angle.

    >>> round(off_angle(0.5, 2.0))
    45
    """
    return float(np.degrees(np.arctan(shear * ratio)))


def trained(work: Work, shear: float) -> list[float]:
    """The weakest rank correlation of a true component with its latent, for each seed."""
    run = shapes.train_on_shape(work, "beta-vae", SEEDS, STEPS, shear=shear, ratio=TRAINED)
    rows = run.held_out()[:ROWS]
    true = run.data.factors(rows).numpy()
    return [float(weakest_correlation(z, true)) for z in shapes.posterior_means(run, rows)]


def worst_change(ratio: float, degrees: float) -> float:
    """The change that turns the axes so far, as a share of the data's standard deviation; the mean over 20 decoders."""
    radii = []
    for draw in range(20):
        g = torch.Generator().manual_seed(draw)
        columns = torch.linalg.qr(torch.randn(12, 2, generator=g, dtype=torch.float64))[0]
        W = (columns * torch.tensor([1.0, 1 / ratio], dtype=torch.float64)).float()
        codes = torch.randn(400, 2, generator=g)
        codes = (codes - codes.mean(0)) / codes.std(0)
        spread = float((codes @ W.T).std(0).square().mean().sqrt())
        radii.append(stress(lambda z, W=W: z @ W.T, codes, s2=0.01, degrees=degrees).radius / spread)
    return float(np.mean(radii))


def measure(out: Path) -> dict:
    work = Work(out)
    return {
        "shear": [{"shear": a, "off": off_angle(a, TRAINED), "found": trained(work, a)} for a in SHEARS],
        "stress": {
            str(ratio): [{"degrees": t, "change": worst_change(ratio, t)} for t in np.linspace(1, 44, 16).tolist()]
            for ratio in RATIOS
        },
    }


def draw(numbers: dict) -> None:
    with style():
        fig, (left, right) = panels(8.5, 3.2, columns=2)
        shears = np.linspace(0, 1.2, 200)
        for ratio, colour in RATIOS.items():
            x = [off_angle(a, ratio) for a in shears]
            left.plot(
                x, [predicted_correlation(a, ratio) for a in shears], color=colour, label=f"lengths {ratio:g} : 1"
            )
            points = numbers["stress"][str(ratio)]
            turns = [recovery(np.radians(p["degrees"])) for p in points]
            right.plot([0, *(p["change"] for p in points)], [1.0, *turns], color=colour)
        for place in numbers["shear"]:
            left.plot([place["off"]] * len(place["found"]), place["found"], ".", color=BLUE, ms=4)
        left.set(xlabel="columns off the right angle, degrees", ylabel="rank correlation with the truth", xlim=(0, 50))
        right.set(xlabel="worst change of the data / its standard deviation", xlim=(0, None))
        left.set_title("sheared truth (dots: trained)", fontsize=9)
        right.set_title("changed data (stress)", fontsize=9)
        left.legend(fontsize=8)
        for ax in (left, right):
            ax.set_ylim(0.6, 1.02)
        save_figure(fig, FIGURE)


if __name__ == "__main__":
    if sys.argv[1] != "--draw":
        KEPT.write_text(json.dumps(measure(Path(sys.argv[1])), indent=1) + "\n")
    draw(json.loads(KEPT.read_text()))
