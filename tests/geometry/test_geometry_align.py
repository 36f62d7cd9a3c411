"""Joint diagonalisation and `align`: known rotations come back, the cost never rises, the model is unchanged."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group
from torch import Tensor

from unseam.data.sets.manifolds import Manifolds
from unseam.errors import BadInput
from unseam.geometry import align, diagnose, entanglement_cost, sigma_law
from unseam.geometry.align import RotatedEncoder, frame_of
from unseam.geometry.diagonalise import best_angles, descend, jacobi_sweep, joint_rotation, rotation_cost, rounds
from unseam.models import Architecture
from unseam.models.posterior import Diagonal, Full, Point, Quantised


def turned_metrics(K: int, N: int, seed: int) -> tuple[Tensor, Tensor]:
    """M_x = Q diag(l_x) Q^T with one Q and different l_x, and the Q."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.exp(torch.randn(N, K, generator=generator, dtype=torch.float64)) * 10
    Q = torch.as_tensor(ortho_group.rvs(K, random_state=seed))
    return Q @ torch.diag_embed(lengths) @ Q.T, Q


def worst_angle(R: Tensor, Q: Tensor) -> float:
    """Degrees between the axes of R and those of Q, up to sign and order."""
    overlap = (R.T @ Q).abs().max(1).values.clamp(max=1)
    return float(torch.rad2deg(torch.acos(overlap)).max())


@pytest.mark.parametrize("K", [2, 3, 6, 11])
def test_recovers_a_known_rotation(K: int) -> None:
    M, Q = turned_metrics(K, 40, seed=K)
    R = joint_rotation(M, beta=0.1)
    assert worst_angle(R, Q) < 1e-3
    torch.testing.assert_close(R.T @ R, torch.eye(K).double())
    assert (R.diagonal() >= 0).all()


def test_recovers_a_rotation_of_linear_data_to_a_tenth_of_a_degree() -> None:
    W = (
        torch.linalg.qr(torch.randn(8, 4, generator=torch.Generator().manual_seed(0)).double())[0]
        * torch.tensor([4, 3, 2, 1.5]).double()
    )
    Q = torch.as_tensor(ortho_group.rvs(4, random_state=1))
    codes = torch.randn(300, 4, generator=torch.Generator().manual_seed(1)).double()
    found = align(lambda z: z @ Q @ W.T, codes, s2=0.1)  # d(z) = W Q^T z, so the true axes are the columns of Q
    assert worst_angle(found.rotation, Q) < 0.1
    assert found.helped
    assert found.table[0]["after"] < 1e-9


