"""A3: Allen 2024, eq. 7: the posterior variances that a VAE learns follow from its decoder.

    1 / Sigma_ii = 1 + M_ii / beta,     M = D^T A^2 D at z = e(x)      (diagonal posterior)

The stationary point of the ELBO itself has the curvature averaged over the posterior (Price's theorem),
1 / Sigma_ii = 1 - E_q[H_ii] / beta. Eq. 7 takes H at the mean, and without the decoder's second derivative.

A passive latent has Sigma_ii ~ 1 and M_ii ~ 0 whatever the decoder does, so the law is judged on the active ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.geometry import hessian, law_fit, metrics, sigma_law
from unseam.geometry.verdict import LAW_ERROR, LAW_R
from unseam.models import Autoencoder
from unseam.rng import generator
from unseam.run import Run
from unseam_papers.allen import setups
from unseam_papers.allen.setups import MIDDLE, MODEL_SETUPS, Settings, look_at_setup, members_at_beta, train_setup
from unseam_papers.frame.draw import DARK, Figure, key, panels
from unseam_papers.frame.exhibit import Numbers, Work, mean
from unseam_papers.frame.rows import VerdictRow, VerdictRows
from unseam_papers.frame.verdicts import as_kind, control, share, unrun

ID, TITLE = "A3", "The Sigma law"
CLAIM = (
    "At the optimum the posterior precision is I + D^T A^2 D / beta, so the variances a VAE learns are given by the "
    "decoder's Jacobian."
)
SOURCE = "Allen 2024, eq. 7; blog, eq. 1; Kumar & Poole 2020"
PAPER = setups.LARGER
LEAST_R, MOST_ERROR = LAW_R, LAW_ERROR  # when `unseam diagnose` says that variances follow the law
NARROWER = 0.95, 0.10  # the limits of this exhibit until they were made those of `diagnose`; shown beside
LAWS = ("law", "no beta", "exact H", "averaged")
CURVATURE = 1e-3  # the averaged curvature of a latent that nothing depends on may come out just above 0
SHADES = ("#0b3c6f", "#1f6fb4", "#d9731a", "#b43a3a", "#2d8a4e")
EQ7 = "Sigma_x^-1 = I + D^T A^2 D / beta"
BLOG = "Sigma_x^-1 = I - E_q[H] / beta, the blog's eq. 1"
CHOICES = (
    *setups.SETUP_CHOICES,
    f"When the law holds in a restart: correlation of log variances above {LEAST_R} and a median relative error below "
    f"{100 * MOST_ERROR:.0f} %, over held-out points and active latents (E[sigma^2] < 0.8 or std(mu) > 0.5): the "
    "limits at which `unseam diagnose` says that variances follow the law. Until a review they were 0.95 and 10 %, and "
    "eq. 7 differed at all seven betas; the new limits were fixed before the longer trainings on fresh seeds (scale "
    "large).",
    "The blog prints the law with H averaged over the posterior (its eq. 1): these rows are counted.",
    "Controls: the M of another point (correlation within a latent must go), beta left out, the first snapshot.",
    "The row trained on the det-ELBO was added after the Gaussian rows had differed.",
)


SCALES = {
    "tiny": Settings(setups.TINY_COHORT, points=20, draws=2),
    "quick": Settings(setups.QUICK, points=200, draws=16),
    "large": Settings(setups.LARGE, points=200, draws=16),
    "paper": Settings(setups.PAPER, points=500, draws=64),
}


def compute(settings: Settings, work: Work) -> Numbers:
    found = work.each(MODEL_SETUPS, lambda name: _measure(name, settings, work))
    return found | {"det": work.once("det", lambda: trained_without_noise(settings, work))}


def _measure(name: str, settings: Settings, work: Work) -> list[dict[str, Any]]:  # one entry a beta
    run = train_setup(work, name, settings.cohort)
    return [_at_beta(run, beta, settings) for beta in settings.cohort.betas(name)]


def _at_beta(run: Run, beta: float, settings: Settings) -> dict[str, Any]:
    """The fits of every seed; active and passive latents apart."""
    chosen = members_at_beta(run, beta)
    found = [laws(run, member, beta, settings) for member in chosen]
    early = laws(run, chosen[0], beta, settings, step=run.snapshots()[0])
    return {
        "beta": beta,
        "active": [int(each["active"].sum()) for each in found],
        "fits": {law: fits(found, law) for law in LAWS},
        "passive": fits(found, "law", passive=True),
        "shuffled": [f["within"] for f in fits([{**each, "law": each["law"][::-1]} for each in found], "law")],
        "early": fits([early], "law"),
        "points": {key: found[0][key][:, found[0]["active"]] for key in ("learned", "law")},  # the first seed, to draw
    }


def trained_without_noise(settings: Settings, work: Work) -> list[dict[str, float]]:
    """Members trained on the det-ELBO with H = -M, of which eq. 7 is exactly the stationary point."""
    run, beta = train_setup(work, "Gaussian", settings.cohort, "det-vae"), MIDDLE["Gaussian"]
    return fits([laws(run, member, beta, settings) for member in members_at_beta(run, beta)], "law")


@torch.no_grad()
def laws(run: Run, member: int, beta: float, settings: Settings, step: int | None = None) -> dict[str, Array]:  # (N, K)
    """Learned variances, what each form of the law makes of the decoder, and which latents are active (K,)."""
    model, seen = look_at_setup(run, member, settings.points, step)
    e, variance = seen.posterior.mean, seen.posterior.variance()
    M = metrics(model.decode, e, model.likelihood).pullback
    H = mean_hessian_diagonal(model, seen.x, e, variance, settings.draws)
    at_mean = hessian(model.decode, e, seen.x, model.likelihood).diagonal(dim1=1, dim2=2)
    return {
        "learned": variance.numpy(),
        "law": sigma_law(M, beta).numpy(),
        "no beta": sigma_law(M, 1.0).numpy(),
        "exact H": (1 / (1 - at_mean / beta).clamp(min=CURVATURE)).numpy(),
        "averaged": (1 / (1 - H / beta).clamp(min=CURVATURE)).numpy(),
        "active": setups.active(e, variance),
    }


def mean_hessian_diagonal(model: Autoencoder, x: Tensor, e: Tensor, variance: Tensor, draws: int) -> Tensor:  # (N, K)
    """E_q[H_ii] over pairs of opposite draws of z."""
    half = torch.randn(max(1, draws // 2), *e.shape, generator=generator(0, "A3"), dtype=e.dtype)
    shifts = [sign * variance.sqrt() * one for one in half for sign in (1, -1)]
    H = [hessian(model.decode, e + shift, x, model.likelihood) for shift in shifts]
    return torch.stack(H).mean(0).diagonal(dim1=1, dim2=2)


def fits(found: Sequence[Mapping[str, Array]], law: str, passive: bool = False) -> list[dict[str, float]]:
    """r and error over the active (or passive) latents of every member that has any, and r within a latent.

    >>> one = {"learned": np.array([[0.1, 1.0], [0.2, 1.0]]), "law": np.array([[0.2, 1.0], [0.4, 1.0]])}
    >>> one["active"] = np.array([True, False])
    >>> [(round(f["r"], 6), f["error"]) for f in fits([one], "law")], fits([one], "law", passive=True)[0]["error"]
    ([(1.0, 0.5)], 0.0)
    """
    kept = [(each, ~each["active"] if passive else each["active"]) for each in found]
    both = [law_fit(each["learned"][:, used], each[law][:, used]) for each, used in kept if used.any()]
    return [
        {"r": fit.r or 0.0, "error": fit.error, "within": float(np.nan_to_num(fit.per_latent).mean())} for fit in both
    ]


def judge(numbers: Numbers) -> list[VerdictRow]:
    rows = [row for name in MODEL_SETUPS for entry in numbers[name] for row in at_one(name, entry)]
    what = f"Gaussian, beta = {MIDDLE['Gaussian']:g}, trained on the det-ELBO: the same"
    det = as_kind(_held("det", what, numbers["det"], "eq. 7 is its stationary point"), "beyond the paper")
    return [*rows, det, *(passive_entries(name, numbers[name]) for name in MODEL_SETUPS)]


def at_one(name: str, entry: Mapping[str, Any]) -> list[VerdictRow]:
    found, key, what = entry["fits"], f"{name} {entry['beta']:g}", f"{name}, beta = {entry['beta']:g}"
    note = f"active latents: {', '.join(map(str, sorted(set(entry['active']))))}"
    if found["law"]:
        note += f"; within a latent r = {mean(found['law'], 'within'):.2f}, with another point's M "
        note += f"{np.mean(entry['shuffled']):.2f}; beta left out: error {100 * mean(found['no beta'], 'error'):.0f} %"
        note += f"; exact H at the mean: {100 * mean(found['exact H'], 'error'):.1f} %"
    law = _held(key, f"{what}: learned variances against 1 / (1 + M_ii / beta), active latents", found["law"], note)
    what += ": the same with H averaged over the posterior"
    return [law, _held(f"{key} averaged", what, found["averaged"], law=BLOG)]


def _held(key: str, what: str, found: Sequence[Mapping[str, float]], note: str = "", law: str = EQ7) -> VerdictRow:
    """The law holds in more than half of the restarts."""
    if not found:
        return unrun(key, what, law, "no latent is active", ours="-", reason="cannot be asked")
    good, narrow = (
        sum(f["r"] >= r and f["error"] <= error for f in found) for r, error in ((LEAST_R, MOST_ERROR), NARROWER)
    )
    row = share(key, what, law, good, len(found), note=note)
    ours = (
        f"r = {mean(found, 'r'):.3f}, median error {100 * mean(found, 'error'):.1f} %; within the limits in {row.ours}"
    )
    limit = f"r >= {LEAST_R}, error <= {MOST_ERROR:.0%} in most restarts"
    rule = f"{row.rule}; within r >= {NARROWER[0]}, error <= {NARROWER[1]:.0%} in {narrow} of {len(found)}"
    return replace(row, ours=ours, limit=limit, rule=rule)


def passive_entries(name: str, entries: Sequence[Mapping[str, Any]]) -> VerdictRow:
    errors = [100 * f["error"] for entry in entries for f in entry["passive"]]
    ours = f"median error {np.mean(errors):.1f} % in {len(errors)} members" if errors else "every latent is active"
    note = "both sides are about 1 whatever the decoder does"
    return control(f"{name} passive", f"{name}: passive latents alone", ours, note=note)


def draw(numbers: Numbers) -> Figure:
    """Learned against predicted variances of active latents, one colour a beta; the law is the diagonal."""
    fig, axes = panels(columns=2)
    for ax, name in zip(axes, MODEL_SETUPS, strict=True):
        for entry, colour in zip(numbers[name], SHADES, strict=False):
            x, y = (np.ravel(entry["points"][key]) for key in ("law", "learned"))
            ax.plot(x, y, ".", color=colour, ms=3, alpha=0.5, mew=0, rasterized=True)
            key(ax, colour, f"beta = {entry['beta']:g}", "o", ms=5)
        both = [np.ravel(entry["points"][key]) for entry in numbers[name] for key in ("law", "learned")]
        low = min(np.concatenate(both), default=0.1)
        ax.plot([low, 1.2], [low, 1.2], color=DARK, lw=0.8, label="eq. 7")
        ax.set(xscale="log", yscale="log", title=f"{name} likelihood, active latents")
        ax.set(xlabel="predicted variance 1 / (1 + M_ii / beta)", ylabel="learned posterior variance")
        ax.legend(loc="upper left")
    return fig


def conclude(numbers: Numbers, rows: VerdictRows) -> str:
    text = []
    for name in MODEL_SETUPS:
        entries = [entry for entry in numbers[name] if entry["fits"]["law"]]
        if not entries:
            continue
        law, better = ([100 * mean(e["fits"][key], "error") for e in entries] for key in ("law", "averaged"))
        early = [100 * f["error"] for entry in entries for f in entry["early"]]
        text.append(
            f"{name}: over {len(entries)} betas the law misses an active latent's variance by {min(law):.1f} to "
            f"{max(law):.1f} % (median)"
            + (f", after {np.mean(early):.0f} % at the first snapshot" if early else "")
            + f"; with the curvature averaged over the posterior it is {min(better):.1f} to {max(better):.1f} %. "
            f"Passive latents, which say nothing: {rows[f'{name} passive'].ours}."
        )
    return " ".join(text) + (
        f" Eq. 7 is the optimum of the det-ELBO with H = -M: trained on that, {rows['det'].ours}. The sampled ELBO has "
        "its optimum where the curvature is averaged over the posterior, and the two are the same only as far as the "
        "decoder is linear across a posterior."
    )
