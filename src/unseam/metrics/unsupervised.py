"""Scores of the codes alone: are the latents independent? No factors are needed; lower is better.

Locatello et al. 2019, appendix C (arXiv:1811.12359). With S the covariance of the codes and D its diagonal:

    Gaussian total correlation       TC = 1/2 ( sum_j log S_jj - log det S )
    Gaussian Wasserstein dependency  W2^2( N(0, S), N(0, D) ) = 2 tr S - 2 tr (D^1/2 S D^1/2)^1/2
    mean mutual information          of the pairs of latents, 20 equal-width bins each

A low score does not mean that the latents are the factors: noise scores best of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.information import discrete_mi, discretise
from unseam.metrics.inputs import prepare
from unseam.metrics.table import Table
from unseam.rng import numpy_generator
from unseam.types import Array

SMALLEST = 1e-12  # eigenvalues of a correlation matrix below this are rounding errors


def gaussian_tc(codes: Any) -> Score:
    """Total correlation of a Gaussian with the covariance of the codes, in nats.

    >>> round(gaussian_tc(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])).value, 6)
    0.0
    """
    return compute_gaussian_tc(prepare(codes))


def gaussian_tc_sampled(codes: Any, variances: Any, seed: int = 0) -> Score:
    """The same of codes sampled from the posterior: codes + sqrt(variances) * noise.

    >>> z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> gaussian_tc_sampled(z, 0 * z).value == gaussian_tc(z).value
    True
    """
    return compute_gaussian_tc_sampled(prepare(codes, variances=variances, seed=seed))


def wasserstein_dependency(codes: Any, normalise: bool = False) -> Score:
    """Squared Wasserstein-2 distance of that Gaussian to the product of its marginals (over tr S if asked).

    >>> round(wasserstein_dependency(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])).value, 6)
    0.0
    """
    table = prepare(codes)
    return compute_wasserstein_norm(table) if normalise else compute_wasserstein(table)


def code_mutual_information(codes: Any, bins: int = 20) -> Score:
    """Mean mutual information of the pairs of latents, in nats.

    >>> round(code_mutual_information(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).value, 6)
    0.0
    """
    return compute_code_mi(prepare(codes), bins)


def compute_gaussian_tc(table: Table) -> Score:
    return total_correlation("gaussian-tc", table.rows.codes)


def compute_gaussian_tc_sampled(table: Table) -> Score:
    if table.variances is None:
        raise BadInput("gaussian-tc-sampled needs the posterior variances of the codes; give variances=(N, K)")
    noise = numpy_generator(table.seed, "posterior").normal(size=table.rows.codes.shape)
    return total_correlation("gaussian-tc-sampled", table.rows.codes + np.sqrt(table.variances) * noise)


def total_correlation(name: str, codes: Array) -> Score:
    s = np.atleast_2d(np.cov(codes, rowvar=False, dtype=np.float64))
    alive = (np.ptp(codes, axis=0) > 0) & (np.diag(s) > 0)
    s = s[np.ix_(alive, alive)] if alive.any() else np.eye(1)
    scale = np.sqrt(np.diag(s))
    correlation = s / np.outer(scale, scale)
    spectrum = np.linalg.eigvalsh(correlation)
    singular = spectrum.min() < SMALLEST
    note = (f"the codes are linearly dependent: {name} is infinite, the value is where floating point stops",)
    value = -0.5 * float(np.log(np.maximum(spectrum, SMALLEST)).sum())
    return Score(
        name, abs(max(value, 0.0)), matrix=correlation, settings={"rows": len(codes)}, notes=note if singular else ()
    )


def compute_wasserstein(table: Table) -> Score:
    s = np.atleast_2d(np.cov(table.rows.codes, rowvar=False, dtype=np.float64))
    root = np.sqrt(np.diag(s))
    spectrum = np.linalg.eigvalsh(s * np.outer(root, root))  # D^1/2 S D^1/2
    value = 2 * np.trace(s) - 2 * np.sqrt(np.maximum(spectrum, 0)).sum()
    return Score("wasserstein-dependency", max(float(value), 0.0), matrix=s, settings={"rows": len(table)})


def compute_wasserstein_norm(table: Table) -> Score:
    plain = compute_wasserstein(table)
    assert plain.matrix is not None
    trace = float(np.trace(plain.matrix))
    return plain.having(name="wasserstein-dependency-norm", value=plain.value / trace if trace > 0 else 0.0)


def compute_code_mi(table: Table, bins: int = 20) -> Score:
    binned = discretise(table.rows.codes, bins)
    k = binned.shape[1]
    matrix = np.zeros((k, k))
    for i in range(k):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = discrete_mi(binned[:, i], binned[:, j])
    per_latent = matrix.sum(axis=1) / max(k - 1, 1)
    settings = {"bins": bins, "rows": len(table)}
    return Score(
        "code-mutual-information", float(per_latent.mean()), per_latent=per_latent, matrix=matrix, settings=settings
    )
