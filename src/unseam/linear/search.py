"""The partition with the largest I_m, by branch and bound, with a proof of the bound.

The slides try all m^s assignments and name the cost as the limitation. Three facts make the search short.

1. The penalty does not see which latent a group belongs to. So search the set partitions (Bell numbers: 115,975
   at s = 10 instead of 10^10) and give groups to latents afterwards, a linear assignment.
2. Assignment from above: a group cannot gain more than max_i I(x_i; v_S), nor a latent more than its best group.
3. Information is monotone in its sets. Place factors one by one; P_g are the groups so far, R the factors left,
   m the number of latents, k of groups, q = min(m - k, |R|) the groups still to come. Every completion has groups
   S_g with P_g in S_g in P_g + R and at most q new ones inside R, hence by monotony

       penalty  >=  sum_{g<h} I(v_{P_g}; v_{P_h})
       gain     <=  sum_g max_i I(x_i; v_{P_g+R}) + q max_i I(x_i; v_R)                                   (rows)
       gain     <=  the k + q largest over i of  max( max_g I(x_i; v_{P_g+R}), I(x_i; v_R) if q > 0 )     (columns)

   (columns: each latent serves one group at most, and at most k + q latents serve). The smaller gain minus the
   penalty bounds every completion; a node whose bound is not above the best known value is cut. At R = {} rows and
   columns are fact 2. When the budget of nodes runs out, the largest bound still open gives the stated gap.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.linear.information import Tables
from unseam.linear.partition import TIE, Partition, as_partition, assignment_masks, partition_value, tie_broken_value
from unseam.rng import numpy_generator

_CHUNK = 20_000  # nodes expanded at once


def best_partition(tables: Tables, budget: int = 3_000_000) -> Partition:
    """I_m by branch and bound; exact while fewer than `budget` nodes are searched, else with a stated gap.

    Parameters
    ----------
    tables : Tables
        The information between latents and groups of factors, as `gaussian_tables` gives it.
    budget : int, default=3,000,000
        Partial partitions that are searched at most.

    Returns
    -------
    Partition
        The value, the groups and the gap.

    Examples
    --------
    >>> from unseam.linear.information import gaussian_tables
    >>> t = gaussian_tables(np.eye(3), [2.0, 2.0], [[1.0, 0.2, 0.0], [0.0, 0.2, 1.0]])
    >>> p = best_partition(t)
    >>> p.groups, round(p.value, 4), p.gap
    (((0, 1), (2,)), 0.7136, 0.0)
    """
    if tables.gain.ndim != 2:
        raise BadInput("best_partition takes one code; brute_force takes many")
    found, stack, visited = local_search(tables), [_root(tables)], 0
    order = np.argsort(-tables.gain[:, 1 << np.arange(tables.s)].max(0), kind="stable")
    while stack and visited < budget:
        node = _expand(tables, stack.pop(), order)
        visited += len(node.masks)
        if node.depth == tables.s:
            found = _leaves(tables, node, found)
        else:
            stack += node.above(tie_broken_value(found)).chunks()
    open_bounds = [float(node.bound.max()) for node in stack]
    gap = max([0.0, *(b - tie_broken_value(found) for b in open_bounds)])
    return Partition(found.value, found.groups, gap, visited)


@dataclass(frozen=True)
class _Nodes:
    """Partial partitions of the same first `depth` factors."""

    depth: int
    masks: Array  # (F, G) groups in order of appearance, 0 for those not yet there
    count: Array  # (F,) k
    penalty: Array  # (F,)
    bound: Array  # (F,)

    def take(self, index: Array) -> "_Nodes":
        return _Nodes(self.depth, self.masks[index], self.count[index], self.penalty[index], self.bound[index])

    def above(self, value: float) -> "_Nodes":
        return self.take(np.flatnonzero(self.bound > value))

    def chunks(self) -> list["_Nodes"]:
        """Pieces of bounded size, the most promising last."""
        order = np.argsort(self.bound, kind="stable")
        return [self.take(order[i : i + _CHUNK]) for i in range(0, len(order), _CHUNK)]


def _root(tables: Tables) -> _Nodes:
    zero = np.zeros(1)
    return _Nodes(0, np.zeros((1, min(tables.m, tables.s)), int), np.zeros(1, int), zero, zero + np.inf)


def _expand(tables: Tables, node: _Nodes, order: Array) -> _Nodes:
    """Put the next factor into each group that is there, or into a new one."""
    bit, parts = 1 << order[node.depth], []
    for g in range(min(node.depth + 1, node.masks.shape[1])):
        fits = node.take(np.flatnonzero(node.count >= g))
        old, masks = fits.masks[:, g], fits.masks.copy()
        masks[:, g] |= bit
        others = [fits.masks[:, h] for h in range(min(node.depth, masks.shape[1])) if h != g]
        rise = sum(tables.between(masks[:, g], o) - tables.between(old, o) for o in others)
        parts.append((masks, np.maximum(fits.count, g + 1), fits.penalty + rise))
    masks, count, cost = (np.concatenate(column) for column in zip(*parts, strict=True))
    rest = int((1 << order[node.depth + 1 :]).sum())
    return _Nodes(node.depth + 1, masks, count, cost, _bound(tables, masks, count, rest) - cost - TIE * count)


def _bound(tables: Tables, masks: Array, count: Array, rest: int) -> Array:  # -> (F,)
    """The smaller of rows and columns (module docstring, fact 3); no bound for estimates that are not monotone."""
    if rest and not tables.monotone:
        return np.full(len(masks), np.inf)
    new = np.minimum(masks.shape[1] - count, rest.bit_count())
    there = masks > 0
    best = tables.gain.max(0)
    rows = (best[masks | rest] * there).sum(1) + new * best[rest]
    if not rest:
        return rows
    each = np.stack([(gain[masks | rest] * there).max(1) for gain in tables.gain], axis=1)  # (F, m)
    each = np.maximum(each, tables.gain[:, rest] * (new > 0)[:, None])
    top = np.cumsum(-np.sort(-each, axis=1), axis=1)
    columns = top[np.arange(len(top)), np.minimum(count + new, tables.m) - 1]
    return np.minimum(rows, columns)


def _leaves(tables: Tables, node: _Nodes, found: Partition) -> Partition:
    """Complete partitions, most promising first, until the next one's bound is below the best value."""
    for i in np.argsort(-node.bound, kind="stable"):
        if node.bound[i] <= tie_broken_value(found):
            break
        blocks = node.masks[i][node.masks[i] > 0]
        row, latent = linear_sum_assignment(tables.gain[:, blocks].T, maximize=True)
        value = float(tables.gain[latent, blocks[row]].sum() - node.penalty[i])
        if value - TIE * len(blocks) > tie_broken_value(found):
            masks = np.zeros(tables.m, int)
            masks[latent] = blocks[row]
            found = as_partition(value, masks, tables.s)
    return found


