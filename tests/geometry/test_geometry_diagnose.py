"""Diagnoses of decoders whose answer is known: aligned, mixed, degenerate, collapsed, over-pruned."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unseam import align, diagnose
from unseam.errors import BadInput
from unseam.geometry import Diagnosis, cosines, dto, entanglement_cost, ima_contrast, pullbacks, sigma_law
from unseam.geometry.diagnosis import Arrays
from unseam.geometry.polarized import (
    LatentStatistics,
    active_latents,
    collapsed,
    delta_kl,
    polarized_share,
    polarized_since,
    statistics,
    unexplained_directions,
)
from unseam.models import Architecture, Gaussian
from unseam.models.posterior import Diagonal, Full, Point
from unseam.runs.rank_members import criterion_agreement, rank


def linear_case(
    W: Tensor, N: int = 400, s2: float = 0.1, noise: float = 0.0
) -> tuple[nn.Linear, Tensor, Diagonal, Tensor]:
    """A linear VAE at its optimum given W: codes, posterior by the Sigma law, and data."""
    decoder = nn.Linear(W.shape[1], W.shape[0], bias=False).double()
    decoder.weight.data = W.double()
    generator = torch.Generator().manual_seed(0)
    codes = torch.randn(N, W.shape[1], generator=generator).double()
    codes[:, W.norm(dim=0) == 0] *= 0.01
    variances = sigma_law(W.double().T @ W.double() / s2).expand(N, -1)
    x = codes @ W.double().T + noise * torch.randn(N, W.shape[0], generator=generator).double()
    return decoder, codes, Diagonal(codes, variances.log()), x


def run_linear(W: Tensor, **more: object) -> Diagnosis:
    decoder, codes, posterior, x = linear_case(W)
    return diagnose(decoder, codes, posterior, data=x, s2=0.1, **more)  # type: ignore[arg-type]


def test_aligned() -> None:
    d = run_linear(torch.tensor([[4.0, 0, 0], [0, 2, 0], [0, 0, 0], [0, 0, 0]]))
    assert (d.active, d.dto) == (2, 0.0)
    assert d.entanglement_cost == pytest.approx(0, abs=1e-12)
    assert d.ima_contrast == pytest.approx(0, abs=1e-12)
    assert d.sigma_law_r == pytest.approx(1.0)
    assert d.sigma_law_error < 1e-6
    assert [z.active for z in d.latents] == [True, True, False]
    np.testing.assert_allclose([z.jacobian_norm for z in d.latents], [4, 2, 0])
    assert "2 of 3 latents are active" in d.verdict
    assert "No two latents are mixed" in d.verdict
    assert d.warnings == ("latent 2 is passive",)


def test_mixed_and_repairable() -> None:
    W = torch.diag(torch.tensor([4.0, 2.0, 1.0]))
    turn = torch.eye(3)
    turn[:2, :2] = torch.tensor([[0.8, -0.6], [0.6, 0.8]])
    d = run_linear(W @ turn)
    worst = d.pairs[0]
    assert (worst.i, worst.j, worst.mixed, worst.degenerate, worst.coordinates) == (0, 1, True, False, "cartesian")
    assert worst.cost == pytest.approx(d.entanglement_cost)
    assert worst.saving == pytest.approx(worst.cost, rel=0.01)
    assert worst.difference == pytest.approx(0.5)
    assert "Latents 0 and 1 are mixed" in d.verdict
    assert "use `align`" in d.verdict
    assert d.dto == pytest.approx(np.linalg.norm(turn - torch.eye(3)), abs=1e-6)


def test_degenerate() -> None:
    """Orthogonal, but any other axes of the plane would be as well: named with the margin."""
    d = run_linear(torch.diag(torch.tensor([2.0, 1.96, 0.7])))
    assert [(p.i, p.j) for p in d.pairs if p.degenerate] == [(0, 1)]
    assert any("differ by 2.0% only" in warning for warning in d.warnings)


def test_repeated_singular_values_do_not_crash() -> None:
    d = diagnose(lambda z: torch.cat([z, z], 1), torch.randn(50, 3, generator=torch.Generator().manual_seed(0)))
    assert sum(p.degenerate for p in d.pairs) == 3
    assert d.entanglement_cost == pytest.approx(0)


def test_collapsed_and_dead() -> None:
    codes = 0.01 * torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    d = diagnose(lambda z: 0 * torch.cat([z, z], 1), codes, torch.ones(50, 2))
    assert (d.active, d.dto, d.ima_contrast) == (0, None, None)
    assert "collapsed" in d.verdict
    json.dumps(d.to_json())
    still = diagnose(lambda z: 0 * z, codes)
    assert "does not change the output" in still.verdict
    noise = diagnose(lambda z: torch.cat([z[:, :1], 0 * z], 1), 100 * codes, 0.5 * torch.ones(50, 2))
    assert any("latent 1 is used by the encoder but ignored by the decoder" in w for w in noise.warnings)


def test_over_pruned_and_too_few() -> None:
    """One direction of the data is worth a latent but has none."""
    decoder, codes, posterior, x = linear_case(torch.tensor([[3.0, 0.0], [0, 0], [0, 0]]))
    x[:, 1] = 2 * torch.randn(400, generator=torch.Generator().manual_seed(7))
    d = diagnose(decoder, codes, posterior, data=x, s2=0.1, factors=2)
    assert any("1 of 2 latents active, but the data has 2 factors (over-pruned" in w for w in d.warnings)
    assert any("in 1 direction the residual" in w for w in d.warnings)
    decoder, codes, posterior, x = linear_case(torch.diag(torch.tensor([3.0, 2.0])), noise=0.1)
    assert diagnose(decoder, codes, posterior, data=x, s2=0.1).warnings == ()


def test_elbo_share_and_self_consistency() -> None:
    """In the linear Gaussian case the det-ELBO is the ELBO."""
    W = torch.tensor([[2.0, 1.0], [0.0, 1.5], [1.0, 0.0]]).double()
    decoder, codes, posterior, x = linear_case(W, noise=0.3)
    d = diagnose(decoder, codes, posterior, data=x, encoder=lambda x: x @ torch.linalg.pinv(W).T, s2=0.1, points=400)
    spread = torch.einsum("nk,bk->bn", W.square(), posterior.variance()).sum(1)
    fit = -((x - codes @ W.T).square().sum(1) + spread) / 0.2 - 1.5 * np.log(2 * np.pi * 0.1)
    assert d.elbo == pytest.approx(float((fit - posterior.kl()).mean()), rel=1e-5)
    assert d.self_consistency == pytest.approx(0, abs=1e-12)


def test_the_share_that_is_told_has_no_unit() -> None:
    """The same model of the same data in metres and in millimetres pays the same share (review, B7)."""
    W = torch.tensor([[1.0, 0.6], [0, 1.0], [0.3, 0], [0.1, 0.2]])
    shares = []
    for unit in (1.0, 0.43, 1000.0):
        _, codes, _, x = linear_case(W, noise=0.3)
        scaled, s2 = unit * W.double(), 0.09 * unit**2
        variances = sigma_law(scaled.T @ scaled / s2).expand(400, 2)
        d = diagnose(lambda z, A=scaled: z @ A.T, codes, variances, data=unit * x, s2=s2)
        assert f"That is {d.share_of_kl:.1%} of what the KL costs" in d.verdict
        assert d.share_of_kl == pytest.approx(d.entanglement_cost / Diagonal(codes, variances.log()).kl().mean().item())
        shares.append(d.share_of_kl)
    assert max(shares) == pytest.approx(min(shares))


def curved(z: Tensor) -> Tensor:
    """A bent decoder of three latents, the second and third weaker and weaker."""
    W = torch.tensor([[3.0, 0, 0], [0, 1.0, 0], [0, 0, 0.3], [0.2, 0.1, 0.0]]).to(z)
    return torch.tanh(z @ W.T) + 0.3 * z @ W.T


def curved_codes(N: int = 500) -> Tensor:
    return torch.randn(N, 3, generator=torch.Generator().manual_seed(0)).double()


def test_the_law_is_tested_on_active_latents() -> None:
    """Two passive latents are as the law says, the active one is off by half: the number told is the active one's."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.randn(300, 3, generator=generator).double() * torch.tensor([1.0, 0.01, 0.01])
    variances = sigma_law(pullbacks(curved_but_dead, codes, s2=0.01).pullback)
    variances[:, 0] *= 1.5 * torch.exp(0.5 * torch.randn(300, generator=generator))
    d = diagnose(curved_but_dead, codes, variances, s2=0.01)
    assert d.active == 1
    assert d.sigma_law_error > 0.4
    assert d.sigma_law_passive_error < 1e-6
    assert "follow the Sigma law (" not in d.verdict
    assert np.nanmax(np.abs(d.arrays.sigma2[:, 1:] - 1)) < 1e-6


