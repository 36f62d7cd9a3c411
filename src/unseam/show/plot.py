"""`unseam.plot(result, ax=None) -> Axes`: one picture of a result, in a notebook or in a subplot of your own."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from unseam.errors import BadInput
from unseam.finding import Findings
from unseam.matching import Match
from unseam.metrics.suite import Scores
from unseam.run import Run
from unseam.show.style import ACCENT, CHOSEN, OTHER, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 30  # of a table, that are drawn


def plot(result: Any, ax: Axes | None = None) -> Axes:
    """Draw a result.

    Parameters
    ----------
    result : Findings, Scores, Match, Diagnosis or Run
        Findings: what each factor moves, in standard deviations of the columns. Scores: the metrics, with their
        intervals and chance levels where they were computed. Match: how alike the matched directions are, beside
        chance. A diagnosis: the cosines between the decoder's directions. A run: its losses.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    Examples
    --------
    >>> import unseam
    >>> g = np.random.default_rng(0)
    >>> v = g.integers(0, 5, (200, 2))
    >>> unseam.plot(unseam.score(v + 0.1 * g.normal(size=v.shape), v, metrics="mig,sap")).get_xlabel()
    'score'
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    _draw(result, ax)
    return ax


@singledispatch
def _draw(result: Any, ax: Axes) -> None:
    if hasattr(result, "arrays") and hasattr(result, "verdict"):  # a Diagnosis: its module needs torch, this one not
        _draw_diagnosis(result, ax)
        return
    raise BadInput(
        f"result is a {type(result).__name__}; give what find, score, match, diagnose, fit or load_run returned"
    )


@_draw.register(Findings)
def _draw_findings(result: Findings, ax: Axes) -> None:
    if result.prepared.shape is not None:
        raise BadInput("findings on images move pixels: their strips are on findings.html, or in found.traversals()")
    names = list(dict.fromkeys(move.name for factor in result.factors for move in factor.moves))[:_COLUMNS]
    shares = np.zeros((len(names), result.count))
    for column, factor in enumerate(result.factors):
        for move in factor.moves:
            if move.name in names:
                shares[names.index(move.name), column] = move.share
    most = float(np.abs(shares).max(initial=0)) or 1.0
    image = ax.imshow(shares, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    ax.set_yticks(range(len(names)), [plain(name[:32]) for name in names])
    ax.set_xticks(range(result.count), [f"{f.latent}\n{f.grade}" for f in result.factors])
    ax.set_xlabel("factor")
    ax.figure.colorbar(image, ax=ax, label="standard deviations")


@_draw.register(Scores)
def _draw_scores(result: Scores, ax: Axes) -> None:
    scores = list(result.values())[::-1]
    places = np.arange(len(scores))
    ax.barh(places, [s.value for s in scores], color=ACCENT, height=0.6)
    for place, s in zip(places, scores, strict=True):
        if s.ci is not None:
            ax.plot(s.ci, [place, place], color="black", lw=1)
        if s.chance is not None:
            ax.plot([s.chance] * 2, [place - 0.4, place + 0.4], color=CHOSEN, lw=2)
    ax.set_yticks(places, [s.name for s in scores])
    ax.set_xlabel("score" + (" (orange: chance)" if any(s.chance is not None for s in scores) else ""))


@_draw.register(Match)
def _draw_match(result: Match, ax: Axes) -> None:
    for pair in result.pairs:
        values = np.sort(pair.values)[::-1]
        ax.plot(
            np.arange(1, len(values) + 1), values, ".-", label=f"{result.names[pair.one]} - {result.names[pair.two]}"
        )
        ax.axhline(pair.chance, color=OTHER, lw=0.8)
    ax.axhline(result.at, color=CHOSEN, lw=0.8, ls="--")
    ax.set_xlabel(f"matched {result.of}, the most alike first")
    ax.set_ylabel("rank correlation" if result.of == "codes" else "cosine")
    ax.set_ylim(0, 1.02)
    if len(result.pairs) <= 10:
        ax.legend(title=f"dashed: {result.at:g}, grey: chance")


@_draw.register(Run)
def _draw_run(result: Run, ax: Axes) -> None:
    log = result.log()
    for (member, name), rows in log[log["name"].isin(["loss", "held-out/loss"])].groupby(["member", "name"]):
        held = name != "loss"
        ax.plot(
            rows["step"],
            rows["value"],
            color=f"C{int(str(member)) % 10}",
            lw=1.4 if held else 0.6,
            alpha=1 if held else 0.5,
        )
    ax.set_xlabel("step")
    ax.set_ylabel("loss in nats (bold: held-out)")


def _draw_diagnosis(result: Any, ax: Axes) -> None:
    cosines = np.abs(np.asarray(result.arrays.cosines))
    image = ax.imshow(cosines, cmap="viridis", vmin=0, vmax=1)
    names = [f"z{k}" if k in set(np.flatnonzero(result.arrays.active)) else f"(z{k})" for k in range(len(cosines))]
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("latents (in brackets: passive)")
    ax.figure.colorbar(image, ax=ax, label="|cosine| of the decoder's directions")
