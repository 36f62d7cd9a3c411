"""A diagnosis in plain words: one sentence a finding, the finding's number in it, and what to do about it."""

from collections.abc import Sequence

from unseam.geometry.diagnosis import Diagnosis, Latent, Pair, three_digits
from unseam.geometry.polarized import collapsed

LAW_R = 0.9  # the Sigma law is followed from this correlation of log variances on, and
LAW_ERROR = 0.25  # up to this median relative error of a variance
LAW_LOOSE_R, LAW_LOOSE_ERROR = 0.5, 0.75  # below this correlation, or above this error, it is not followed at all
_NOT_FOLLOWED = "do not follow the Sigma law"
WRONG_SCALE = 1.25  # a scale that is off by less is not what is wrong with the variances
NAMED_PAIRS = 3  # more mixed pairs than these are reported as one group
WORTH_TURNING = 0.1  # a rotation is worth telling if it saves more than this share of a pair's cost
PASSIVE_SHARE, PASSIVE_NATS = (
    0.1,
    0.01,
)  # the cost of passive latents is reported above both: a share of the cost, and nats per beta
SMALLEST_SHARE = 0.001  # of the KL's cost
NEAR_CHANCE = 0.9  # of what random axes give: a DtO above says that the axes are not much better
DEAF = 1e-3  # an active latent whose column is below this share of the longest is ignored by the decoder
PASSIVE_LISTENS = 0.05  # a passive latent whose column is above this share of the longest still moves the output


def words(things: Sequence[object], last: str = "and") -> str:
    """0, 2 and 5.

    >>> words([0, 2, 5]), words(["x", "y"], last="or"), words(["x"])
    ('0, 2 and 5', 'x or y', 'x')
    """
    names = [str(thing) for thing in things]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def subject(latents: Sequence[int]) -> str:
    """ "latent 2 is", "latents 0 and 2 are".

    >>> subject([2]), subject([0, 2])
    ('latent 2 is', 'latents 0 and 2 are')
    """
    return f"latent {latents[0]} is" if len(latents) == 1 else f"latents {words(latents)} are"


def verdict(d: Diagnosis) -> str:
    """The whole verdict, one sentence per finding: what is active and mixed, then how far to trust it."""
    parts = [f"{d.scope}: {activity(d)}" if d.scope else activity(d)]
    if d.active:
        parts += [mixing(d)]
        parts += ["A full posterior, as here, does not pay this; a diagonal one would"] if d.full_posterior else []
        parts += [_whole(d), _share(d), _chance(d), law(d), about_beta(d.beta, d.beta_source)]
    return " ".join(f"{part}." for part in parts if part)


def activity(d: Diagnosis) -> str:
    K = len(d.latents)
    if d.active:
        return f"{d.active} of {K} latents {'is' if d.active == 1 else 'are'} active"
    none = f"None of {K} latents is active"
    if d.kl is None:
        return f"{none}: moving along the codes does not change the output"
    if all(collapsed(z.kl or 0.0) for z in d.latents):
        return f"{none}: the posterior has collapsed onto the prior" + (". Lower beta" if d.has_beta else "")
    return f"{none}, though their KL is {three_digits(d.kl)} nats: their means hardly vary from sample to sample"


def about_beta(beta: float, source: str) -> str:
    """Where beta comes from, if it was not given."""
    if source == "estimated":
        return f"Beta was not given; {three_digits(beta)} is an estimate from the Sigma law over the active latents"
    if source == "none":
        return f"The loss has no beta; {three_digits(beta)} is only the unit of costs"
    return "Beta was not given and nothing fixes it; 1 is taken as the unit" if source == "unit" else ""


def law(d: Diagnosis) -> str:
    """Whether the active latents' variances follow the Sigma law: shape (r) and size (error) both count."""
    r, error = d.sigma_law_r, d.sigma_law_error
    if error is None:
        return "No posterior was given, so the Sigma law could not be tested"
    numbers = f"median error {error:.0%}" if r is None else f"r = {r:.2f}, median error {error:.0%}"
    if _fits(r, error):
        how = "follow the Sigma law" if r is not None else "do not vary, and have the size of the Sigma law"
    elif _off(d.sigma_law_factor) and _fits(d.sigma_law_rescaled_r, d.sigma_law_rescaled_error):
        how = f"have {scale(d.sigma_law_factor or 1.0)}"
    else:
        how = loosely(r, error)
    advice = "; more training may help" if how == _NOT_FOLLOWED else ""
    return f"The posterior variances of active latents {how} ({numbers}){advice}"


def _off(factor: float | None) -> bool:
    """Whether a scale is wrong enough to be reported: by a quarter or more, either way.

    >>> _off(1.13), _off(1.3), _off(0.5), _off(None)
    (False, True, True, False)
    """
    return factor is not None and max(factor, 1 / factor) >= WRONG_SCALE


