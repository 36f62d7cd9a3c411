"""The non-negative answer: every row is a sum of parts, x = h W with h >= 0 and W >= 0 (Lee & Seung 2001).

    counts       x ~ Poisson(h W)         h <- h * ((x / hW) W') / (1 W')
    amounts      x ~ N(h W + b, s2 I)     h_j <- max(0, h_j + (x - b - hW) W_j' / W_j W_j')   (Cichocki & Phan 2009)

and the same for W; b >= 0, what is there without any part, is a part whose h is 1. Cells that are not seen are left out
of the sums (counts), or are filled with hW + b (amounts). Parts are identified by non-negativity, not by independence:
amounts may share a library size. Whether they are is seen by starting again, from elsewhere, on other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unseam.axes import Array
from unseam.finding import sentences
from unseam.finding.columns import Prepared
from unseam.finding.density import TESTED, Gain, gain, hsic
from unseam.finding.grades import Answer, Certificate, ClueTest, Unseen, join_groups
from unseam.finding.missing import hide, ppca_fill
from unseam.finding.stability import AGREES, agreement, halves
from unseam.rng import numpy_generator
from unseam.stats import rank_correlations

_ROUNDS = 300
_ENCODE = 200
_TINY = 1e-9
_MOST = 10  # parts that are tried
_AHEAD = 3  # parts beyond the best number so far that may yet help together
_ROWS = 1000  # on which their number is decided
_APART = 0.02  # HSIC above which two amounts may be mixtures (tuned: right ones 0.01 or less, wrong ones from 0.05)
_SAME_AS_SUM = 0.95  # rank correlation with the row's sum from which on a part is no more than that
_SUM = "follows the sum of the row: one part, or several that are not seen apart"
_STEADIER = 0.02  # by which parts must come back better than linear axes where both explain the table


@dataclass(frozen=True)
class _Parts:
    """Codes h in units of their own spread; W is what one such unit adds to a row."""

    W: Array  # (d, n)
    b: Array  # (n,) what every row has; 0 for counts
    poisson: bool
    s2: Array  # (n,) noise of each column: its mean if it is Poisson

    def amounts(self, raw: Array, seen: Array | None = None) -> Array:  # (N, n) -> (N, d)
        seen = np.ones(raw.shape, bool) if seen is None else seen
        x = np.where(seen, raw - self.b, 0.0)
        h = np.repeat((np.maximum(x, 0).sum(1, keepdims=True) + _TINY) / (self.W.sum() + _TINY), len(self.W), axis=1)
        for _ in range(_ENCODE):
            h = _step(x, seen, h, self.W, self.poisson)
        return h

    def rows(self, h: Array) -> Array:  # (N, d) -> (N, n)
        return np.asarray(h @ self.W + self.b)

    def nats(self) -> Array:  # (d,)
        """1/2 log(1 + sum_i W_ji^2 / s2_i): information of a part over the noise."""
        return np.asarray(0.5 * np.log1p((self.W**2 / self.s2).sum(1)))


def _step(x: Array, seen: Array, h: Array, W: Array, poisson: bool) -> Array:
    """One update of h; that of W is the same, transposed."""
    if poisson:
        return np.asarray(h * ((x / (h @ W + _TINY)) @ W.T + _TINY) / (seen @ W.T + _TINY))
    full = x if seen.all() else np.where(seen, x, h @ W)
    above, gram, h = full @ W.T, W @ W.T, h.copy()
    for j in range(len(W)):
        h[:, j] = np.maximum(h[:, j] + (above[:, j] - h @ gram[:, j]) / (gram[j, j] + _TINY), _TINY)
    return h


def fit_parts(raw: Array, d: int, poisson: bool, seed: int = 0, seen: Array | None = None, starts: int = 1) -> _Parts:
    """d parts of a table (N, n) that is nowhere negative; the likeliest of some random starts.

    >>> g = np.random.default_rng(0)
    >>> h, W = g.exponential(size=(300, 2)), np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    >>> found = fit_parts(h @ W, 2, poisson=False).W
    >>> bool((np.sort(found / found.max(1, keepdims=True), axis=0)[0] < 0.1).all())
    True
    """
    seen = np.ones(raw.shape, bool) if seen is None else seen
    x = np.where(seen, raw, 0.0)
    best = max((_start(x, seen, d, poisson, seed + 1000 * s) for s in range(starts)), key=lambda fit: fit[0])
    _, h, W = best
    left = (x - h @ W) ** 2 * seen
    b = np.zeros(x.shape[1]) if poisson else W[d]
    spread = np.maximum(h[:, :d].std(0), _TINY)
    W = W[:d] * spread[:, None]
    s2 = x.sum(0) / np.maximum(seen.sum(0), 1) if poisson else np.full(x.shape[1], left.sum() / seen.sum())
    order = np.argsort(-(W**2 / np.maximum(s2, _TINY)).sum(1), kind="stable")
    return _Parts(W[order], b, poisson, np.maximum(s2, 1e-6 * float(x.var() + _TINY)))


def _start(x: Array, seen: Array, d: int, poisson: bool, seed: int) -> tuple[float, Array, Array]:
    g = numpy_generator(seed, "parts")
    size = np.sqrt(x.mean() / d + _TINY)
    h, W = size * g.uniform(0.2, 1.8, (len(x), d)), size * g.uniform(0.2, 1.8, (d, x.shape[1]))
    if not poisson:
        h, W = np.concatenate([h, np.ones((len(x), 1))], 1), np.concatenate([W, x.min(0, keepdims=True)])
    for _ in range(_ROUNDS):
        h = _step(x, seen, h, W, poisson)
        h[:, d:] = 1
        W = _step(x.T, seen.T, W.T, h.T, poisson).T
    return float(_cell_scores(x, h @ W, poisson)[seen].sum()), h, W


def _cell_scores(x: Array, rate: Array, poisson: bool) -> Array:
    """log p of each cell up to what depends on x alone; squared errors in units of 1 for amounts."""
    rate = np.maximum(rate, 1e-3 * max(float(x.mean()), _TINY)) if poisson else rate
    return np.asarray(x * np.log(rate) - rate if poisson else -0.5 * (x - rate) ** 2)


def how_many(raw: Array, seen: Array, poisson: bool, seed: int, linear: int = 0) -> tuple[int, Array, Array]:
    """(d, which cells were hidden, what d parts make of them): d grows while hidden cells become likelier.

    Some that help only together would stop it early: AHEAD more are tried, and the number of the linear model.
    """
    rows = np.arange(len(raw))[:_ROWS]
    x, known = raw[rows], seen[rows]
    fit_on = hide(known, numpy_generator(seed, "hidden"))
    hidden = known & ~fit_on
    best, filled = 0, np.zeros(x.shape)
    scores = _hidden(x, np.broadcast_to(_means(x, fit_on), x.shape), hidden, poisson)
    most = min(_MOST, x.shape[1] - 1)
    for d in range(1, most + 1):
        if d > best + _AHEAD and d != linear:
            continue
        model = fit_parts(x, d, poisson, seed, fit_on, starts=2)
        rate = model.rows(model.amounts(x, fit_on))
        new = _hidden(x, rate, hidden, poisson)
        if gain(new - scores).sure():
            best, filled, scores = d, rate, new
    return best, hidden, filled


def _means(x: Array, seen: Array) -> Array:
    return (x * seen).sum(0) / np.maximum(seen.sum(0), 1)


def _hidden(x: Array, rate: Array, hidden: Array, poisson: bool) -> Array:
    return _cell_scores(x, rate, poisson)[hidden]


def _gain_of_parts(x: Array, parts: Array, other: Array, hidden: Array, poisson: bool) -> Gain:
    """How much likelier the parts make the hidden cells than another model, a cell."""
    return gain(_hidden(x, parts, hidden, poisson) - _hidden(x, np.maximum(other, 0), hidden, poisson))


@dataclass(frozen=True)
class _PartsModel:
    """Parts of the columns' own units, as a model of prepared rows."""

    parts: _Parts
    prepared: Prepared

    def encode(self, x: Array) -> Array:  # (N, n) -> (N, k)
        return self.parts.amounts(np.maximum(self.prepared.raw(x), 0))

    def decode(self, u: Array) -> Array:  # (N, k) -> (N, n)
        return self.prepared.scaled(self.parts.rows(np.maximum(u, 0)))


