"""Findings in plain words, computed from the numbers they quote: what a member separates, why better than another."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unseam.geometry.verdict import words
from unseam.show.report.collect import View

_NOTICED = 0.1  # of a factor's entropy: below it a latent does not know the factor
_HELD = 0.25  # of a factor's entropy: from here on a latent holds it
_COLLAPSED = 0.05  # nats of KL a latent, below which it has collapsed onto the prior


class Held(NamedTuple):
    """Where a factor is: the latent that knows most of it and the runner-up, each with its share of the entropy."""

    factor: str
    latent: int
    share: float
    second: int | None
    second_share: float
    best_share: float = 0.0  # what that latent knows of the factor it knows best

    @property
    def separated(self) -> bool:
        """One latent knows at least twice as much of the factor as any other, a good part of it, and nothing of another
        factor that would be twice as much."""
        enough = self.share >= _HELD and self.share >= 2 * self.second_share
        return enough and 2 * self.share >= self.best_share


def factor_answers(view: View) -> list[Held]:
    """One row per factor; empty when the data has no factors."""
    if view.share is None:
        return []
    rows = []
    for name, share in zip(view.factors, view.share, strict=True):
        order = np.argsort(share)[::-1]
        second = int(order[1]) if len(order) > 1 else None
        first, rest = int(order[0]), 0.0 if second is None else share[second]
        rows.append(Held(name, first, share[first], second, rest, float(np.max(view.share[:, first]))))
    return rows


def separation(view: View) -> str:
    """Which latents hold which factors, and over which latents the others are spread."""
    rows = factor_answers(view)
    apart = holding([row for row in rows if row.separated]) + (", but not cleanly" if unclean(view) else "")
    parts = [apart, *(spread_words(row) for row in rows if not row.separated)]
    return "; ".join(part for part in parts if part)


def holding(rows: Sequence[Held]) -> str:
    """Latents and the factors they hold, in one phrase when each factor has its own; else how much of each.

    >>> holding([Held("x", 4, 0.53, 0, 0.0), Held("y", 4, 0.15, 0, 0.0), Held("size", 2, 0.7, 0, 0.1)])
    'latent 4 holds x and y together (0.53 and 0.15 of their entropies); latent 2 holds size'
    """
    if len({row.latent for row in rows}) < len(rows):
        latents = dict.fromkeys(row.latent for row in rows)
        return "; ".join(_together([row for row in rows if row.latent == z]) for z in latents)
    if not rows:
        return ""
    which, what = words([row.latent for row in rows]), words([row.factor for row in rows])
    return f"latents {which} hold {what}, one each" if len(rows) > 1 else f"latent {which} holds {what}"


def _together(rows: Sequence[Held]) -> str:
    """What one latent holds."""
    text = f"latent {rows[0].latent} holds {words([row.factor for row in rows])}"
    shares = words([f"{row.share:.2f}" for row in rows])
    return f"{text} together ({shares} of their entropies)" if len(rows) > 1 else text


def spread_words(row: Held) -> str:
    if row.share < _NOTICED:
        return f"no latent knows {row.factor} (the best holds {row.share:.2f} of its entropy)"
    if row.share >= 2 * row.second_share:
        return f"no latent holds {row.factor} (latent {row.latent} knows {row.share:.2f} of its entropy)"
    return (
        f"{row.factor} is spread over latents {row.latent} and {row.second} "
        f"({row.share:.2f} and {row.second_share:.2f} of its entropy)"
    )


def headline(view: View) -> str:
    """The first line of a report: which latents hold which factors; without factors, what is in use and mixed."""
    d = view.diagnosis
    if not d.active:
        nats = sum(z.kl or 0.0 for z in d.latents)
        if nats < _COLLAPSED * len(d.latents):
            return "Nothing is encoded: every latent has collapsed onto the prior."
        return f"No latent is active, although together they hold {nats:.2f} nats of KL."
    if view.mig is None:
        mixed = [pair for pair in d.pairs if pair.mixed]
        how = f"{len(mixed)} pair{'s' if len(mixed) > 1 else ''} of them mixed" if mixed else "no two of them mixed"
        return f"{d.active} of {len(d.latents)} latents are in use, {how}."
    spread = [row.factor for row in factor_answers(view) if not row.separated]
    apart = holding([row for row in factor_answers(view) if row.separated])
    apart += ", but not cleanly" if unclean(view) else ""
    rest = f"{words(spread)} {'are' if len(spread) > 1 else 'is'} not held by any one latent" if spread else ""
    return closed_sentence(
        "; ".join(part for part in (apart or "no factor has a latent of its own", rest if apart else "") if part)
    )


def unclean(view: View) -> bool:
    """Whether latents that hold a factor are mixed with each other all the same."""
    holders = {row.latent for row in factor_answers(view) if row.separated}
    return any(pair.mixed and {pair.i, pair.j} <= holders for pair in view.diagnosis.pairs)


def axes_words(view: View) -> str:
    """DtO beside chance."""
    d = view.diagnosis
    return "" if d.dto is None or not d.dto_haar else f" (DtO {d.dto:.2f}; random axes give {d.dto_haar:.2f})"


def why(winner: View, loser: View) -> tuple[str, str]:
    """What the compared member mixes and what that costs; what the chosen one does instead. Every number is measured.

    Costs are in nats of loss per beta, so that members with different beta compare.
    """
    return loser_sentence(loser), winner_sentence(winner, loser)


def loser_sentence(loser: View) -> str:
    mixed = [pair for pair in loser.diagnosis.pairs if pair.mixed]
    if mixed:
        what = f"mixes latents {words([f'{pair.i} with {pair.j}' for pair in mixed[:3]])}"
    else:
        what = "has the least orthogonal axes"
    text = f"{loser.name} {what}{axes_words(loser)}. That costs {loser.cost:.3f} nats of loss per beta"
    spread = [row.factor for row in factor_answers(loser) if not row.separated]
    if spread:
        text += f". No single latent holds {words(spread, last='or')}"
    return closed_sentence(text)


def winner_sentence(winner: View, loser: View) -> str:
    but = "" if winner.cost <= loser.cost else ", although mixing costs more"
    text = (
        f"{winner.name} has more orthogonal axes{axes_words(winner)}{but}. Mixing costs {winner.cost:.3f} nats per beta"
    )
    if winner.mig is None or loser.mig is None:
        return closed_sentence(text)
    a, b = winner.mig.value, loser.mig.value
    if a > b:
        held = separation(winner)
        return closed_sentence(f"{text}. {held[:1].upper()}{held[1:]}. MIG is {a:.2f} instead of {b:.2f}")
    return closed_sentence(f"{text}. But labels do not confirm the choice: MIG {a:.2f} against {b:.2f}")


def closed_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
