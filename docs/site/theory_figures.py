"""The figures of docs/theory.md: `python docs/site/theory_figures.py` writes docs/figures/theory-*.svg."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from unseam.linear.linear_vae import entanglement_cost

FIGURES = Path(__file__).parents[1] / "figures"
LENGTHS = np.array([3.0, 1.2])  # how far the two latents move the data
BLUE, ORANGE, GREY = "#2a6f97", "#e07a1f", "#888888"


def turned(angle: float) -> np.ndarray:
    """A decoder of two latents whose axes are turned by an angle in degrees: W (2, 2)."""
    a = np.deg2rad(angle)
    return np.diag(LENGTHS) @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def posteriors() -> None:
    """The best posterior of a full and of a diagonal covariance, for axes that fit the decoder and axes that do not."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.6))
    for panel, angle, title in zip(panels, (0, 35), ("orthogonal directions", "mixed directions"), strict=True):
        W = turned(angle)
        full = np.linalg.inv(np.eye(2) + W.T @ W)
        diagonal = np.diag(1 / (1 + np.diag(W.T @ W)))
        for covariance, colour, label in ((full, GREY, "full posterior"), (diagonal, BLUE, "diagonal posterior")):
            values, vectors = np.linalg.eigh(covariance)
            tilt = np.rad2deg(np.arctan2(vectors[1, 0], vectors[0, 0]))
            sizes = 2 * np.sqrt(values)
            panel.add_patch(Ellipse((0, 0), *sizes, angle=tilt, fill=False, color=colour, lw=2.5, label=label))
        panel.set(xlim=(-0.8, 0.8), ylim=(-0.8, 0.8), aspect="equal", xlabel="latent 1", ylabel="latent 2", title=title)
        panel.spines[["top", "right"]].set_visible(False)
    panels[1].legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
    figure.savefig(FIGURES / "theory-posteriors.svg", bbox_inches="tight", metadata={"Date": None})


def cost() -> None:
    """What a diagonal posterior pays over the angle of the axes, for directions of unequal and of equal lengths."""
    figure, panel = plt.subplots(figsize=(6, 3.2))
    angles = np.linspace(0, 90, 181)
    unequal = [entanglement_cost(turned(angle), s2=1.0, beta=1.0) for angle in angles]
    panel.plot(angles, unequal, color=BLUE, lw=2.5, label=f"lengths {LENGTHS[0]:g} and {LENGTHS[1]:g}")
    panel.plot(angles, np.zeros_like(angles), color=ORANGE, lw=2.5, label="equal lengths, or a full posterior")
    panel.set(xlabel="angle between latent axes and the decoder's axes (degrees)", ylabel="cost (nats)")
    panel.set_ylim(top=0.33)
    panel.legend(frameon=False, loc="upper left")
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURES / "theory-cost.svg", bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams.update({"font.size": 12, "svg.hashsalt": "unseam"})
    posteriors()
    cost()