def loosely(r: float | None, error: float) -> str:
    """What is left to say of variances that miss the law in shape or in size."""
    if r is not None and r >= LAW_LOOSE_R and error <= LAW_LOOSE_ERROR:
        return "follow the Sigma law loosely"
    if error <= LAW_ERROR:
        return "have the size of the Sigma law, but do not vary with it"
    return _NOT_FOLLOWED


def _fits(r: float | None, error: float | None) -> bool:
    """Shape and size as the law has them; variances that do not vary have no shape to miss."""
    return error is not None and error <= LAW_ERROR and (r is None or r >= LAW_R)


def scale(factor: float) -> str:
    """The variances fit the law with another beta: `factor` times the given one."""
    off, which = (factor, "too small") if factor > 1 else (1 / factor, "too large")
    wrong = f"the given beta or s2 is off by a factor of about {three_digits(off)} ({which})"
    return f"the right shape but the wrong scale: {wrong}"


def mixing(d: Diagnosis) -> str:
    """Which latents are mixed and what they pay."""
    mixed, cost = [pair for pair in d.pairs if pair.mixed], d.entanglement_cost
    if d.active == 1:
        text = "One latent has no other to be mixed with"
    elif not mixed:
        text = f"No two latents are mixed: together they cost {three_digits(max(d.cost_of_active, 0.0))} nats of loss"
    elif len(mixed) <= NAMED_PAIRS:
        text = ". ".join(one_pair(pair, cost, d.has_beta) for pair in mixed)
    else:
        names = words(sorted({k for pair in mixed for k in (pair.i, pair.j)}))
        text = (
            f"Latents {names} are mixed in {len(mixed)} pairs, which cost {three_digits(sum(p.cost for p in mixed))} "
            f"of {three_digits(cost)} nats of loss. The worst: {one_pair(mixed[0], cost, d.has_beta)}"
        )
    passive = cost - d.cost_of_active
    if passive > PASSIVE_SHARE * cost and passive > PASSIVE_NATS * d.beta:
        text += (
            f". {three_digits(passive)} of {three_digits(cost)} nats of loss are noise from passive latents that still "
            "change the output"
        )
    return text


def one_pair(pair: Pair, cost: float, has_beta: bool = True) -> str:
    """What two mixed latents pay, why, and what would help."""
    costs = f"{three_digits(pair.cost)} of {three_digits(cost)} nats of loss"
    text = f"Latents {pair.i} and {pair.j} are mixed, which costs {costs}"
    if pair.degenerate:
        return text + (
            f". Their singular values differ by {pair.difference:.0%}, so the data does not prefer an axis: "
            "change the scale of the data" + (" or of beta" if has_beta else "")
        )
    if pair.saving > WORTH_TURNING * pair.cost:
        return f"{text}. A rotation would save {three_digits(pair.saving)} of them: use `align`"
    if pair.coordinates == "polar":
        return f"{text}. Together they are polar coordinates, which no rotation separates"
    return f"{text}. No rotation saves a tenth of that, because the mixing changes from point to point"


def _whole(d: Diagnosis) -> str:
    """The cost of all latents, where only some were diagnosed."""
    if d.whole_cost is None or d.whole_cost_error is None:
        return ""
    return f"All latents together cost {three_digits(d.whole_cost)} +- {three_digits(d.whole_cost_error)} nats of loss"


def _share(d: Diagnosis) -> str:
    of_kl = None if d.scope else d.share_of_kl  # the KL of some latents is not that of the model
    return "" if of_kl is None or of_kl < SMALLEST_SHARE else f"That is {of_kl:.1%} of what the KL costs"


def _chance(d: Diagnosis) -> str:
    """DtO beside that of random axes."""
    if d.dto is None or not d.dto_haar:
        return ""
    text = f"DtO is {d.dto:.2f} (0 is best; random axes give {d.dto_haar:.2f})"
    return f"{text}, so these axes are about as orthogonal as random ones" if near_chance(d) else text


def near_chance(d: Diagnosis) -> bool:
    """Whether the axes are not much better than random ones."""
    return d.dto is not None and d.dto_haar is not None and 0 < NEAR_CHANCE * d.dto_haar < d.dto


def degeneracy_warnings(pairs: Sequence[Pair]) -> list[str]:
    """Pairs without a preferred axis, mixed or not."""
    return [
        f"latents {p.i} and {p.j}: their singular values differ by {p.difference:.1%} only (preference "
        f"{three_digits(p.preference)} nats of loss), so another seed would give other axes"
        for p in pairs
        if p.degenerate
    ]


def latent_warnings(latents: Sequence[Latent]) -> list[str]:
    """Latents on which encoder and decoder disagree."""
    longest = max(z.jacobian_norm for z in latents)
    deaf = [z.index for z in latents if z.active and z.jacobian_norm < DEAF * longest]
    heard = [z.index for z in latents if not z.active and z.jacobian_norm > PASSIVE_LISTENS * longest > 0]
    out = []
    if deaf:
        out.append(f"{subject(deaf)} used by the encoder but ignored by the decoder")
    if heard:
        out.append(f"{subject(heard)} without information, but the decoder still listens: noise in the output")
    return out
