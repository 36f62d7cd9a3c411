"""A diagnosis as one picture: cosine matrix, Sigma-law scatter, singular value spectra, cost over training."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unseam.geometry import Diagnosis
from unseam.geometry.polarized import polarized_since
from unseam.runs.history import History
from unseam.show.style import INK, shade, styled

_POINTS = 400  # dots per latent in the scatter


@styled
def diagnosis_figure(diagnosis: Diagnosis, history: History | None = None, title: str = "") -> Figure:
    """The four panels; the fourth needs a history and is left out without one."""
    figure = Figure(figsize=(11, 9) if history is not None else (15, 4.6), layout="constrained")
    axes = figure.subplots(2, 2).ravel() if history is not None else figure.subplots(1, 3)
    _cosine_matrix(axes[0], diagnosis)
    law_scatter(axes[1], diagnosis)
    spectra(axes[2], diagnosis)
    if history is not None:
        _over_training(axes[3], history)
    figure.suptitle(title, fontsize=11)
    return figure


def _cosine_matrix(axes: Axes, d: Diagnosis) -> None:
    """Root mean square cosine between the columns of A D: white off the diagonal = orthogonal."""
    order = sorted(range(len(d.latents)), key=lambda k: (not d.latents[k].active, k))  # active ones first
    matrix = np.asarray(d.arrays["cosines"])[np.ix_(order, order)]
    K = len(matrix)
    image = axes.imshow(matrix, vmin=0, vmax=1, cmap="Greys")
    if K <= 12:
        for i, j in np.ndindex(K, K):
            ink = "white" if matrix[i, j] > 0.5 else "black"
            axes.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize=7, color=ink)
    labels = [str(k) if d.latents[k].active else f"({k})" for k in order]
    if 0 < d.active < K:
        axes.axhline(d.active - 0.5, color="tab:red", lw=1)
        axes.axvline(d.active - 0.5, color="tab:red", lw=1)
    if K <= 32:
        axes.set_xticks(range(K), labels)
        axes.set_yticks(range(K), labels)
    axes.set(title="rms cosine between columns of A D", xlabel="latent (in brackets: passive)", ylabel="latent")
    axes.grid(visible=False)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)


def law_scatter(axes: Axes, d: Diagnosis, rasterized: bool = False) -> None:
    """Learned against predicted posterior variance, one dot per latent and point."""
    predicted, learned = d.arrays.sigma2_law, d.arrays.sigma2
    axes.set(title="Sigma law", xlabel="variance predicted from the decoder", ylabel="learned posterior variance")
    if learned is None:
        axes.text(0.5, 0.5, "no posterior given", ha="center", va="center", transform=axes.transAxes)
        return
    rows = np.linspace(0, len(predicted) - 1, min(_POINTS, len(predicted))).round().astype(int)
    for k, latent in enumerate(d.latents):
        how: Any = {"ms": 3, "alpha": 0.5, "label": str(k), "rasterized": rasterized}
        axes.loglog(predicted[rows, k], learned[rows, k], ".", color=shade(k, latent.active), **how)
    ends = [min(predicted.min(), learned.min()), 1.2]
    axes.plot(ends, ends, color=INK, lw=0.8)
    r = "" if d.sigma_law_r is None else f" (r = {d.sigma_law_r:.2f}, median error {d.sigma_law_error:.0%})"
    axes.set_title("Sigma law" + r)
    if predicted.shape[1] <= 12:
        axes.legend(title="latent", fontsize=7, markerscale=2, ncols=2)


def spectra(axes: Axes, d: Diagnosis) -> None:
    """Singular values of A D, largest first: the median over points and where 80 % of the points lie."""
    s = np.maximum(d.arrays.singular_values, 1e-12)
    order = np.arange(1, s.shape[1] + 1)
    low, middle, high = np.quantile(s, [0.1, 0.5, 0.9], axis=0)
    axes.errorbar(order, middle, yerr=[middle - low, high - middle], fmt="o", color=INK, ms=4, capsize=3)
    if s.shape[1] > 1:
        gaps = 1 - middle[1:] / middle[:-1]
        for k in np.flatnonzero(gaps < 0.1):
            axes.annotate(f"{gaps[k]:.0%}", (order[k] + 0.5, middle[k]), textcoords="offset points", xytext=(0, 10),
                          ha="center", fontsize=8, color="tab:red")  # fmt: skip
    axes.set(yscale="log", title="singular values of A D (80 % of points)", xlabel="order", ylabel="singular value")
    axes.set_xlim(0.5, len(order) + 0.5)
    if s.shape[1] <= 16:
        axes.set_xticks(order)
    lowest = max(float(middle.min()) / 3, float(middle.max()) * 1e-5)
    axes.set_ylim(lowest, float(high.max()) * 2)


def _over_training(axes: Axes, h: History) -> None:
    """Delta_KL at the logged steps and, where there are snapshots, the entanglement cost."""
    if not len(h.steps):
        axes.text(0.5, 0.9, "no KL: a point posterior", ha="center", transform=axes.transAxes)
    shown = np.isfinite(h.delta_kl)
    axes.semilogy(h.steps[shown], np.maximum(h.delta_kl[shown], 1e-6), color="tab:gray", lw=1.2, label="Delta_KL")
    axes.axhline(0.03, color="tab:gray", lw=0.8, ls=":")
    since = polarized_since(h.delta_kl)
    when = "never polarized" if since is None else f"polarized since step {int(h.steps[since])}"
    axes.set(title=f"over training ({when})", xlabel="step", ylabel="Delta_KL (dotted: 3 %)")
    if len(h.cost):
        right = axes.twinx()
        right.plot(h.snapshot_steps, h.cost, "o-", color="tab:red", ms=3, lw=1.2)
        right.set_ylabel("entanglement cost (nats)", color="tab:red")
        right.set_ylim(bottom=0)