def curved_but_dead(z: Tensor) -> Tensor:
    return torch.cat([torch.sin(z[:, :1]) + 2 * z[:, :1], z[:, :1] ** 2], 1)


@pytest.mark.parametrize(("beta", "s2", "off"), [(0.01, 0.1, "100 (too small)"), (1.0, 10.0, "100 (too large)")])
def test_a_wrong_scale_is_named(beta: float, s2: float, off: str) -> None:
    """Variances made by the law with beta 1 and s2 0.1, diagnosed with others (review, B2)."""
    codes = curved_codes()
    variances = sigma_law(pullbacks(curved, codes, s2=0.1).pullback, beta=1.0)
    right = diagnose(curved, codes, variances, s2=0.1)
    assert "follow the Sigma law (r = 1.00, median error 0%" in right.verdict
    assert right.sigma_law_factor == pytest.approx(1)
    wrong = diagnose(curved, codes, variances, s2=s2, beta=beta)
    assert f"the given beta or s2 is off by a factor of about {off}" in wrong.verdict
    assert wrong.sigma_law_rescaled_error < 1e-6 < 0.5 < wrong.sigma_law_error


def test_an_unknown_beta_is_estimated() -> None:
    codes = curved_codes()
    variances = sigma_law(pullbacks(curved, codes, s2=0.1).pullback, beta=0.03)
    given, found = (diagnose(curved, codes, variances, s2=0.1, beta=beta) for beta in (0.03, None))
    assert (given.beta_source, found.beta_source) == ("given", "estimated")
    assert found.beta == pytest.approx(0.03)
    assert found.entanglement_cost == pytest.approx(given.entanglement_cost)
    assert "0.03 is an estimate from the Sigma law over the active latents" in found.verdict
    assert "estimate" not in given.verdict
    point = diagnose(curved, codes, Point(codes), s2=0.1, beta=None)
    assert (point.beta, point.beta_source) == (1.0, "unit")
    assert "1 is taken as the unit" in point.verdict