def local_search(tables: Tables, restarts: int = 8) -> Partition:
    """Move one factor at a time to the latent where it helps most, from several starts: a value to beat.

    >>> from unseam.linear.information import gaussian_tables
    >>> t = gaussian_tables(np.eye(2), [2.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> local_search(t).groups
    ((0,), (1,))
    """
    m, s = tables.m, tables.s
    generator = numpy_generator(0, "partition", "local search")
    best_latent = tables.gain.argmax(0)
    starts = [best_latent[1 << np.arange(s)], np.full(s, best_latent[-1])]
    starts += list(generator.integers(m, size=(restarts, s)))
    return max((_climb(tables, np.asarray(start)) for start in starts), key=tie_broken_value)


def _climb(tables: Tables, labels: Array) -> Partition:  # (s,)
    m, s = tables.m, tables.s
    score = -np.inf
    while True:
        moves = np.repeat(labels[None], s * m, axis=0)
        moves[np.arange(s * m), np.repeat(np.arange(s), m)] = np.tile(np.arange(m), s)
        masks = assignment_masks(moves, m)
        scores = partition_value(tables, masks) - TIE * (masks > 0).sum(1)
        top = int(scores.argmax())
        if scores[top] <= score:
            masks = assignment_masks(labels[None], m)
            return as_partition(float(partition_value(tables, masks)[0]), masks[0], s)
        score, labels = scores[top], moves[top]
