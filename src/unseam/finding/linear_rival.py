"""The linear model that a network must beat, always at its optimum: log p of the known cells of unseen rows.

    x = mean + W z + e,   z ~ N(0, I_d),   e_j ~ N(0, psi_j)

Continuous columns without gaps have three densities, in closed form or at a maximum that is checked: PPCA, linear ICA
and factor analysis. With missing cells factor analysis is fitted by EM to the cells that are known. Columns of other
kinds (counts, two values, classes) have a network with a linear decoder, trained by the same rule as the other.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unseam.axes import Array
from unseam.finding.axes import fit_axes
from unseam.finding.density import gain
from unseam.finding.factor_analysis import correlation_matrix, fit_factors
from unseam.finding.latent_count import LATENTS

if TYPE_CHECKING:
    from unseam.run import Run

_LEAST = 1e-6  # of a column's variance: the smallest noise
_EM_STEPS = 2000
_EM_CLOSE = 1e-6  # nats a row that a step of EM gains once it has converged


class Rival(NamedTuple):
    """What the best linear model says of unseen rows, and whether it is at its optimum."""

    logs: Array  # (M,) log p of each row's known cells
    settled: bool
    state: str  # in words


class _Loadings(NamedTuple):
    """Factor analysis."""

    mean: Array  # (n,)
    W: Array  # (n, d)
    noise: Array  # (n,) variances
    converged: bool

    def log_likelihood(self, x: Array, seen: Array | None = None) -> Array:  # (N, n), (N, n) bool -> (N,)
        """log p of the cells that are seen, all by default."""
        seen = np.ones(x.shape, bool) if seen is None else seen
        return _expect(x, seen, self).log_p


class _Expected(NamedTuple):
    z: Array  # (N, d) E[z | known cells]
    V: Array  # (N, d, d) its covariance
    log_p: Array  # (N,)


def _expect(x: Array, seen: Array, model: _Loadings) -> _Expected:
    """A_i = I + sum_j m_ij w_j w_j' / psi_j,  b_i = sum_j m_ij w_j (x_ij - mean_j) / psi_j;  E z = A^-1 b.

    -2 log p = sum_j m_ij (log(2 pi psi_j) + r_ij^2 / psi_j) + log|A| - b' A^-1 b
    """
    r = np.where(seen, x - model.mean, 0.0)
    scaled = model.W / model.noise[:, None]
    products = (scaled[:, :, None] * model.W[:, None]).reshape(len(model.W), -1)
    d = model.W.shape[1]
    A = np.eye(d) + (seen @ products).reshape(-1, d, d)
    b = r @ scaled
    V = np.linalg.inv(A)
    z = np.einsum("nij,nj->ni", V, b)
    cells = np.where(seen, np.log(2 * np.pi * model.noise) + r**2 / model.noise, 0.0).sum(1)
    return _Expected(z, V, -0.5 * (cells + np.linalg.slogdet(A)[1] - (b * z).sum(1)))


def fit_factor_analysis(x: Array, d: int) -> _Loadings:  # (N, n)
    """Maximum likelihood of d factors, at most n - 1.

    >>> g = np.random.default_rng(0)
    >>> x = g.normal(size=(500, 2)) @ g.normal(size=(2, 6)) + 0.3 * g.normal(size=(500, 6))
    >>> bool(fit_factor_analysis(x, 2).converged)
    True
    """
    scale = np.maximum(x.std(0), 1e-12)
    found = fit_factors(correlation_matrix(x), min(d, x.shape[1] - 1))
    return _Loadings(x.mean(0), found.loadings * scale[:, None], found.unique * scale**2, found.converged)


def fit_factor_analysis_with_gaps(x: Array, seen: Array, d: int) -> _Loadings:  # (N, n), (N, n) bool
    """EM on the known cells (Rubin & Thayer 1982), each step followed by the rescaling of z that it leaves free
    (parameter expansion, Liu, Rubin & Wu 1998), until a step gains less than 1e-6 nats a row.

    What `x` holds in cells that are not seen is only where the search begins.
    """
    model = fit_factor_analysis(x, d)
    cells = np.maximum(seen.sum(0), 1)
    least = _LEAST * x.var(0)
    before = -np.inf
    for _ in range(_EM_STEPS):
        z, V, log_p = _expect(x, seen, model)
        if log_p.mean() - before < _EM_CLOSE:
            return model._replace(converged=True)
        before = float(log_p.mean())
        one = np.concatenate([z, np.ones((len(z), 1))], axis=1)  # (N, d + 1)
        second = one[:, :, None] * one[:, None]
        second[:, :-1, :-1] += V
        S = (seen.T.astype(float) @ second.reshape(len(z), -1)).reshape(x.shape[1], *second.shape[1:])
        t = np.where(seen, x, 0.0).T @ one  # (n, d + 1)
        S[:, range(one.shape[1]), range(one.shape[1])] += 1e-9
        W = np.linalg.solve(S, t[:, :, None])[:, :, 0]
        noise = (np.where(seen, x**2, 0.0).sum(0) - (W * t).sum(1)) / cells
        centre = z.mean(0)
        spread = (second[:, :-1, :-1]).mean(0) - np.outer(centre, centre)
        mean = W[:, -1] + W[:, :-1] @ centre
        model = _Loadings(mean, W[:, :-1] @ np.linalg.cholesky(spread), np.maximum(noise, least), False)
    return model


def linear_rival(rows: Any, likelihood: dict[str, Any], how: Any, ask: Any, stage: str = "") -> Rival:
    """The best linear model of the rows that the networks are trained on, asked about the others."""
    y, train, test = rows.y, rows.train, rows.test
    if rows.onto.plain:
        axes = fit_axes(y[train], min(ask.d, y.shape[1]), ask.seed)
        analysed = _grown(ask.d, y, np.ones(y.shape, bool), train, test)
        logs = [axes.log_likelihood(y[test]), axes.ppca_log_likelihood(y[test]), analysed.logs]
        return analysed._replace(logs=max(logs, key=lambda rows: float(rows.mean())))
    n = rows.onto.gaussian
    if rows.onto.masked and 2 * n == y.shape[1]:
        return _grown(ask.d, y[:, :n], y[:, n:] > 0.5, train, test)
    return _by_network(rows, likelihood, how, ask, stage)


def _grown(d: int, y: Array, seen: Array, train: Array, test: Array) -> Rival:
    """Factor analysis with d factors, or with more while unseen rows become surely likelier."""
    best: Rival | None = None
    for size in range(d, max(d, y.shape[1] // 2) + 1):
        whole = bool(seen.all())
        model = (
            fit_factor_analysis(y[train], size) if whole else fit_factor_analysis_with_gaps(y[train], seen[train], size)
        )
        state = "had converged" if model.converged else "had not converged"
        logs = model.log_likelihood(y[test], seen[test])
        if best is not None and not gain(logs - best.logs).sure():
            break
        best = Rival(logs, model.converged, f"factor analysis with {min(size, y.shape[1] - 1)} factors {state}")
    assert best is not None
    return best


def _by_network(rows: Any, likelihood: dict[str, Any], how: Any, ask: Any, stage: str) -> Rival:
    """The same network with a linear decoder, the best of as many seeds, trained until its held-out loss rests."""
    from unseam.finding import network as net

    with tempfile.TemporaryDirectory() as folder:
        place, latents = Path(folder) / "run", min(ask.d, LATENTS)
        linear, start = replace(how, linear=True, stage=stage), {**likelihood, "s2": net.LINEAR_START}
        run = net.until_settled(rows.y, latents, linear, start, ask.seed, place, ask.show)
        return _best(run, rows.y[rows.test], ask.seed)


def _best(run: Run, unseen: Array, seed: int) -> Rival:
    from unseam.finding import network as net

    alive = [m for m, status in enumerate(run.table()["status"]) if status == "finished"]
    if not alive:
        return Rival(np.full(len(unseen), -np.inf), False, "a network with a linear decoder could not be trained")
    logs = {m: net.log_bound(net.rested_model(run, m), unseen, seed) for m in alive}
    best = max(alive, key=lambda m: float(logs[m].mean()))
    state = net.member_loss_state(run, best)
    words = f"a network with a linear decoder: {state.says()}"
    return Rival(logs[best], state.word != "still falling", words)
