"""A diagnosis in plain words: one sentence a finding, the finding's number in it, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from unseam.geometry.diagnosis import Latent, Pair, number

PASSIVE_LISTENS = 0.05  # a passive latent whose column is this share of the longest still moves the output


def words(latents: Sequence[int]) -> str:
    """0, 2 and 5.

    >>> words([0, 2, 5])
    '0, 2 and 5'
    """
    names = [str(k) for k in latents]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def activity(active: int, K: int) -> str:
    if active == 0:
        return f"none of {K} latents is active: the posterior has collapsed onto the prior; lower beta"
    return f"{active} of {K} latents active"


def law(r: float | None, error: float | None) -> str:
    if error is None:
        return "no posterior was given, so the Sigma law could not be tested"
    if r is None:
        return f"posterior variances do not vary; they are within {error:.0%} of the Sigma law"
    how = (
        "follow the Sigma law"
        if r >= 0.9
        else "follow the Sigma law loosely"
        if r >= 0.5
        else "do not follow the Sigma law"
    )
    return f"posterior variances {how} (r = {r:.2f}, median error {error:.0%})"


def mixing(pairs: Sequence[Pair], cost: float) -> str:
    """Which latents are mixed and what they pay."""
    mixed = [pair for pair in pairs if pair.mixed]
    if not mixed:
        return f"no two latents are mixed: the entanglement cost is {number(cost)} nats"
    if len(mixed) > 3:
        names = words(sorted({k for pair in mixed for k in (pair.i, pair.j)}))
        worst = mixed[0]
        return (
            f"latents {names} are mixed in {len(mixed)} pairs, which cost {number(sum(p.cost for p in mixed))} nats of "
            f"{number(cost)}; the worst is {worst.i} with {worst.j} ({number(worst.cost)} nats)"
        )
    return "; ".join(one_pair(pair, cost) for pair in mixed)


def one_pair(pair: Pair, cost: float) -> str:
    text = f"latents {pair.i} and {pair.j} are mixed: they cost {number(pair.cost)} nats of {number(cost)}"
    if pair.coordinates == "polar":
        text += "; together they are polar coordinates, so no rotation separates them"
    elif pair.degenerate:
        text += (
            f"; their singular values differ by {pair.difference:.0%}, so the data does not prefer an axis: "
            "change the scale of the data or of beta"
        )
    else:
        text += f"; the data prefers an axis by {number(pair.preference)} nats: use `align`"
    return text


def chance(dto: float | None, haar: float | None) -> str:
    return "" if dto is None or not haar else f"DtO is {dto:.2f}, chance gives {haar:.2f}"


def verdict(
    active: int,
    K: int,
    law_numbers: tuple[float | None, float | None],
    pairs: Sequence[Pair],
    cost: float,
    share: float | None,
    dto_numbers: tuple[float | None, float | None],
) -> str:
    """The whole verdict, sentences joined by semicolons."""
    parts = [activity(active, K)]
    if active:
        parts += [law(*law_numbers), mixing(pairs, cost)]
        parts += [f"the cost is {share:.1%} of the ELBO"] if share is not None and share >= 0.001 else []
        parts += [text] if (text := chance(*dto_numbers)) else []
    return "; ".join(parts)


def degeneracy_warnings(pairs: Sequence[Pair]) -> list[str]:
    """Pairs without a preferred axis, mixed or not."""
    return [
        f"latents {p.i} and {p.j}: their singular values differ by {p.difference:.1%} only (preference "
        f"{number(p.preference)} nats), so their axes are an accident of the seed"
        for p in pairs
        if p.degenerate
    ]


def latent_warnings(latents: Sequence[Latent]) -> list[str]:
    """Latents on which encoder and decoder disagree."""
    longest = max(z.jacobian_norm for z in latents)
    deaf = [z.index for z in latents if z.active and z.jacobian_norm < 1e-3 * longest]
    heard = [z.index for z in latents if not z.active and z.jacobian_norm * 1.0 > PASSIVE_LISTENS * longest > 0]
    out = []
    if deaf:
        out.append(f"latents {words(deaf)} vary over the data but the decoder ignores them (dead columns)")
    if heard:
        out.append(f"latents {words(heard)} carry no information but the decoder listens to them: noise in the output")
    return out
