"""One rotation for many matrices: joint approximate diagonalisation by Jacobi angles (Flury & Gautschi 1986).

    minimise over rotations R:   f(R) = mean_x sum_i log(1 + (R^T M_x R)_ii / beta)

log det(I + M_x/beta) does not see R, so this is beta/2 times the entanglement cost up to a constant. A sweep visits
every pair of axes; disjoint pairs do not touch each other's diagonal, so K/2 of them turn at once (round robin).
With a = (M_pp + M_qq)/2, u = (M_pp - M_qq)/2 / (beta + a), v = M_pq / (beta + a), a turn by t = psi/4 changes f by
mean_x log(1 - w^2) with w = u cos 2t + v sin 2t: one smooth periodic function of psi, searched on a grid and then
by Newton steps inside a bracket. A pair turns only if f falls, so f never rises; two latents are solved exactly.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from unseam.geometry.orthogonality import nearest_permutation
from unseam.rng import generator

_GRID = 16  # angles tried per pair before the Newton steps
_CELL = 2 * math.pi / _GRID
_STEPS = 12  # Newton or bisection steps inside the best grid cell
COARSE = 256  # points that decide between starts
_SWEEPS = 60  # the most that any start is given


def rotation_cost(M: Tensor, R: Tensor, beta: float = 1.0) -> float:  # (N, K, K), (K, K)
    """f(R) = mean_x sum_i log(1 + (R^T M_x R)_ii / beta), in nats.

    >>> round(rotation_cost(torch.diag(torch.tensor([3.0, 1.0]))[None], torch.eye(2)), 4)  # log 4 + log 2
    2.0794
    """
    diagonal = torch.einsum("ip,xip->xp", R, M @ R)
    return float(torch.log1p(diagonal / beta).sum(1).mean())


def rounds(K: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Round robin: K - 1 (or K) rounds of disjoint pairs (p, q) that meet every pair once.

    >>> [list(zip(p.tolist(), q.tolist())) for p, q in rounds(4)]
    [[(0, 3), (1, 2)], [(0, 2), (3, 1)], [(0, 1), (2, 3)]]
    """
    players = list(range(K + K % 2))
    half = len(players) // 2
    for _ in range(len(players) - 1):
        pairs = [(p, q) for p, q in zip(players[:half], players[: half - 1 : -1], strict=True) if max(p, q) < K]
        p, q = torch.tensor(pairs, dtype=torch.long, device="cpu").reshape(-1, 2).unbind(1)
        yield p, q
        players = [players[0], players[-1], *players[1:-1]]


def best_angles(u: Tensor, v: Tensor, local: bool = False) -> Tensor:  # (P, N), (P, N) -> (P,)
    """The turn t of each pair that minimises mean_x log(1 - w^2), in [-pi/4, pi/4]; 0 where no turn lowers it.

    `local` looks only near t = 0, which is enough once the turns have become small.

    >>> best_angles(torch.zeros(1, 1), torch.full((1, 1), 0.5)).abs() * 180 / math.pi
    tensor([45.])
    """
    level, x, y = 1 - (u * u + v * v) / 2, (u * u - v * v) / 2, u * v  # 1 - w^2 = level - x cos psi - y sin psi
    tiny = torch.finfo(u.dtype).tiny

    def value(psi: Tensor) -> Tensor:  # (P,) -> (P,)
        return (level - x * psi.cos().unsqueeze(1) - y * psi.sin().unsqueeze(1)).clamp(min=tiny).log().mean(1)

    grid = torch.arange(1 if local else _GRID, dtype=u.dtype, device=u.device) * _CELL
    values = torch.stack([value(angle.expand(len(u))) for angle in grid])
    psi = newton(level, x, y, grid[values.argmin(0)])
    t = torch.remainder(psi + math.pi, 2 * math.pi) / 4 - math.pi / 4
    return torch.where(value(psi) < values[0], t, torch.zeros_like(t))


def newton(level: Tensor, x: Tensor, y: Tensor, psi: Tensor) -> Tensor:  # (P, N) x 3, (P,) -> (P,)
    """The minimum of mean_x log(level - x cos psi - y sin psi) near psi: Newton, or bisection of the slope's sign."""
    low, high = psi - _CELL, psi + _CELL
    for _ in range(_STEPS):
        c, s = psi.cos().unsqueeze(1), psi.sin().unsqueeze(1)
        along = x * c + y * s
        h = (level - along).clamp(min=torch.finfo(x.dtype).tiny ** 0.5)
        first = (x * s - y * c) / h
        slope, bend = first.mean(1), (along / h - first * first).mean(1)
        low, high = torch.where(slope < 0, psi, low), torch.where(slope < 0, high, psi)
        step = psi - slope / bend
        newer = torch.where((bend > 0) & (step >= low) & (step <= high), step, (low + high) / 2)
        moved, psi = float((newer - psi).abs().max()), newer
        if moved < 1e-9:
            break
    return psi