@given(seed=st.integers(0, 10_000), K=st.integers(2, 7), beta=st.sampled_from([1e-3, 1.0, 30.0]))
@settings(max_examples=10, deadline=None)
def test_no_sweep_raises_the_cost(seed: int, K: int, beta: float) -> None:
    """Arbitrary metrics, which no rotation makes diagonal."""
    J = torch.randn(15, K + 1, K, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    M, R = J.mT @ J, torch.eye(K, dtype=torch.float64)
    cost = rotation_cost(M, R, beta)
    for local in (False, False, True):
        R, _ = jacobi_sweep(M, R, beta, local)
        before, cost = cost, rotation_cost(M, R, beta)
        assert cost <= before + 1e-9 * abs(before)
    best = joint_rotation(M, beta, restarts=0)
    assert rotation_cost(M, best, beta) <= rotation_cost(M, torch.eye(K).double(), beta)


@pytest.mark.parametrize("beta", [1e-3, 1.0])
def test_two_latents_are_solved_exactly(beta: float) -> None:
    """Against a search over 20,000 angles."""
    J = torch.randn(30, 3, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    M = J.mT @ J
    t = torch.linspace(0, torch.pi / 2, 20_001).double()
    R = torch.stack([torch.stack([t.cos(), -t.sin()], -1), torch.stack([t.sin(), t.cos()], -1)], 1)
    diagonal = torch.einsum("tip,xij,tjp->txp", R, M, R)
    brute = float(torch.log1p(diagonal / beta).sum(2).mean(1).min())
    found = rotation_cost(M, joint_rotation(M, beta, restarts=0), beta)
    assert found <= brute + 1e-12
    assert found == pytest.approx(brute, abs=1e-6)


def test_parts_of_the_diagonalisation() -> None:
    for K in (2, 5, 6):
        met = sorted(tuple(sorted(pair)) for p, q in rounds(K) for pair in zip(p.tolist(), q.tolist(), strict=True))
        assert met == [(i, j) for i in range(K) for j in range(i + 1, K)]
    assert best_angles(torch.full((1, 4), 0.3), torch.zeros(1, 4)).item() == 0  # diagonal already: nothing turns
    M, _ = turned_metrics(4, 10, seed=0)
    R, cost = descend(M, torch.eye(4).double(), 1.0)
    assert cost == pytest.approx(rotation_cost(M, R, 1.0))


def test_the_rotated_model_is_the_same_model() -> None:
    """Reconstructions, densities and KL do not change; the codes turn with the rotation."""
    model = (
        Architecture(
            network="mlp", latents=4, likelihood="gaussian", encoder=(8,), decoder=(8,), decoder_activation="tanh"
        )
        .build((5,), 0)
        .double()
    )
    x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        q = model.encode(x)
        found = align(model, q.mean, q, beta=0.01)
        turned = found.encoder(x)
        torch.testing.assert_close(found.decoder(turned.mean), model.decode(q.mean))
        torch.testing.assert_close(turned.mean.numpy(), found.codes)
        torch.testing.assert_close(turned.kl(), q.kl())
        S = torch.diag_embed(q.variance())
        torch.testing.assert_close(turned.cholesky() @ turned.cholesky().mT, found.rotation.T @ S @ found.rotation)
    assert found.table[0]["after"] <= found.table[0]["before"]


def test_posteriors_of_every_kind_turn() -> None:
    R = torch.as_tensor(ortho_group.rvs(3, random_state=0))
    frame = frame_of(np.zeros((2, 3)), whiten=False)._replace(rotation=R)
    mean, log_var = torch.randn(5, 3).double(), torch.randn(5, 3).double()
    full = Full(mean, 0.5 * log_var, torch.randn(5, 3, 3).double().tril(-1))
    for q in (Diagonal(mean, log_var), full):
        torch.testing.assert_close(q.rotate(frame).kl(), q.kl())
        torch.testing.assert_close(q.rotate(frame).covariance(), R.T @ q.covariance() @ R)
    pair = RotatedEncoder(lambda x: (mean, log_var), frame)
    torch.testing.assert_close(pair(mean).kl(), Diagonal(mean, log_var).kl())
    for point in (Point(mean), Quantised(mean, mean, mean)):
        torch.testing.assert_close(point.rotate(frame).mean, mean @ R)
    torch.testing.assert_close(RotatedEncoder(lambda x: x, frame)(mean), mean @ R)
    with pytest.raises(BadInput, match="posterior or"):
        RotatedEncoder(lambda x: "nothing", frame)(mean)


def test_whitening_gives_an_autoencoder_the_scale_that_a_prior_would() -> None:
    """x = Q w with orthonormal columns, factors of different spread, codes turned: a rotation of the raw codes changes
    nothing (J^T J = I); after whitening the factors are the preferred axes."""
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(2000, 2, generator=generator).double() * torch.tensor([3.0, 1.0]).double()
    Q = torch.linalg.qr(torch.randn(5, 2, generator=generator).double())[0]
    turn = torch.as_tensor(ortho_group.rvs(2, random_state=5))
    codes = w @ turn.T + 1.0
    raw = align(lambda z: (z - 1) @ turn @ Q.T, codes)
    assert not raw.helped
    found = align(lambda z: (z - 1) @ turn @ Q.T, codes, encoder=lambda x: x @ Q @ turn.T + 1, whiten=True)
    assert found.helped
    correlation = np.abs(np.corrcoef(found.codes.T, w.T.numpy())[:2, 2:])
    assert (correlation.max(0) > 0.999).all()
    np.testing.assert_allclose(np.cov(found.codes.T, bias=True), np.eye(2), atol=1e-6)
    x = w @ Q.T
    torch.testing.assert_close(found.decoder(torch.as_tensor(found.codes)), x)
    torch.testing.assert_close(found.encoder(x), torch.as_tensor(found.codes))


def test_says_when_it_does_not_help() -> None:
    codes = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)).double()
    straight = align(lambda z: z * torch.tensor([3.0, 1.0]).double(), codes)
    assert not straight.helped
    assert "orthogonal already" in straight.verdict
    assert torch.equal(straight.rotation, torch.eye(2).double())

    def polar(z: Tensor) -> Tensor:  # distance from the origin matters three times as much as the angle
        return z * (1 + z.norm(dim=1, keepdim=True))

    round_ = align(polar, codes, s2=0.01)
    assert not round_.helped
    assert "varies from point to point" in round_.verdict
    assert round_.table[0]["after"] < round_.table[0]["before"]  # it did find a rotation that fits these points


