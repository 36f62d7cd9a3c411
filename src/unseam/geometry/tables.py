"""The two tables of a diagnosis: a row a latent, and a row a pair of active latents."""

from dataclasses import replace

import numpy as np
import torch

from unseam.geometry.coordinates import pair_coordinates
from unseam.geometry.curvature import MIXED, pair_costs
from unseam.geometry.degeneracy import TOO_CLOSE, axis_preferences, pairs_of, plane_differences
from unseam.geometry.diagnosis import Latent, Pair
from unseam.geometry.law import Law
from unseam.geometry.orthogonality import cosines
from unseam.geometry.question import Question, column_norms

INSPECTED = 10  # mixed pairs, the costliest, that are told cartesian from polar


def latent_table(q: Question, law: Law) -> tuple[Latent, ...]:
    stats = (None, None) if q.stats is None else (q.stats.kl.tolist(), q.stats.mean_sigma2.tolist())
    kl, sigma2 = (column or [None] * len(q.active) for column in stats)
    columns = (law.predicted.mean(0), column_norms(q.M), q.codes.std(0), q.active)
    rows = zip(kl, sigma2, *(column.tolist() for column in columns), strict=True)
    return tuple(Latent(k, *row) for k, row in enumerate(rows))


def pair_table(q: Question) -> tuple[Pair, ...]:
    """Every pair of active latents, the costliest first."""
    keep = torch.as_tensor(np.flatnonzero(q.active))
    if len(keep) < 2:
        return ()
    i, j = (keep[side] for side in pairs_of(len(keep)))
    costs = pair_costs(q.M.pullback, q.beta).mean(0)[i, j]
    cosine = cosines(q.G).square().mean(0).sqrt()[i, j]
    difference = plane_differences(q.G, i, j)
    turns = axis_preferences(q.M.pullback, i, j, q.beta)
    mixed = costs > MIXED * q.beta
    columns = (i, j, costs, cosine, difference, turns.preference, turns.saving, mixed, difference < TOO_CLOSE)
    order = costs.argsort(descending=True)
    rows = [Pair(*row) for row in zip(*(column[order].tolist() for column in columns), strict=True)]
    looked = [p for p in rows if p.mixed][:INSPECTED]
    return tuple(replace(p, coordinates=coordinates(q, p.i, p.j)) if p in looked else p for p in rows)


def coordinates(q: Question, i: int, j: int) -> str:
    block = q.M.pullback[:, [i, j]][:, :, [i, j]].numpy()
    return pair_coordinates(q.z[:, [i, j]].double().cpu().numpy(), block, q.beta).kind
