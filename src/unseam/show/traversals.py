"""What a latent does: frames along z_i with the other latents held still, and tables over a pair of latents."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array

FRAMES = 11
_REACH = 2.5  # standard deviations of the prior on either side
TABLE_FRAMES = 7  # frames a side of a pair's table


def latent_values(codes: Array, prior: bool = True, frames: int = FRAMES) -> Tensor:  # (N, K) -> (K, T)
    """Where each latent goes: -2.5..2.5 when codes follow a N(0, 1) prior, else from their 1 % to their 99 % quantile.

    >>> latent_values(np.zeros((5, 1)), frames=3)
    tensor([[-2.5000,  0.0000,  2.5000]])
    >>> latent_values(np.linspace(0, 100, 101)[:, None], prior=False, frames=3)
    tensor([[ 1., 50., 99.]])
    """
    K = codes.shape[1]
    low, high = ([-_REACH] * K, [_REACH] * K) if prior else np.quantile(codes, [0.01, 0.99], axis=0)
    return torch.as_tensor(np.linspace(low, high, frames, axis=1), dtype=torch.float32)


@torch.no_grad()
def traversal_frames(
    decode: Callable[[Tensor], Tensor],
    z: Tensor,  # (K,)
    values: Tensor,  # (K, T)
) -> Tensor:  # (K, T, *shape)
    """Frames of every latent from one point: latent i takes its T values, the others stay where they are.

    >>> traversal_frames(lambda z: z, torch.tensor([5.0, 7.0]), torch.tensor([[0.0, 1.0], [0.0, 1.0]])).tolist()
    [[[0.0, 7.0], [1.0, 7.0]], [[5.0, 0.0], [5.0, 1.0]]]
    """
    K, T = values.shape
    points = z.expand(K, T, K).clone()
    points[torch.arange(K), :, torch.arange(K)] = values
    return decode(points.flatten(0, 1)).unflatten(0, (K, T))


@torch.no_grad()
def traverse_pair(
    decode: Callable[[Tensor], Tensor],
    z: Tensor,  # (K,)
    i: int,
    j: int,
    values: Tensor,  # (K, T)
) -> Tensor:  # (T, T, *shape)
    """A table over two latents: z_i grows to the right, z_j upwards (the first row has the largest z_j).

    >>> table = traverse_pair(lambda z: z, torch.zeros(2), 0, 1, torch.tensor([[0.0, 1.0], [0.0, 1.0]]))
    >>> table[0].tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    T = values.shape[1]
    points = z.expand(T, T, len(z)).clone()
    points[:, :, i] = values[i]
    points[:, :, j] = values[j].flip(0)[:, None]
    return decode(points.flatten(0, 1)).unflatten(0, (T, T))
