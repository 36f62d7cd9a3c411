"""log p(x) and the best ELBO of a decoder with two latents, by quadrature and without training (Z15).

p(x|z) = N(x; f(z), I/precision),  p(z) = N(0, I)
"""

import math

import torch
from numpy.polynomial.hermite_e import hermegauss
from torch import Tensor

from unseam.geometry.jacobian import Decoder


def log_joint(f: Decoder, x: Tensor, z: Tensor, precision: float) -> Tensor:  # (N, 2), (N, Q, 2) -> (N, Q)
    """log p(x|z) + log p(z)."""
    square = (x[:, None] - f(z.flatten(0, 1)).view_as(z)).square().sum(-1)
    log_x = math.log(precision / (2 * math.pi)) - 0.5 * precision * square
    return log_x - 0.5 * z.square().sum(-1) - math.log(2 * math.pi)


def log_likelihood(f: Decoder, x: Tensor, at: Tensor, scale: Tensor, precision: float, grid: int) -> Tensor:  # (N,)
    """log int p(x|z) p(z) dz: the trapezium rule over +-10 posterior deviations around `at`; scale (N, 2, 2)."""
    t = torch.linspace(-10, 10, grid, dtype=x.dtype)
    nodes = torch.cartesian_prod(t, t)  # (G, 2)
    z = at[:, None] + torch.einsum("gk,njk->ngj", nodes, scale)
    volume = 2 * math.log(float(t[1] - t[0])) + torch.linalg.slogdet(scale)[1]
    return torch.logsumexp(log_joint(f, x, z, precision), 1) + volume


def best_bound(
    f: Decoder, x: Tensor, start: Tensor, M: Tensor, precision: float, nodes: int, full: bool
) -> tuple[Tensor, Tensor]:
    """(ELBO*, mean of the best q) per point: over the mean and the diagonal (or the whole) factor L, z = mean + L n."""
    points, weights = hermegauss(nodes)
    n = torch.cartesian_prod(*[torch.from_numpy(points)] * 2)  # (Q, 2)
    w = torch.cartesian_prod(*[torch.from_numpy(weights / weights.sum())] * 2).prod(1)
    root = torch.linalg.cholesky(torch.linalg.inv(M)) if full else torch.diag_embed(M.diagonal(dim1=1, dim2=2).rsqrt())
    free = torch.zeros(len(x), 5, dtype=x.dtype, requires_grad=True)  # shift (2), log stretch (2), shear (1)

    def bound() -> tuple[Tensor, Tensor]:
        shift, stretch, shear = free[:, :2], free[:, 2:4], free[:, 4] * float(full)
        lower = (
            torch.diag_embed(stretch.exp())
            + torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=x.dtype) * shear[:, None, None]
        )
        L = root @ lower
        mean = start + (root @ shift[:, :, None])[:, :, 0]
        z = mean[:, None] + torch.einsum("qk,njk->nqj", n, L)
        entropy = L.diagonal(dim1=1, dim2=2).log().sum(1) + math.log(2 * math.pi) + 1
        return log_joint(f, x, z, precision) @ w + entropy, mean

    optimiser = torch.optim.LBFGS(
        [free], max_iter=40, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = -bound()[0].sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    value, mean = bound()
    return value.detach(), mean.detach()
