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


def subject(latents: Sequence[int]) -> str:
    """ "latent 2 is", "latents 0 and 2 are".

    >>> subject([2]), subject([0, 2])
    ('latent 2 is', 'latents 0 and 2 are')
    """
    return f"latent {latents[0]} is" if len(latents) == 1 else f"latents {words(latents)} are"


def activity(active: int, K: int, kl: bool) -> str:
    if active == 0 and not kl:
        return f"none of {K} latents is active: moving along the codes does not change the output"
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


def mixing(pairs: Sequence[Pair], cost: float, active_cost: float) -> str:
    """Which latents are mixed and what they pay."""
    mixed = [pair for pair in pairs if pair.mixed]
    if not mixed:
        text = f"no two latents are mixed: they cost {number(max(active_cost, 0.0))} nats"
    elif len(mixed) <= 3:
        text = "; ".join(one_pair(pair, cost) for pair in mixed)
    else:
        names = words(sorted({k for pair in mixed for k in (pair.i, pair.j)}))
        text = (
            f"latents {names} are mixed in {len(mixed)} pairs, which cost {number(sum(p.cost for p in mixed))} nats of "
            f"{number(cost)}; the worst is {one_pair(mixed[0], cost)}"
        )
    passive = cost - active_cost
    if passive > 0.1 * cost and passive > 0.01:
        text += (
            f"; {number(passive)} nats of {number(cost)} are noise from passive latents that the decoder still hears"
        )
    return text


def one_pair(pair: Pair, cost: float) -> str:
    """What two mixed latents pay, why, and what would help."""
    text = f"latents {pair.i} and {pair.j} are mixed: they cost {number(pair.cost)} nats of {number(cost)}"
    if pair.degenerate:
        return text + (
            f"; their singular values differ by {pair.difference:.0%}, so the data does not prefer an axis: "
            "change the scale of the data or of beta"
        )
    if pair.saving > 0.1 * pair.cost:
        return f"{text}; a rotation would save {number(pair.saving)} of them: use `align`"
    if pair.coordinates == "polar":
        return f"{text}; together they are polar coordinates, which no rotation separates"
    return f"{text}; no rotation saves a tenth of that, the mixing changes from point to point"


def chance(dto: float | None, haar: float | None) -> str:
    return "" if dto is None or not haar else f"DtO is {dto:.2f}, chance gives {haar:.2f}"


def verdict(
    active: int,
    latents: Sequence[Latent],
    law_numbers: tuple[float | None, float | None],
    pairs: Sequence[Pair],
    costs: tuple[float, float],
    share: float | None,
    dto_numbers: tuple[float | None, float | None],
    full: bool,
) -> str:
    """The whole verdict, findings joined by semicolons."""
    parts = [activity(active, len(latents), latents[0].kl is not None)]
    if active:
        parts += [law(*law_numbers), mixing(pairs, *costs)]
        parts += ["a full posterior, as here, does not pay this; a diagonal one would"] if full else []
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
    heard = [z.index for z in latents if not z.active and z.jacobian_norm > PASSIVE_LISTENS * longest > 0]
    out = []
    if deaf:
        out.append(f"{subject(deaf)} in use by the encoder but dead in the decoder, which ignores them")
    if heard:
        out.append(f"{subject(heard)} without information but heard by the decoder: noise in the output")
    return out