def with_parts(
    prepared: Prepared, linear: Answer, rows: Array, train: Array, test: Array, latents: int | None, seed: int
) -> tuple[Answer, list[str]]:
    """The parts' answer if they predict hidden cells better than the linear model; or as well, and come back better or
    where independence does not decide. Parts that depend on each other do not replace independent axes."""
    raw, seen = np.maximum(prepared.raw(prepared.x), 0), ~prepared.gaps
    d, hidden, rate = how_many(raw[rows], seen[rows], prepared.poisson, seed, linear.W.shape[1])
    d = d if latents is None else latents
    if not d:
        return linear, []
    x = prepared.x[rows[: len(hidden)]]
    filled = prepared.raw(ppca_fill(x, ~hidden, linear.W.shape[1]))
    better = _gain_of_parts(raw[rows[: len(hidden)]], rate, filled, hidden, prepared.poisson)
    worse = Gain(-better.mean, better.error)
    answer = _parts_answer(prepared, raw, d, rows, train, test, seed) if not worse.sure() else linear
    back = answer.comes_back.mean
    steadier = back > linear.comes_back.mean + _STEADIER or (back >= AGREES and not linear.identified.all())
    mixed = linear.identified.all() and not answer.identified.all()
    won = answer is not linear and (better.sure() or steadier) and not mixed
    note = sentences.parts(d, better, prepared.poisson, back, linear.comes_back.mean, won)
    return (answer if won else linear), [note]