def test_the_beta_of_a_full_posterior_is_found_too() -> None:
    codes = curved_codes()
    Sigma = torch.linalg.inv(torch.eye(3) + pullbacks(curved, codes, s2=0.1).pullback / 0.2)
    for posterior in (Full.of(codes, Sigma), Sigma):
        d = diagnose(curved, codes, posterior, s2=0.1, beta=None)
        assert d.beta == pytest.approx(0.2)
        assert d.full_posterior
        assert d.sigma_law_error < 1e-9


def test_small_codes_that_carry_much_are_not_called_collapsed() -> None:
    """Codes of std 0.4 with variances 0.05 have a nat each (review, B4)."""
    codes = 0.4 * torch.randn(500, 2, generator=torch.Generator().manual_seed(0))
    d = diagnose(lambda z: z @ torch.tensor([[9.0, 0], [0, 5.0]]), codes, torch.full((500, 2), 0.05), s2=1.0)
    assert d.active == 2
    assert "collapsed" not in d.verdict
    assert min(z.kl for z in d.latents) > 1
    shifted = diagnose(lambda z: 0 * z, 0 * codes + 3 + 0.01 * codes, torch.ones(500, 2))
    assert shifted.active == 0
    assert "collapsed" not in shifted.verdict
    assert "though their KL is 9" in shifted.verdict


