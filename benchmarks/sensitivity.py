"""How sensitive are the axes of a VAE to small violations of orthogonality? The figure of docs/geometry.md.

Left: the true map is sheared, so its columns leave the right angle: the closed form for a Gaussian truth whose columns
have lengths 1 and 1/r. Trained VAEs follow it (exhibit A11).
Right: the data is changed where it hurts most (`unseam stress`), by a share of its standard deviation: how far axes
turn in closed form, for two latents of a linear decoder with 12 outputs (mean over 20 decoders).

python benchmarks/sensitivity.py            # seconds; writes benchmarks/results/sensitivity.json and the figure
python benchmarks/sensitivity.py --draw     # the figure alone, from the stored numbers
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from unseam.perturb.stress import stress
from unseam_papers.allen.sheared_truth import predicted_correlation
from unseam_papers.frame.axes import recovery
from unseam_papers.frame.draw import BLUE, GREEN, ORANGE, panels, save_figure, style

HERE = Path(__file__).resolve()
KEPT = HERE.parent / "results" / "sensitivity.json"
FIGURE = HERE.parents[1] / "docs" / "figures" / "sensitivity.svg"
RATIOS = {1.1: GREEN, 1.5: BLUE, 3.0: ORANGE}


def off_angle(shear: float, ratio: float) -> float:
    """Degrees by which the columns (1, 0) and (shear, 1/ratio) miss the right angle.

    >>> round(off_angle(0.5, 2.0))
    45
    """
    return float(np.degrees(np.arctan(shear * ratio)))


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


def measure() -> dict:
    shears, degrees = np.linspace(0, 1.2, 49).tolist(), np.linspace(1, 44, 16).tolist()
    return {
        "shear": {
            str(r): [{"off": off_angle(a, r), "correlation": predicted_correlation(a, r)} for a in shears]
            for r in RATIOS
        },
        "stress": {
            str(r): [{"change": worst_change(r, t), "correlation": recovery(np.radians(t))} for t in degrees]
            for r in RATIOS
        },
    }


def draw(numbers: dict) -> None:
    with style():
        fig, axes = panels(8.5, 3.2, columns=2)
        for ax, what, x in zip(axes, ("shear", "stress"), ("off", "change"), strict=True):
            for ratio, colour in RATIOS.items():
                points = [{x: 0.0, "correlation": 1.0}, *numbers[what][str(ratio)]]
                label = f"lengths {ratio:g} : 1"
                ax.plot([p[x] for p in points], [p["correlation"] for p in points], color=colour, label=label)
            ax.set_ylim(0.65, 1.02)
        left, right = axes
        left.set(xlabel="columns off the right angle, degrees", ylabel="rank correlation with the truth", xlim=(0, 50))
        right.set(xlabel="worst change of the data / its standard deviation", xlim=(0, None))
        left.set_title("sheared truth", fontsize=9)
        right.set_title("changed data (stress)", fontsize=9)
        left.legend(fontsize=8)
        save_figure(fig, FIGURE)


if __name__ == "__main__":
    if "--draw" not in sys.argv[1:]:
        KEPT.write_text(json.dumps(measure(), indent=1) + "\n")
    draw(json.loads(KEPT.read_text()))
