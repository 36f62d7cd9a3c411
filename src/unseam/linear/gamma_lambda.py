"""The gamma-lambda VAE of Vu 2024 (eq. 3, 9, 10): both halves in closed form, many problems at once.

Data Y (covariance Sy), encoder X = B Y + W with W ~ N(0, Sw), decoder Yhat = A X + Z with Z ~ N(0, Sz). With the
residual E = Cov(Y - A X) = (I - A B) Sy (I - A B)' + A Sw A' the loss is, traces restored,

    1/2 [tr(B Sy B' + Sw) - log|Sw| - m]  +  gamma/2 [n log 2pi + log|Sz| + tr(Sz^-1 E)]  +  lambda tr E.

Each step minimises it exactly over the encoder, then over the decoder, with Q = gamma Sz^-1 + 2 lambda I:

    T = I + A' Q A,  B = T^-1 A' Q,  Sw = T^-1                        (diagonal Sw: 1 / T_ii)
    A = Sy B' (B Sy B' + Sw)^-1,  E = Sy - A B Sy,  Sz = E             (diagonal: diag E; isotropic: tr E / n I)

A is the linear least-squares estimator of Y from X: it makes E smallest in the Loewner order, so it minimises the
last two terms together for lambda >= 0. There the loss never rises. For lambda < 0 the loss is unbounded below
in A, and the step is still downhill while the eigenvalues of E stay below gamma / (2 |lambda|).

With full Sw and Sz put C = B' Sw^-1. Then A = Sz C and therefore

    C <- (gamma I + 2 lambda Sz) C.

This one line holds the regimes. lambda = 0: C_t = gamma^t C_0, so gamma < 1 collapses, gamma = 1 stops where it
started, gamma > 1 grows until Sz is singular, and the column space and the rotation of the code are the start's.
lambda > 0 > gamma - 1: directions settle at a residual variance of (1 - gamma) / (2 lambda); those of a smaller
variance collapse. lambda < 0 < gamma - 1: the same point repels, so the start decides.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput, unknown
from unseam.linear.checks import checked_covariance, positive
from unseam.rng import numpy_generator

EncoderNoise = Literal["full", "diagonal"]
DecoderNoise = Literal["full", "diagonal", "isotropic"]
OUTCOMES = ("unfinished", "converged", "tolerance reached", "collapsed", "diverged")
UNFINISHED, CONVERGED, TOLERANCE, _COLLAPSED, DIVERGED = range(len(OUTCOMES))

_FLOOR = 1e-8  # a pivot of Sz below this share of the data's mean variance is singular: the loss has no minimum
EXPLAINED = 1e-3  # a code that explains less of the variance than this, and ever less, has collapsed


@dataclass(frozen=True)
class Solution:
    """Where each problem stopped, why, and how it got there; arrays with the problems' shape in front."""

    A: Array  # (..., n, m)
    B: Array  # (..., m, n)
    Sw: Array  # (..., m, m)
    Sz: Array  # (..., n, n)
    loss: Array  # (...)
    error: Array  # (...) tr E / tr Sy, the share of the variance that is not reconstructed
    steps: Array  # (...)
    outcome: Array  # (...) one of OUTCOMES
    trace: Array | None = None  # (..., steps) the loss after each step, held after the last one


def random_starts(shape: tuple[int, ...], n: int, m: int, seed: int = 0) -> Array:  # (*shape, n, m)
    """Decoders with standard normal entries.

    >>> random_starts((2, 3), n=4, m=3).shape
    (2, 3, 4, 3)
    """
    return numpy_generator(seed, "gamma-lambda", "start").standard_normal((*shape, n, m))