def test_axes_that_no_rotation_helps_can_be_kept() -> None:
    codes = torch.randn(100, 2, generator=torch.Generator().manual_seed(0)).double()

    def polar(z: Tensor) -> Tensor:
        return z * (1 + z.norm(dim=1, keepdim=True))

    best, kept = (align(polar, codes, s2=0.01, keep_axes=keep) for keep in (False, True))
    assert not best.helped
    assert (kept.helped, kept.table) == (False, best.table)  # what the best rotation would have done
    assert kept.verdict == f"{best.verdict}; the axes are kept"
    assert not np.allclose(best.codes, codes, atol=1e-3)
    assert np.array_equal(kept.codes, codes)
    assert torch.equal(kept.decoder(codes), polar(codes))
    W = torch.tensor([[1.0, 2.0], [-1.0, 1.0]]).double()
    turned, same = (align(lambda z: z @ W, codes, keep_axes=keep) for keep in (True, False))
    assert turned.helped
    assert torch.equal(turned.rotation, same.rotation)


def test_align_turns_the_latents_that_diagnose_counts() -> None:
    """The decoder listens to a latent whose posterior is the prior: it is not active, and its axis is left alone."""
    g = torch.Generator().manual_seed(0)
    codes = torch.randn(200, 3, generator=g).double()
    codes[:, 1] *= 0.1
    variances = torch.tensor([0.02, 0.95, 0.05]).double().expand(200, 3)
    W = torch.randn(3, 6, generator=g).double()
    found = align(lambda z: z @ W, codes, variances, s2=0.1)
    before = diagnose(lambda z: z @ W, codes, variances, s2=0.1, beta=1.0)
    assert [latent.active for latent in before.latents] == [True, False, True]
    told = {row["what"]: row["before"] for row in found.table}
    assert told["DtO"] == pytest.approx(before.dto)
    assert told["DtO by chance"] == pytest.approx(before.dto_haar)
    assert told["IMA contrast (nats)"] == pytest.approx(before.ima_contrast)
    assert found.rotation[1].tolist() == [0, 1, 0]


def test_dead_latents_are_left_alone() -> None:
    W = torch.zeros(4, 4).double()
    W[:2, 0], W[:2, 2] = torch.tensor([2.0, 1.0]).double(), torch.tensor([-0.4, 1.2]).double()
    codes = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).double()
    R = align(lambda z: z @ W.T, codes).rotation
    assert torch.equal(R[[1, 3]][:, [1, 3]], torch.eye(2).double())
    assert R[[0, 2]][:, [1, 3]].abs().max() == 0
    nothing = align(lambda z: 0 * z, codes)
    assert not nothing.helped
    assert torch.equal(nothing.rotation, torch.eye(4).double())


def test_finds_the_factors_of_a_turned_manifold() -> None:
    """A curved ground truth with orthogonal columns, hidden by a rotation of latent space: align brings it back."""
    data = Manifolds(kind="log-polar", size=400)
    w = data.factors(torch.arange(400)).double()
    Q = torch.as_tensor(ortho_group.rvs(2, random_state=3))
    found = align(lambda z: data.function(z @ Q), w @ Q.T, s2=0.01)
    correlation = np.abs(np.corrcoef(found.codes.T, w.T.numpy())[:2, 2:]).max(0)
    assert (correlation > 0.999).all()
    assert found.table[0]["after"] < 1e-6 < found.table[0]["before"]


def test_result_reads_well() -> None:
    W = torch.tensor([[2.0, 1.0], [0.0, 1.0]])
    found = align(lambda z: z @ W.T, torch.randn(20, 2, generator=torch.Generator().manual_seed(0)), s2=1.0)
    before = float(entanglement_cost(W.T @ W))
    assert found.table[0] == {"what": "entanglement cost (nats of loss)", "before": pytest.approx(before), "after": 0.0}
    assert f"{before:.3g}" in str(found)
    assert f"<td>{before:.3g}</td><td>0</td>" in found._repr_html_()


def test_a_bernoulli_is_judged_by_the_matrix_that_was_turned() -> None:
    """The cost of A D falls to a quarter while the columns of J = d mean/dz become less orthogonal (review, B13)."""
    generator = torch.Generator().manual_seed(64)
    D, b = torch.randn(12, 2, generator=generator).double(), 3 * torch.randn(12, generator=generator).double()
    codes = torch.randn(300, 2, generator=generator).double()
    found = align(lambda z: z @ D.T + b, codes, likelihood="bernoulli")
    assert found.table[1]["after"] < 0.5 * found.table[1]["before"]
    assert found.helped


def test_an_unknown_beta_is_estimated_and_said() -> None:
    W = torch.tensor([[3.0, 1.0], [0.0, 2.0]]).double()
    codes = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)).double()
    variances = sigma_law(W.T @ W / 0.5, beta=0.2).expand(200, 2)
    given, found = (align(lambda z: z @ W.T, codes, variances, beta=beta) for beta in (0.2, None))
    for one, other in zip(found.table, given.table, strict=True):
        assert one == pytest.approx(other)
    assert "0.2 is an estimate from the Sigma law" in found.verdict
    assert "estimate" not in given.verdict