def _parts_answer(
    prepared: Prepared, raw: Array, d: int, rows: Array, train: Array, test: Array, seed: int, splits: int = 3
) -> Answer:
    """Parts of all rows; halves of the training rows, started elsewhere, say whether they come back.

    Amounts that depend on each other may be mixtures that are non-negative too; counts depend by their library size.
    """
    model = fit_parts(raw[rows], d, prepared.poisson, seed, starts=3)
    twice = []
    for split, (one, two) in enumerate(halves(train, splits, seed)):
        a = fit_parts(raw[one], d, prepared.poisson, seed + 7 * split, starts=2)
        b = fit_parts(raw[two], d, prepared.poisson, seed + 7 * split + 1, starts=2)
        twice.append((a.amounts(raw[test]), b.amounts(raw[test])))
    linked = np.zeros((d, d), bool) if prepared.poisson else hsic(model.amounts(raw[rows[:TESTED]])) > _APART
    back = join_groups(agreement(model.amounts(raw[test]), twice, seed), linked)
    moves = prepared.scaled(raw.mean(0) + model.W) - prepared.scaled(raw.mean(0))
    mixed, whole = np.asarray(linked.any(axis=1)), _row_sums(model.amounts(raw[test]), raw[test])
    by = tuple(_SUM if whole[j] else sentences.MIXED if mixed[j] else sentences.PARTS for j in range(d))
    clear = ~mixed & ~whole
    certificates = tuple(
        Certificate(
            "non-negativity" if clear[j] else "none",
            (ClueTest("non-negativity", bool(clear[j]), float(back.alone[j]), back.chance, None, False,
                      "rank correlation of amounts from other rows and starts"),),
        )
        for j in range(d)
    )  # fmt: skip
    small = prepared.one_row()
    every, x = np.ones(d), prepared.x
    some = _PartsModel(fit_parts(raw[train], d, prepared.poisson, seed, starts=2), small)
    unseen = Unseen(some, train, test, (x[train], x[test]))
    return Answer(
        "parts", _PartsModel(model, small), moves.T, model.nats(), every, clear, by, back, unseen, certificates
    )


def _row_sums(amounts: Array, raw: Array) -> Array:  # (M, d), (M, n) -> (d,) bool
    """Parts that are the sum of the row: one part, or several that noise hides, would look the same."""
    sums = raw.sum(1, keepdims=True)
    return np.asarray(np.abs(rank_correlations(amounts, sums))[:, 0] > _SAME_AS_SUM)