def solve(
    Sy: Any,  # (..., n, n)
    gamma: Any,  # (...)
    lam: Any,  # (...)
    start: Any,  # (..., n, m) the first A; the first Sz is the identity
    *,
    Sw: EncoderNoise = "full",
    Sz: DecoderNoise = "full",
    tolerance: float | None = 0.05,
    steps: int = 5000,
    rtol: float = 1e-12,
    keep_trace: bool = False,
) -> Solution:
    """Alternate until the relative error is below `tolerance`, the loss stands still, or the problem breaks down.

    The leading axes of the arguments broadcast: 25 pairs x 100 starts are one call. A problem that breaks down
    keeps its last sound state, so nothing returned is ever NaN.

    >>> s = solve(np.diag([3.0, 2.0, 0.1]), [0.9, 1.0, 1.1], 0.0, random_starts((), 3, 2))
    >>> print(*s.outcome, sep=", ")
    collapsed, converged, tolerance reached
    """
    if steps < 1 or (tolerance is not None and not 0 < tolerance < 1):
        raise BadInput(f"steps={steps} must be at least 1 and tolerance={tolerance} a share of the variance, in (0, 1)")
    Sy, A, gamma, lam = _check(Sy, gamma, lam, start, Sw, Sz)
    shape = np.broadcast_shapes(Sy.shape[:-2], A.shape[:-2], gamma.shape, lam.shape)
    weights = (np.broadcast_to(w, shape).reshape(-1) for w in (gamma, lam))
    data, first = _data(_stack(Sy, shape), *weights), _stack(A, shape)
    rules = _Rules(Sw, Sz, tolerance, rtol)
    final, count, outcome, losses = _run(data, first, rules, steps, keep_trace)
    A, B, noise = (unstack(x, shape) for x in (final.A, final.B, final.Sw))
    return Solution(
        A=A,
        B=B,
        Sw=noise,
        Sz=_decoder_noise(A, B, Sy, Sz),
        loss=final.loss.reshape(shape),
        error=final.error.reshape(shape),
        steps=count.reshape(shape),
        outcome=np.array(OUTCOMES)[outcome].reshape(shape),
        trace=losses.T.reshape(*shape, -1) if keep_trace else None,
    )


@dataclass(frozen=True)
class _Rules:
    Sw: EncoderNoise
    Sz: DecoderNoise
    tolerance: float | None
    rtol: float


@dataclass
class _State:
    """P problems at one step; every field has P as its last axis."""

    A: Array  # (n, m, P)
    B: Array  # (m, n, P)
    Sw: Array  # (m, m, P)
    C: Array  # (n, m, P) = Sz^-1 A
    loss: Array  # (P,)
    error: Array  # (P,)

    def take(self, where: Array) -> "_State":
        return _State(*(getattr(self, f.name).compress(where, -1) for f in fields(self)))

    def put(self, where: Array, other: "_State") -> None:
        for f in fields(self):
            getattr(self, f.name)[..., where] = getattr(other, f.name)


def _first(A: Array, Sy: Array, gamma: Array, lam: Array) -> _State:
    """Before the first step the code is pure noise, X = W ~ N(0, I), and Sz = I; so E = Sy + A A'."""
    n, m, P = A.shape
    left = _trace(Sy) + (A**2).sum((0, 1))
    loss = gamma / 2 * (n * np.log(2 * np.pi) + left) + lam * left
    Sw = np.repeat(np.eye(m)[..., None], P, axis=-1)
    return _State(A, np.zeros((m, n, P)), Sw, A.copy(), loss, left / _trace(Sy))