def test_dependent_columns_are_said_to_be() -> None:
    """Three latents, two outputs: the contrast is infinite, not what rounding makes of it (review, B12)."""
    W = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    for codes in (torch.randn(50, 3), torch.randn(50, 3).double()):
        d = diagnose(lambda z: z @ W.T.to(z), codes)
        assert d.ima_contrast == np.inf
        assert any("linearly dependent at 50 of 50 points" in w for w in d.warnings)
        assert json.loads(json.dumps(d.to_json(), allow_nan=False))["ima_contrast"] is None
    parallel = diagnose(lambda z: torch.sin(z @ torch.ones(2, 5) / 3), torch.randn(50, 2))  # single precision
    assert parallel.ima_contrast == np.inf


def test_probabilities_in_the_place_of_logits_are_noticed() -> None:
    generator = torch.Generator().manual_seed(0)
    W, codes = torch.randn(20, 2, generator=generator), torch.randn(300, 2, generator=generator)
    logits, p = (lambda z: z @ W.T), (lambda z: torch.sigmoid(z @ W.T))
    assert diagnose(logits, codes, likelihood="bernoulli").warnings == ()
    assert "outputs lie in [0, 1]" in diagnose(p, codes, likelihood="bernoulli").warnings[0]
    assert "outputs lie in [0, 1]" in align(p, codes, likelihood="bernoulli").verdict
    assert diagnose(p, codes).warnings == ()  # the mean of a Gaussian may well be a probability


def test_angles_are_those_of_the_matrix_that_the_posterior_feels() -> None:
    """Bernoulli: A D and J are different matrices. Everything is of A D unless J is asked for."""
    generator = torch.Generator().manual_seed(64)
    D, b = torch.randn(12, 2, generator=generator).double(), 3 * torch.randn(12, generator=generator).double()
    codes = torch.randn(300, 2, generator=generator).double()
    M = pullbacks(lambda z: z @ D.T + b, codes, "bernoulli")
    for columns, G in (("weighted", M.pullback), ("mean", M.gram)):
        d = diagnose(lambda z: z @ D.T + b, codes, likelihood="bernoulli", columns=columns)
        assert d.dto == d.dto_all == pytest.approx(dto(G))
        assert d.arrays.distances.mean() == pytest.approx(d.dto)
        assert d.ima_contrast == pytest.approx(float(ima_contrast(G).mean()))
        assert d.pairs[0].cosine == pytest.approx(float(cosines(G)[:, 0, 1].square().mean().sqrt()))
        assert d.entanglement_cost == pytest.approx(float(entanglement_cost(M.pullback).mean()))
    assert abs(dto(M.pullback) - dto(M.gram)) > 0.01


def same(a: Diagnosis, b: Diagnosis) -> None:
    assert replace(a, arrays=Arrays()) == replace(b, arrays=Arrays())
    for one, other in zip(tuple(a.arrays), tuple(b.arrays), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_diagnosis_can_be_stored_and_opened_again(tmp_path: Path) -> None:
    codes = curved_codes()
    variances = sigma_law(pullbacks(curved, codes, s2=0.1).pullback)
    W = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).double()
    for d in (
        diagnose(curved, codes, variances, s2=0.1, data=curved(codes)),
        diagnose(lambda z: z @ W.T, codes),  # infinite contrast, no posterior
        diagnose(lambda z: 0 * z, 0.01 * codes, torch.ones(500, 3)),  # nothing active
    ):
        values, arrays = d.to_parts()
        np.savez(tmp_path / "arrays.npz", **arrays)
        with np.load(tmp_path / "arrays.npz") as read:
            opened = Diagnosis.from_parts(json.loads(json.dumps(values, allow_nan=False)), dict(read))
        same(opened, d)
    later = {**values, "a name of the future": 3}
    same(Diagnosis.from_parts(later, {**arrays, "another": np.zeros(1)}), d)


def test_full_posteriors_follow_the_full_law() -> None:
    W = torch.tensor([[2.0, 1.0], [0.0, 1.5]]).double()
    decoder, codes, _, _ = linear_case(W)
    L = torch.linalg.cholesky(torch.linalg.inv(torch.eye(2).double() + W.T @ W / 0.1))
    full = Full(codes, L.diagonal().log().expand(400, 2), L.tril(-1).expand(400, 2, 2))
    d = diagnose(decoder, codes, full, s2=0.1)
    assert d.sigma_law_error < 1e-6
    assert "A full posterior, as here, does not pay this" in d.verdict