def _turn(left: Tensor, right: Tensor, cos: float, sin: float) -> None:
    """left, right = cos left + sin right, cos right - sin left, in place: two rows at a time stay in the cache."""
    new = (left * cos).add_(right, alpha=sin)
    right.mul_(cos).sub_(left, alpha=sin)
    left.copy_(new)


def jacobi_sweep(M: Tensor, R: Tensor, beta: float, local: bool = False) -> tuple[Tensor, float]:
    """Every pair once, starting from R; returns the new R and the largest angle turned."""
    largest = 0.0
    rows, T = R.T.clone(), torch.einsum("xij,jp->pix", M, R).contiguous()  # T[p] = M_x r_p, points last
    diagonal = torch.einsum("pi,pix->px", rows, T)  # (K, N)
    for p, q in rounds(R.shape[0]):
        a, b = (diagonal[p] + diagonal[q]) / 2, (diagonal[p] - diagonal[q]) / 2
        c = torch.stack([rows[i] @ T[j] for i, j in zip(p, q, strict=True)])  # r_p^T M_x r_q
        t = best_angles(b / (beta + a), c / (beta + a), local)
        largest = max(largest, float(t.abs().max()))
        turned = b * (2 * t).cos().unsqueeze(1) + c * (2 * t).sin().unsqueeze(1)
        diagonal[p], diagonal[q] = a + turned, a - turned
        for i, j, cos, sin in zip(p.tolist(), q.tolist(), t.cos().tolist(), t.sin().tolist(), strict=True):
            _turn(rows[i], rows[j], cos, sin)
            _turn(T[i], T[j], cos, sin)
    return rows.T, largest


def descend(M: Tensor, R: Tensor, beta: float, tolerance: float = 1e-9) -> tuple[Tensor, float]:
    """Sweeps from R until no pair turns by a millionth, or a sweep saves less than the tolerance of the cost."""
    cost, largest = rotation_cost(M, R, beta), math.inf
    for _ in range(_SWEEPS):
        R, largest = jacobi_sweep(M, R, beta, local=largest < _CELL / 16)
        before, cost = cost, rotation_cost(M, R, beta)
        if largest < 1e-6 or before - cost <= tolerance * abs(before):
            break
    return R, cost


def starts(M: Tensor, beta: float, restarts: int, seed: int) -> list[Tensor]:
    """Where to begin: as it is, the axes of the mean metric, and `restarts` random rotations."""
    K = M.shape[-1]
    scaled = M / (beta + M.diagonal(dim1=1, dim2=2).sum(1)[:, None, None] / K)
    normal = torch.randn(restarts, K, K, generator=generator(seed, "align"), dtype=M.dtype, device="cpu").to(M)
    return [
        torch.eye(K, dtype=M.dtype, device=M.device),
        torch.linalg.eigh(scaled.mean(0))[1],
        *torch.linalg.qr(normal)[0],
    ]


def joint_rotation(M: Tensor, beta: float = 1.0, restarts: int = 2, seed: int = 0) -> Tensor:  # (N, K, K) -> (K, K)
    """The rotation R that makes all R^T M_x R as diagonal as one rotation can, columns matched to the old axes.

    Starts compete on a few hundred points; the winner is finished on all. The identity is returned when it is best.

    Parameters
    ----------
    M : Tensor of shape (N, K, K)
        The metric at each point, as `pullback` gives it.
    beta : float, default=1.0
        The weight of the KL in the loss.
    restarts : int, default=2
        Random rotations from which the search starts, besides the old axes and those of the mean metric.
    seed : int, default=0
        Of the random draws.

    Returns
    -------
    Tensor of shape (K, K)
        The rotation; its columns are the new axes.

    Examples
    --------
    >>> Q = torch.linalg.qr(torch.tensor([[2.0, 1.0], [-1.0, 2.0]]).double())[0]
    >>> M = Q @ torch.diag(torch.tensor([9.0, 1.0]).double()) @ Q.T
    >>> R = joint_rotation(M[None])
    >>> bool((R.T @ M @ R)[0, 1].abs() < 1e-9)
    True
    """
    M = M.double()
    if M.shape[-1] < 2:
        return torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    few = M[:: max(1, math.ceil(len(M) / COARSE))]
    found = [descend(few, start, beta, tolerance=1e-6) for start in starts(few, beta, restarts, seed)]
    R, _ = min(found, key=lambda pair: pair[1])
    R, cost = descend(M, R, beta)
    eye = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    return match_axes(R) if cost < rotation_cost(M, eye, beta) else eye


def match_axes(R: Tensor) -> Tensor:  # (K, K) -> (K, K)
    """The same axes, numbered and signed so that each new latent is the one nearest to an old one.

    >>> torch.equal(match_axes(torch.tensor([[0.0, -1.0], [1.0, 0.0]])), torch.eye(2))
    True
    """
    R = R[:, torch.as_tensor(nearest_permutation(R[None].numpy())[0])]
    return R * torch.where(R.diagonal() < 0, -1.0, 1.0)