def _step(old: _State, data: "_Data", rules: _Rules) -> tuple[_State, Array]:
    """One encoder and one decoder update; the second value says which problems came through.

    Sz itself is not needed on the way. Sz^-1 A = B' Sw^-1 when Sz = E (Woodbury), and then
    |Sz| = |Sy| |Sw| / |B Sy B' + Sw|; for the other two kinds of Sz the diagonal of E is enough.
    """
    n, m, _ = old.A.shape
    QA = data.gamma * old.C + 2 * data.lam * old.A
    T = np.eye(m)[..., None] + mm(t(old.A), QA)
    inv_T, pivots_T = inverse(T)
    B = mm(inv_T, t(QA))
    full = rules.Sw == "full"
    precision = pivots_T if full else np.einsum("iip->ip", T)
    Sw = inv_T if full else np.eye(m)[..., None] / precision

    BS = mm(B, data.Sy)
    code = mm(BS, t(B))  # Cov(E[X|Y])
    inv_X, pivots_X = inverse(code + Sw)
    A = mm(t(BS), inv_X)
    E = data.variances - (A * t(BS)).sum(1)  # (n, P), the diagonal
    left = E.sum(0)
    log_Sw = -np.log(precision).sum(0)
    if rules.Sz == "full":
        C = QA if full else t(B) * precision
        log_Sz = data.log_det + log_Sw - np.log(pivots_X).sum(0)
        smallest = 1 / (t(B) * C).sum((0, 1))  # of the eigenvalues of Sz, up to a factor m
    else:
        Sz = E if rules.Sz == "diagonal" else np.broadcast_to(left / n, E.shape)
        C, log_Sz, smallest = A / Sz[:, None], np.log(Sz).sum(0), Sz.min(0)

    kl = (_trace(code) + _trace(Sw) - log_Sw - m) / 2
    nll = (n * np.log(2 * np.pi) + log_Sz + n) / 2  # tr(Sz^-1 E) = n for each kind of Sz
    loss = kl + data.gamma * nll + data.lam * left
    sound = (pivots_T > 0).all(0) & (smallest > _FLOOR * data.total / n) & np.isfinite(loss)
    return _State(A, B, Sw, C, loss, left / data.total), sound


@dataclass(frozen=True)
class _Data:
    """What stays the same from step to step."""

    Sy: Array  # (n, n, P)
    gamma: Array  # (P,)
    lam: Array  # (P,)
    variances: Array  # (n, P) the diagonal of Sy
    total: Array  # (P,) its trace
    log_det: Array  # (P,)

    def take(self, where: Array) -> "_Data":
        return _Data(*(getattr(self, f.name).compress(where, -1) for f in fields(self)))


def _data(Sy: Array, gamma: Array, lam: Array) -> _Data:
    return _Data(Sy, gamma, lam, np.einsum("iip->ip", Sy), _trace(Sy), np.log(inverse(Sy)[1]).sum(0))


def _decoder_noise(A: Array, B: Array, Sy: Array, kind: DecoderNoise) -> Array:  # -> (..., n, n)
    """Sz of a finished problem: E, or the part of it that is allowed. Before the first step (B = 0) it is I."""
    E = Sy - A @ B @ Sy
    E, eye = (E + E.swapaxes(-1, -2)) / 2, np.eye(Sy.shape[-1])
    if kind == "diagonal":
        E = E * eye
    if kind == "isotropic":
        E = eye * (E * eye).sum((-1, -2), keepdims=True) / len(eye)
    return np.where((B == 0).all((-1, -2))[..., None, None], eye, E)


def _judge(old: _State, new: _State, sound: Array, rules: _Rules) -> Array:  # (P,) indices of OUTCOMES
    still = np.abs(new.loss - old.loss) <= rules.rtol * np.maximum(1, np.abs(new.loss))
    finished = (new.error > 1 - EXPLAINED) & ((new.error > old.error) | still)
    done = np.where(still, CONVERGED, UNFINISHED)
    done = np.where(finished, _COLLAPSED, done)
    if rules.tolerance is not None:
        done = np.where(new.error <= rules.tolerance, TOLERANCE, done)
    return np.where(sound, done, DIVERGED)


def _run(data: _Data, A: Array, rules: _Rules, steps: int, keep_trace: bool) -> tuple[_State, Array, Array, Array]:
    """All problems to their ends: finished ones leave the computation, the others continue."""
    now = _first(A, data.Sy, data.gamma, data.lam)
    left = np.arange(A.shape[-1])
    final, outcome, count, losses = now.take(left >= 0), np.zeros_like(left), np.zeros_like(left), [now.loss]
    with np.errstate(all="ignore"):
        for _ in range(steps):
            new, sound = _step(now, data, rules)
            outcome[left] = done = _judge(now, new, sound, rules)
            count[left[sound]] += 1
            if keep_trace:
                losses.append(losses[-1].copy())
                losses[-1][left[sound]] = new.loss[sound]
            if (over := done != UNFINISHED).any():
                final.put(left[over & sound], new.take(over & sound))
                final.put(left[~sound], now.take(~sound))
                left, new, data = left[~over], new.take(~over), data.take(~over)
            now = new
            if not left.size:
                break
    final.put(left, now)
    return final, count, outcome, np.stack(losses)