def test_numbers_of_a_full_posterior_are_its_own() -> None:
    """KL, Delta_KL and ELBO of the posterior itself, not of one with its marginal variances (review, B3)."""
    W = torch.tensor([[2.0, 1.0], [0.0, 1.5], [1.0, 0.5]]).double()
    decoder, codes, _, x = linear_case(W, noise=0.1)
    Sigma = torch.linalg.inv(torch.eye(2).double() + W.T @ W / 0.1)
    full = Full.of(codes, Sigma.expand(400, 2, 2))
    d = diagnose(decoder, codes, full, data=x, s2=0.1, points=400)
    assert d.kl == pytest.approx(float(full.kl().mean()))
    np.testing.assert_allclose([z.kl for z in d.latents], full.kl_per_latent().mean(0))
    log_p = Gaussian(0.1).log_prob(x, codes @ W.T).mean()
    true = log_p - 0.5 * torch.trace(W.T @ W / 0.1 @ Sigma) - full.kl().mean()
    assert d.elbo == pytest.approx(float(true), rel=1e-5)
    marginal = Diagonal(codes, full.variance().log())
    assert float(marginal.kl().mean()) < d.kl - 0.05  # the difference is there to be seen
    approximate = 0.5 * (codes.square() - full.log_variance() - 1).sum(1).mean()
    assert d.delta_kl == pytest.approx(float((full.kl().mean() - approximate) / full.kl().mean()))
    model = Architecture(network="mlp", latents=2, likelihood="gaussian", posterior="full").build((3,), 0)
    with pytest.raises(BadInput, match="covariances"):
        diagnose(model, codes, full.variance())


