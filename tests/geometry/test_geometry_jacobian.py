"""Jacobians, metrics and Hessians against finite differences, closed forms and PyTorch's own."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap

from unseam.data.sets.manifolds import COORDINATE_SYSTEMS, Manifolds
from unseam.errors import BadInput
from unseam.geometry.curvature import entanglement_cost
from unseam.geometry.jacobian import hessian, jacobian, metrics, pullback, singular
from unseam.geometry.orthogonality import ima_contrast
from unseam.models.likelihood import Bernoulli, Gaussian


def smooth_decoder(K: int = 3, n: int = 7, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(K, 16), nn.Tanh(), nn.Linear(16, 12), nn.Softplus(), nn.Linear(12, n)).double()


def points(N: int, K: int, seed: int = 1) -> Tensor:
    return torch.randn(N, K, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_against_central_differences() -> None:
    decode, z, h = smooth_decoder(), points(5, 3), 1e-5
    columns = [(decode(z + h * e) - decode(z - h * e)) / (2 * h) for e in torch.eye(3).double()]
    torch.testing.assert_close(jacobian(decode, z), torch.stack(columns, -1), rtol=1e-8, atol=1e-9)


def test_linear_decoder_has_its_matrix_everywhere() -> None:
    W = torch.randn(6, 4).double()
    assert torch.equal(jacobian(lambda z: z @ W.T, points(9, 4)), W.expand(9, 6, 4))


@pytest.mark.parametrize("kind", COORDINATE_SYSTEMS)
@pytest.mark.parametrize("shear", [0.0, 0.7])
def test_known_manifolds(kind: str, shear: float) -> None:
    """d/dw of x = Q g(S w) is known; without a shear its columns are orthogonal, so every cost is 0."""
    data = Manifolds(kind=kind, pairs=2, shear=shear, size=50)
    w = points(50, 4)
    J = jacobian(data.function, w)
    torch.testing.assert_close(J, data.jacobian(w), rtol=1e-10, atol=1e-12)
    contrast = ima_contrast(metrics(data.function, w).gram)
    assert (contrast.abs().max() < 1e-10) if shear == 0 else (contrast.min() > 1e-3)


def test_convolutions_and_image_shapes() -> None:
    torch.manual_seed(0)
    decode = nn.Sequential(
        nn.Linear(3, 32), nn.ReLU(), nn.Unflatten(1, (8, 2, 2)), nn.ConvTranspose2d(8, 2, 4, 2, 1), nn.Sigmoid()
    )
    z = torch.randn(7, 3)
    expected = vmap(jacrev(lambda one: decode(one[None])[0]))(z).flatten(1, -2)
    torch.testing.assert_close(jacobian(decode, z), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_slices_do_not_change_the_result(chunk: int) -> None:
    decode, z = smooth_decoder(), points(11, 3)
    torch.testing.assert_close(jacobian(decode, z, chunk=chunk), jacobian(decode, z), rtol=1e-12, atol=1e-14)
    for sliced, whole in zip(metrics(decode, z, chunk=chunk), metrics(decode, z), strict=True):
        torch.testing.assert_close(sliced, whole, rtol=1e-12, atol=1e-14)


def test_reverse_mode_is_the_same() -> None:
    decode, z = smooth_decoder(), points(4, 3)
    torch.testing.assert_close(jacobian(decode, z, mode="reverse"), jacobian(decode, z), rtol=1e-12, atol=1e-14)
    with pytest.raises(BadInput, match="did you mean 'reverse'"):
        jacobian(decode, z, mode="revers")


def test_metrics_are_what_they_say() -> None:
    decode, z = smooth_decoder(), points(6, 3)
    D, theta = jacobian(decode, z), decode(z)
    p = theta.sigmoid()
    bernoulli = metrics(decode, z, Bernoulli())
    J = (p * (1 - p)).unsqueeze(-1) * D
    torch.testing.assert_close(bernoulli.gram, J.mT @ J)
    torch.testing.assert_close(bernoulli.pullback, D.mT @ ((p * (1 - p)).unsqueeze(-1) * D))
    gaussian = metrics(decode, z, Gaussian(0.25))
    torch.testing.assert_close(gaussian.pullback, gaussian.gram / 0.25, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(pullback(decode, z, s2=0.25), gaussian.pullback)


@pytest.mark.parametrize("likelihood", [Gaussian(0.3).double(), Bernoulli()])
def test_hessian_against_pytorch_and_the_formula(likelihood: nn.Module) -> None:
    """H = -M + sum_k (x - xhat)_k d^2 theta_k / dz^2 (scaled by 1/s2 for the Gaussian)."""
    decode, z, x = smooth_decoder(), points(4, 3), torch.rand(4, 7).double()
    H = hessian(decode, z, x, likelihood)
    second_derivative = torch.autograd.functional.hessian
    direct = [second_derivative(lambda a, i=i: likelihood.log_prob(x[[i]], decode(a[None]))[0], z[i]) for i in range(4)]
    torch.testing.assert_close(H, torch.stack(direct), rtol=1e-9, atol=1e-9)
    every = [(i, k) for i in range(4) for k in range(7)]
    second = torch.stack([second_derivative(lambda a, k=k: decode(a[None])[0, k], z[i]) for i, k in every])
    residual = x - likelihood.mean(decode(z))
    scale = 1 / 0.3 if isinstance(likelihood, Gaussian) else 1.0
    extra = scale * torch.einsum("bk,bkij->bij", residual, second.reshape(4, 7, 3, 3))
    torch.testing.assert_close(H, extra - pullback(decode, z, likelihood), rtol=1e-6, atol=1e-7)


def test_the_second_term_vanishes_for_piecewise_linear_and_exact_decoders() -> None:
    torch.manual_seed(0)
    relu = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 5)).double()
    z = points(6, 3)
    x = torch.rand(6, 5).double()
    torch.testing.assert_close(hessian(relu, z, x, s2=1.0), -pullback(relu, z, s2=1.0))
    tanh = smooth_decoder()
    torch.testing.assert_close(hessian(tanh, z, tanh(z).detach(), s2=1.0), -pullback(tanh, z, s2=1.0))


def test_singular_values_and_vectors_against_svd() -> None:
    J = torch.randn(20, 9, 4, generator=torch.Generator().manual_seed(3)).double()
    s, V = singular(J.mT @ J)
    _, expected, Vh = torch.linalg.svd(J, full_matrices=False)
    torch.testing.assert_close(s, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close((V * Vh.mT).sum(1).abs(), torch.ones(20, 4).double())


@pytest.mark.parametrize("chunk", [None, 2])
def test_penalties_lift_over_members_and_differentiate(chunk: int | None) -> None:
    """vmap over stacked parameters gives each member's own gradient; finite differences agree with it."""
    members = [smooth_decoder(seed=s) for s in range(3)]
    stacked, _ = stack_module_state(members)
    frame, z = smooth_decoder(), points(5, 3)

    def penalty(parameters: dict[str, Tensor]) -> Tensor:
        M = metrics(lambda a: functional_call(frame, parameters, (a,)), z, "bernoulli", chunk=chunk)
        return (entanglement_cost(M.pullback, 0.1) + ima_contrast(M.gram)).mean()

    lifted = vmap(grad(penalty))(stacked)
    for s, member in enumerate(members):
        parameters = {name: p.detach().clone() for name, p in member.named_parameters()}
        own = grad(penalty)(parameters)
        for name in own:
            torch.testing.assert_close(lifted[name][s], own[name], rtol=1e-8, atol=1e-10)
        h, direction = 1e-6, torch.randn_like(parameters["0.weight"])
        up, down = ({**parameters, "0.weight": parameters["0.weight"] + d * direction} for d in (h, -h))
        slope = (penalty(up) - penalty(down)) / (2 * h)
        torch.testing.assert_close((own["0.weight"] * direction).sum(), slope, rtol=1e-5, atol=1e-8)