def _check(Sy: Any, gamma: Any, lam: Any, start: Any, Sw: str, Sz: str) -> tuple[Array, Array, Array, Array]:
    if Sw not in get_args(EncoderNoise):
        raise unknown("Sw", Sw, get_args(EncoderNoise))
    if Sz not in get_args(DecoderNoise):
        raise unknown("Sz", Sz, get_args(DecoderNoise))
    Sy, gamma = checked_covariance("Sy", Sy), positive("gamma", gamma)
    lam, A = np.asarray(lam, np.float64), np.asarray(start, np.float64)
    if not np.isfinite(lam).all() or not np.isfinite(A).all():
        raise BadInput("lambda and start must be finite numbers")
    if A.ndim < 2 or A.shape[-2] != Sy.shape[-1]:
        raise BadInput(f"start has shape {A.shape}; with Sy {Sy.shape} it must be (..., {Sy.shape[-1]}, m)")
    if not np.abs(A).sum(-2).all():
        raise BadInput("start has a column of zeros: that latent can never leave it; use random_starts")
    return Sy, A, gamma, lam


# Thousands of small matrices at once, the problem axis last: (i, j, P).
#
# LAPACK called once a 4 x 4 matrix spends its time in the call. With the problems in the last axis each elementary
# operation is one pass over contiguous memory, and an inverse of P matrices costs n such passes.


def _stack(a: Array, shape: tuple[int, ...]) -> Array:  # (..., i, j) -> (i, j, P)
    """Broadcast the leading axes to `shape`, flatten them to P problems and put them last.

    >>> _stack(np.eye(2), (3, 4)).shape
    (2, 2, 12)
    """
    full = np.broadcast_to(a, (*shape, *a.shape[-2:]))
    return np.ascontiguousarray(np.moveaxis(full.reshape(-1, *a.shape[-2:]), 0, -1))


def unstack(a: Array, shape: tuple[int, ...]) -> Array:  # (i, j, P) -> (..., i, j)
    """The inverse of `_stack`.

    >>> unstack(_stack(np.eye(2), (3, 4)), (3, 4)).shape
    (3, 4, 2, 2)
    """
    return np.moveaxis(a, -1, 0).reshape(*shape, *a.shape[:-1])


def mm(a: Array, b: Array) -> Array:  # (i, j, P), (j, k, P) -> (i, k, P)
    """The product of each pair of matrices.

    >>> mm(_stack(np.eye(2), (1,)), _stack(np.ones((2, 1)), (1,)))[..., 0]
    array([[1.],
           [1.]])
    """
    return np.einsum("ijp,jkp->ikp", a, b)


def t(a: Array) -> Array:  # (i, j, P) -> (j, i, P)
    """The transpose of each matrix."""
    return a.swapaxes(0, 1)


def _trace(a: Array) -> Array:  # (i, i, P) -> (P,)
    """The trace of each matrix."""
    return np.einsum("iip->p", a)


def inverse(a: Array) -> tuple[Array, Array]:  # (i, i, P) -> (i, i, P), pivots (i, P)
    """Inverses of symmetric matrices by the sweep operator, and their pivots.

    The pivots are the squared diagonal of the Cholesky factor: all positive iff the matrix is positive definite,
    and log det = sum log pivot. No pivoting is needed for positive definite matrices.

    >>> inv, pivots = inverse(_stack(np.array([[2.0, 1.0], [1.0, 2.0]]), (1,)))
    >>> inv[..., 0].round(3), pivots[:, 0]
    (array([[ 0.667, -0.333],
           [-0.333,  0.667]]), array([2. , 1.5]))
    """
    a = a.copy()
    pivots = np.empty(a.shape[1:])
    for k in range(len(a)):
        pivots[k] = a[k, k]
        row = a[k] / pivots[k]
        a -= a[:, k, None] * row
        a[k] = a[:, k] = row
        a[k, k] = -1 / pivots[k]
    return -a, pivots