def test_models_functions_and_missing_posteriors() -> None:
    """Our model, its parts, and a plain function give the same numbers; an autoencoder has no law to follow."""
    model = Architecture(network="mlp", latents=3, likelihood="bernoulli", encoder=(6,), decoder=(6,)).build((4,), 0)
    x = torch.rand(80, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        q = model.encode(x)
    ours = diagnose(model, q.mean, q)
    theirs = diagnose(model.decode, q.mean.numpy(), q.variance().numpy(), likelihood="bernoulli")
    assert ours.entanglement_cost == pytest.approx(theirs.entanglement_cost)
    for one, other in zip(ours.to_json()["latents"], theirs.to_json()["latents"], strict=True):
        assert one == pytest.approx(other)
    point = diagnose(model, q.mean, Point(q.mean))
    assert point.sigma_law_r is None
    assert point.latents[0].kl is None
    assert "could not be tested" in point.verdict


def test_result_reads_well() -> None:
    d = run_linear(torch.diag(torch.tensor([4.0, 2.0])))
    document = json.loads(json.dumps(d.to_json()))
    assert {"dto", "dto_haar", "entanglement_cost", "ima_contrast", "sigma_law_r", "active", "latents"} <= set(document)
    assert {"kl", "sigma2", "jacobian_norm", "active", "mu_std"} <= set(document["latents"][0])
    assert "std(mu)" in str(d)
    assert d._repr_html_().count("<tr>") == 3


def test_every_point_on_request_and_memory_bounded() -> None:
    decoder, codes, posterior, _ = linear_case(torch.diag(torch.tensor([4.0, 2.0])))
    some, every = (diagnose(decoder, codes, posterior, points=p, chunk=c) for p, c in ((50, 7), (10_000, None)))
    assert (some.points, every.points) == (50, 400)
    assert some.entanglement_cost == pytest.approx(every.entanglement_cost)


@pytest.mark.parametrize(
    ("codes", "more", "said"),
    [
        (torch.zeros(3, 5), {}, "more points than latents"),
        (torch.zeros(3), {}, "give points"),
        (torch.full((9, 2), torch.nan), {}, "NaN or infinite"),
        (torch.randn(9, 2), {"beta": 0.0}, "must be positive"),
        (torch.randn(9, 2), {"posterior": torch.ones(3, 2)}, "they must match"),
        (torch.randn(9, 2), {"data": torch.ones(3, 2)}, "observation of each code"),
        (torch.randn(9, 2), {"likelihood": "bernouli"}, "did you mean 'bernoulli'"),
    ],
)
def test_bad_input(codes: Tensor, more: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        diagnose(lambda z: z, codes, **more)  # type: ignore[arg-type]


def test_nan_far_from_the_probes_is_named() -> None:
    codes = torch.zeros(100, 2)
    codes[37] = 5.0
    with pytest.raises(BadInput, match="at 1 of 100 codes, first at 37"):
        diagnose(lambda z: torch.sqrt(4 - z), codes)


def test_regime() -> None:
    mu = np.random.default_rng(0).normal(size=(500, 3)) * [1, 1, 0.01]
    stats = statistics(mu, np.broadcast_to([1e-3, 0.5, 1.0], mu.shape))
    np.testing.assert_array_equal(active_latents(stats.std_mu), [True, True, False])
    sigma2 = np.array([1e-3, 0.5, 1])
    kl = 0.5 * ((mu**2).mean(0) + sigma2 - np.log(sigma2) - 1)
    np.testing.assert_allclose(stats.kl, kl)
    missing = 0.5 * (1e-3 + 0.5) + kl[2]  # what L_approxKL leaves out
    assert delta_kl(stats) == pytest.approx(missing / kl.sum())
    with pytest.raises(BadInput, match="point posterior"):
        statistics([[0.0]], [[0.0]])


def test_one_rule_of_activity_for_arrays_and_tensors() -> None:
    """std(mu) > 0.5 or 0 < E sigma^2 < 0.8, at both sides of each limit."""
    std, sigma2 = [0.5, 0.51, 0.1, 0.1, 0.1], [0.8, 0.8, 0.79, 0.0, 1.0]
    expected = [False, True, True, False, False]
    assert active_latents(np.array(std), np.array(sigma2)).tolist() == expected
    of_torch = active_latents(torch.tensor(std), torch.tensor(sigma2))
    assert isinstance(of_torch, Tensor)
    assert of_torch.tolist() == expected
    assert active_latents(torch.tensor(std)).tolist() == [False, True, False, False, False]
    assert [collapsed(kl) for kl in (0.0499, 0.05)] == [True, False]


def test_polarized_share_over_training() -> None:
    collapsed = LatentStatistics(np.zeros((2, 1)), np.zeros((2, 1)), np.ones((2, 1)), np.zeros((2, 1)))
    assert np.isinf(delta_kl(collapsed)).all()
    assert polarized_since([0.1, 0.2]) is None
    assert polarized_share([0.1, 0.2]) == 0
    assert polarized_share([0.01, 0.02]) == 1
    assert polarized_since([0.01, np.nan, 0.01]) == 2  # a NaN is not below the limit


def test_unexplained_directions_are_signal_not_noise() -> None:
    rng = np.random.default_rng(0)
    noise = 0.5 * rng.normal(size=(200, 400))  # its sample eigenvalues reach 0.25 (1 + sqrt 2)^2 = 1.5
    assert unexplained_directions(noise, price=0.6) == 0
    assert unexplained_directions(noise + 3 * rng.normal(size=(200, 1)) * np.eye(400)[0], price=0.6) == 1
    with pytest.raises(BadInput, match="at least 4"):
        unexplained_directions(noise[:2], 1.0)


def test_rank_orders_members_without_labels() -> None:
    """The more a member is turned, the later it comes; one that pruned a latent comes last, however orthogonal."""
    W = torch.diag(torch.tensor([4.0, 2.0]))
    members = []
    for t in (0.3, 0.0, 0.15):
        turn = torch.tensor([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]).float()
        members.append(run_linear(W @ turn))
    members.append(run_linear(torch.diag(torch.tensor([4.0, 0.0]))))
    ranking = rank(members)
    assert ranking.order == [1, 2, 0, 3]
    found = criterion_agreement(ranking, {"mig": [0.5, 0.9, 0.7, 0.1], "constant": [1, 1, 1, 1]})
    assert found["rank"] == {"mig": 1.0, "constant": None}
    with pytest.raises(BadInput, match="one score per member"):
        criterion_agreement(ranking, {"mig": [1.0]})
    with pytest.raises(BadInput, match="empty"):
        rank([])
