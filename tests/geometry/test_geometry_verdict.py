"""Every sentence of a verdict, at both sides of its threshold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unseam.geometry.diagnosis import Diagnosis, Latent, Pair
from unseam.geometry.verdict import degeneracy_warnings, latent_warnings, verdict


def latent(index: int = 0, **more: Any) -> Latent:
    told = {"kl": 2.0, "sigma2": 0.1, "sigma2_law": 0.1, "jacobian_norm": 1.0, "mu_std": 1.0, "active": True}
    return Latent(index, **told | more)


def pair(**more: Any) -> Pair:
    told = {"cost": 0.1, "cosine": 0.4, "difference": 0.5, "preference": 1.0, "saving": 0.0, "mixed": True}
    return Pair(0, 1, **told | {"degenerate": False} | more)


def told(**more: Any) -> str:
    """The verdict of a diagnosis with these numbers, the rest of it unremarkable."""
    plain = Diagnosis(
        dto=0.2, dto_haar=0.55, entanglement_cost=0.1, cost_of_active=0.1, ima_contrast=0.1, sigma_law_r=0.95,
        sigma_law_error=0.1, active=2, latents=(latent(0), latent(1)), pairs=(), warnings=(), verdict="", beta=1.0,
        points=9, dto_all=0.2,
    )  # fmt: skip
    return verdict(replace(plain, **more))


@pytest.mark.parametrize(
    ("r", "error", "rescaled", "words"),
    [
        (0.9, 0.25, (0.9, 0.25), "of active latents follow the Sigma law ("),
        (0.899, 0.25, (0.899, 0.25), "of active latents follow the Sigma law loosely ("),
        (0.9, 0.251, (0.9, 0.251), "of active latents follow the Sigma law loosely ("),
        (0.9, 0.251, (0.9, 0.25), "the right shape but the wrong scale"),
        (0.2, 0.251, (0.9, 0.25), "the right shape but the wrong scale"),
        (0.9, 0.251, (0.899, 0.25), "of active latents follow the Sigma law loosely ("),
        (0.5, 0.1, (0.5, 0.1), "of active latents follow the Sigma law loosely ("),
        (0.499, 0.25, (0.499, 0.25), "have the size of the Sigma law, but do not vary with it ("),
        (
            0.499,
            0.251,
            (0.499, 0.251),
            "do not follow the Sigma law (r = 0.50, median error 25%); more training may help.",
        ),
        (0.8, 0.75, (0.8, 0.75), "of active latents follow the Sigma law loosely ("),
        (0.8, 0.751, (0.8, 0.751), "do not follow the Sigma law"),
        (0.1, 0.1, (0.1, 0.1), "do not vary with it"),
        (None, 0.25, (None, 0.25), "do not vary, and have the size of the Sigma law (median error 25%"),
        (None, 0.26, (None, 0.1), "the right shape but the wrong scale"),
        (None, 0.26, (None, 0.26), "do not follow the Sigma law (median error 26%"),
        (None, None, (None, None), "No posterior was given"),
    ],
)
def test_the_sigma_law_asks_for_shape_and_size(r: Any, error: Any, rescaled: Any, words: str) -> None:
    text = told(
        sigma_law_r=r, sigma_law_error=error, sigma_law_factor=4.0, sigma_law_rescaled_r=rescaled[0],
        sigma_law_rescaled_error=rescaled[1],
    )  # fmt: skip
    assert words in text


@pytest.mark.parametrize(("factor", "words"), [(4.0, "about 4 (too small)"), (0.25, "about 4 (too large)")])
def test_the_factor_is_told_with_its_side(factor: float, words: str) -> None:
    law = {"sigma_law_error": 0.9, "sigma_law_rescaled_r": 1.0, "sigma_law_rescaled_error": 0.0}
    assert f"the given beta or s2 is off by a factor of {words}" in told(sigma_law_factor=factor, **law)


@pytest.mark.parametrize(
    ("kl", "words"),
    [
        (0.049, "collapsed onto the prior. Lower beta."),
        (0.05, "though their KL is 0.1 nats"),
        (None, "does not change the output"),
    ],
)
def test_collapsed_only_where_the_kl_is(kl: float | None, words: str) -> None:
    text = told(active=0, dto=None, latents=(latent(0, kl=kl, active=False), latent(1, kl=kl, active=False)))
    assert text.startswith("None of 2 latents is active")
    assert words in text
    assert "Sigma law" not in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"saving": 0.0101}, "use `align`"),
        ({"saving": 0.01}, "the mixing changes from point to point"),
        ({"saving": 0.01, "coordinates": "polar"}, "polar coordinates"),
        ({"saving": 0.09, "degenerate": True, "difference": 0.03}, "differ by 3%, so the data does not prefer an axis"),
    ],
)
def test_what_would_help_a_mixed_pair(more: dict[str, Any], words: str) -> None:
    text = told(pairs=(pair(**more),))
    assert "Latents 0 and 1 are mixed, which costs 0.1 of 0.1 nats of loss" in text
    assert words in text


@pytest.mark.parametrize(
    ("count", "words"), [(3, "are mixed, which costs"), (4, "mixed in 4 pairs, which cost 0.4 of")]
)
def test_many_pairs_are_one_group(count: int, words: str) -> None:
    text = told(pairs=tuple(replace(pair(), j=k + 1) for k in range(count)), entanglement_cost=0.4, cost_of_active=0.4)
    assert words in text
    assert ("in 4 pairs" in text) == (count == 4)


@pytest.mark.parametrize(
    ("cost", "of_active", "beta", "heard"),
    [(0.2, 0.179, 1.0, True), (0.2, 0.181, 1.0, False), (0.02, 0.0101, 1.0, False), (0.02, 0.0101, 0.5, True)],
)
def test_noise_of_passive_latents(cost: float, of_active: float, beta: float, heard: bool) -> None:
    """Above a tenth of the cost, and above 0.01 nats of loss per beta."""
    assert ("noise from passive latents" in told(entanglement_cost=cost, cost_of_active=of_active, beta=beta)) == heard


@pytest.mark.parametrize(("cost", "words"), [(0.004, "That is 0.1% of what the KL costs"), (0.0039, "")])
def test_a_share_too_small_to_tell(cost: float, words: str) -> None:
    text = told(entanglement_cost=cost, cost_of_active=cost)  # beta KL is 4 nats
    assert words in text
    assert ("of what the KL costs" in text) == bool(words)


def test_where_beta_comes_from() -> None:
    assert "Beta was not given; 0.25 is an estimate" in told(beta=0.25, beta_source="estimated")
    assert "1 is taken as the unit" in told(beta_source="unit")
    assert "eta" not in told()


def test_where_there_is_no_beta_nothing_is_advised_about_it() -> None:
    assert "The loss has no beta; 0.25 is only the unit of costs" in told(beta=0.25, beta_source="none")
    none = {"active": 0, "dto": None, "latents": (latent(0, kl=0.01, active=False), latent(1, kl=0.01, active=False))}
    mixed = {"pairs": (pair(degenerate=True, difference=0.03),)}
    for more, advice in ((none, "Lower beta"), (mixed, " or of beta")):
        assert advice in told(**more)
        assert advice not in told(beta_source="none", **more)


def test_the_rest_of_the_sentence() -> None:
    text = told()
    assert text.startswith("2 of 2 latents are active. ")
    assert "No two latents are mixed: together they cost 0.1 nats of loss" in text
    assert "of the ELBO" not in text
    assert "DtO is 0.20 (0 is best; random axes give 0.55)." in text
    assert text.endswith("(r = 0.95, median error 10%).")
    near = "(0 is best; random axes give 1.00), so these axes are about as orthogonal as random ones."
    assert f"DtO is 0.91 {near}" in told(dto=0.91, dto_haar=1.0)
    assert "as random ones" not in told(dto=0.9, dto_haar=1.0)
    assert "1 of 2 latents is active. One latent has no other to be mixed with." in told(active=1, dto=None)
    assert "does not pay this" in told(full_posterior=True)
    assert "does not pay this" not in text


@pytest.mark.parametrize(
    ("norm", "active", "words"),
    [
        (0.0009, True, "ignored by the decoder"),
        (0.001, True, None),
        (0.051, False, "the decoder still listens"),
        (0.05, False, None),
    ],
)
def test_warnings_about_a_latent(norm: float, active: bool, words: str | None) -> None:
    found = latent_warnings([latent(0), latent(1, jacobian_norm=norm, active=active)])
    assert [w for w in found if words and f"latent 1 is {'used' if active else 'without'}" in w and words in w] == found
    assert bool(found) == bool(words)


def test_warnings_about_degenerate_pairs_only() -> None:
    close = pair(degenerate=True, difference=0.02, mixed=False)
    assert degeneracy_warnings([pair(), close]) == [
        "latents 0 and 1: their singular values differ by 2.0% only (preference 1 nats of loss), so another seed "
        "would give other axes"
    ]
