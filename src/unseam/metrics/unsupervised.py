"""Scores of the codes alone: are the latents independent? No factors are needed; lower is better.

Locatello et al. 2019, appendix C (arXiv:1811.12359). With S the covariance of the codes and D its diagonal:

    Gaussian total correlation       TC = 1/2 ( sum_j log S_jj - log det S )
    Gaussian Wasserstein dependency  W2^2( N(0, S), N(0, D) ) = 2 tr S - 2 tr (D^1/2 S D^1/2)^1/2
    mean mutual information          of the pairs of latents, 20 equal-width bins each

A low score does not mean that the latents are the factors: noise scores best of all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, cast

import numpy as np

from unseam.axes import Array
from unseam.errors import BadInput
from unseam.metrics.base import Score
from unseam.metrics.docstrings import call_docstring
from unseam.metrics.inputs import Inputs
from unseam.metrics.registry import About, public, register
from unseam.rng import numpy_generator
from unseam.stats import discrete_information, discretise

_P = ParamSpec("_P")
_LOCATELLO = "Locatello et al. 2019, arXiv:1811.12359"
ABOUT: About = {"range": (0.0, float("inf")), "direction": "lower", "ceiling": "0", "supervised": False}
_COUNTED: About = {**ABOUT, "halving": True}
_SMALLEST = 1e-12  # eigenvalues of a correlation matrix below this are rounding errors


class CodesCall(Protocol[_P]):
    """A public call that takes codes and no factors."""

    @property
    def of(self) -> Callable[Concatenate[Inputs, _P], Score]: ...

    def __call__(self, codes: Any, variances: Any = None, *, seed: int = 0, **settings: Any) -> Score: ...


def code_metric(
    name: str, question: str, about: About
) -> Callable[[Callable[Concatenate[Inputs, _P], Score]], CodesCall[_P]]:
    """`metric` for a formula of the codes alone."""

    def decorate(formula: Callable[Concatenate[Inputs, _P], Score]) -> CodesCall[_P]:
        register(name, cast(Callable[[Inputs], Score], formula), question, _LOCATELLO, **about)
        with_factors = public(formula, vectors=False)

        @wraps(formula)
        def call(codes: Any, variances: Any = None, **options: Any) -> Score:
            return with_factors(codes, variances=variances, **options)

        takes = inspect.signature(with_factors).parameters
        settings = list(inspect.signature(formula).parameters)[1:]
        codes = inspect.Parameter("codes", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        spread = takes["variances"].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own = [codes, spread, takes["seed"], *(takes[name] for name in settings)]
        call.__dict__.update(of=formula, __signature__=inspect.Signature(own))
        call.__doc__ = call_docstring(formula.__doc__, own)
        return cast(CodesCall[_P], call)

    return decorate


@code_metric("gaussian-tc", "Are the mean codes uncorrelated? Total correlation in nats.", _COUNTED)
def gaussian_tc(inputs: Inputs) -> Score:
    """Total correlation of a Gaussian with the covariance of the codes, in nats.

    >>> round(gaussian_tc(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])).value, 6)
    0.0
    """
    return _total_correlation("gaussian-tc", inputs.rows.codes)


@code_metric("gaussian-tc-sampled", "Are the sampled codes uncorrelated?", _COUNTED)
def gaussian_tc_sampled(inputs: Inputs) -> Score:
    """The same of codes sampled from the posterior: codes + sqrt(variances) * noise.

    >>> z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> gaussian_tc_sampled(z, 0 * z).value == gaussian_tc(z).value
    True
    """
    if inputs.variances is None:
        raise BadInput("gaussian-tc-sampled needs the posterior variances of the codes; give variances=(N, K)")
    noise = numpy_generator(inputs.seed, "posterior").normal(size=inputs.rows.codes.shape)
    return _total_correlation("gaussian-tc-sampled", inputs.rows.codes + np.sqrt(inputs.variances) * noise)


def _total_correlation(name: str, codes: Array) -> Score:
    s = np.atleast_2d(np.cov(codes, rowvar=False, dtype=np.float64))
    alive = (np.ptp(codes, axis=0) > 0) & (np.diag(s) > 0)
    s = s[np.ix_(alive, alive)] if alive.any() else np.eye(1)
    scale = np.sqrt(np.diag(s))
    correlation = s / np.outer(scale, scale)
    spectrum = np.linalg.eigvalsh(correlation)
    singular = spectrum.min() < _SMALLEST
    note = (f"the codes are linearly dependent: {name} is infinite, the value is where floating point stops",)
    value = -0.5 * float(np.log(np.maximum(spectrum, _SMALLEST)).sum())
    return Score(
        name, abs(max(value, 0.0)), matrix=correlation, settings={"rows": len(codes)}, notes=note if singular else ()
    )


@code_metric("wasserstein-dependency", "Are the codes uncorrelated? A distance.", ABOUT)
def wasserstein_dependency(inputs: Inputs, normalise: bool = False) -> Score:
    """Squared Wasserstein-2 distance of that Gaussian to the product of its marginals (over tr S if normalised).

    >>> round(wasserstein_dependency(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])).value, 6)
    0.0
    """
    s = np.atleast_2d(np.cov(inputs.rows.codes, rowvar=False, dtype=np.float64))
    root = np.sqrt(np.diag(s))
    spectrum = np.linalg.eigvalsh(s * np.outer(root, root))  # D^1/2 S D^1/2
    value = max(float(2 * np.trace(s) - 2 * np.sqrt(np.maximum(spectrum, 0)).sum()), 0.0)
    if normalise:
        value = value / float(np.trace(s)) if np.trace(s) > 0 else 0.0
    name = "wasserstein-dependency-norm" if normalise else "wasserstein-dependency"
    return Score(name, value, matrix=s, settings={"rows": len(inputs)})


register(
    "wasserstein-dependency-norm",
    partial(wasserstein_dependency.of, normalise=True),
    "That distance over the total variance.",
    _LOCATELLO,
    **ABOUT,
)


@code_metric("code-mutual-information", "Do pairs of latents share information? Nats.", _COUNTED)
def code_mutual_information(inputs: Inputs, bins: int = 20) -> Score:
    """Mean mutual information of the pairs of latents that vary, in nats.

    >>> round(code_mutual_information(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])).value, 6)
    0.0
    """
    binned = discretise(inputs.rows.codes, bins)
    k = binned.shape[1]
    matrix = np.zeros((k, k))
    for i in range(k):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = discrete_information(binned[:, i], binned[:, j])
    varies = np.ptp(inputs.rows.codes, axis=0) > 0  # a constant one shares nothing with any other, and tells nothing
    alive = int(varies.sum())
    per_latent = matrix.sum(axis=1) / max(alive - 1, 1)
    value = float(per_latent[varies].mean()) if alive else 0.0
    settings = {"bins": bins, "rows": len(inputs), "latents": alive}
    return Score("code-mutual-information", value, per_latent=per_latent, matrix=matrix, settings=settings)
