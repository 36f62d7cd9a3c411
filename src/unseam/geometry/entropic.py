"""Manifold entropic scores of a decoder, without labels (after Galperin & Koethe 2025, arXiv 2410.19426).

A latent that moves along its curve with speed s_i = |J_i| spreads its prior over a length whose entropy is

    H_i = H(z_i) + E log s_i                      nats; a long curve carries more
    R   = sum_i E log s_i - E 1/2 log det J^T J   the redundancy of the curves, >= 0, 0 iff they meet at right angles

Sorted by H_i the latents form a spectrum, as eigenvalues do for PCA; R is the mean IMA contrast. `effective` is the
number of latents that the spectrum amounts to, exp of the entropy of the shares of squared speed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.geometry.jacobian import Decoder, pullbacks
from unseam.geometry.orthogonality import ima_contrast

NORMAL = 0.5 * (1 + float(np.log(2 * np.pi)))  # entropy of N(0, 1), nats


class EntropicScores(NamedTuple):
    """The spectrum of a decoder's latents, in nats.

    Parameters
    ----------
    entropy : array of shape (K,)
        H_i of each latent, in nats.
    order : array of shape (K,)
        Latents, the largest entropy first.
    redundancy : float
        R, in nats.
    shared : array of shape (K, K)
        Nats that two curves share: -1/2 log(1 - cos^2), the mean over points.
    effective : float
        How many latents the spectrum amounts to.

    Examples
    --------
    >>> entropic_scores(lambda z: 2 * z, torch.zeros(5, 3)).order
    array([0, 1, 2])
    """

    entropy: Array  # (K,) H_i, by latent
    order: Array  # (K,) latents, the largest entropy first
    redundancy: float  # R, nats
    shared: Array  # (K, K) nats that two curves share: -1/2 log(1 - cos^2), mean over points
    effective: float  # how many latents the spectrum amounts to


@torch.no_grad()
def entropic_scores(decode: Decoder, z: Tensor, chunk: int | None = None) -> EntropicScores:  # (N, K)
    """Entropy of each latent on the manifold and what the latents share, for z ~ N(0, I).

    Parameters
    ----------
    decode : callable
        Maps points (B, K) to the mean of x (B, ...), row by row.
    z : Tensor of shape (N, K)
        Points, for instance draws of the prior or codes.
    chunk : int, optional
        Points at a time.

    Returns
    -------
    EntropicScores

    Examples
    --------
    >>> W = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> found = entropic_scores(lambda z: z @ W.T, torch.zeros(5, 2))
    >>> round(float(found.entropy[0] - found.entropy[1]), 6), round(float(np.log(3)), 6), found.redundancy
    (1.098612, 1.098612, 0.0)
    """
    if z.ndim != 2 or not len(z):
        raise BadInput(f"z has shape {tuple(z.shape)}; give points (N, K)")
    gram = pullbacks(decode, z, chunk=chunk, dtype=torch.float64).gram.cpu()
    squares = gram.diagonal(dim1=1, dim2=2)
    longest = float(squares.max())
    if not longest > 0:
        raise BadInput("the decoder does not move with any latent, so there is no entropy; is it trained?")
    floor = 1e-24 * longest  # a dead latent: its curve is a point
    logs = 0.5 * squares.clamp(min=floor).log()
    entropy = (NORMAL + logs.mean(0)).numpy()
    cosine = gram / squares.clamp(min=floor).sqrt()[:, :, None] / squares.clamp(min=floor).sqrt()[:, None, :]
    shared = -0.5 * torch.log1p(-cosine.square().clamp(max=1 - 1e-12)).mean(0).numpy()
    np.fill_diagonal(shared, 0.0)
    share = (squares.mean(0) / squares.mean(0).sum()).numpy()
    spectrum = float(np.exp(-(share * np.log(np.maximum(share, 1e-300))).sum()))
    return EntropicScores(
        entropy, np.argsort(-entropy, kind="stable"), float(ima_contrast(gram).mean()), shared, spectrum
    )
