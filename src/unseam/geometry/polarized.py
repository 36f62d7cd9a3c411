"""The polarized regime: which latents are in use, and since when (Zietlow 2022, sections 3.2.2 and 3.3.2).

Active latents carry information (`active_latents`, the one rule of this package); passive ones have mu_j ~ 0,
sigma_j^2 ~ 1 and the decoder ignores them. In the regime the KL is that of the active latents alone, without their
tiny sigma^2; the thesis takes std(mu_j) > 0.5 for "active" here, and so does `delta_kl`, to stay comparable:

    L_approxKL = 1/2 sum_{j active} (mu_j^2 - log sigma_j^2 - 1),   Delta_KL = |L_KL - L_approxKL| / L_KL

All functions here are pure functions of per-latent statistics.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unseam.axes import Array
from unseam.errors import BadInput

ACTIVE_STD = 0.5  # thesis 3.3.2: std of the posterior means over the data
ACTIVE_VARIANCE = 0.8  # thesis chapter 4: mean posterior variance
COLLAPSED_KL = 0.05  # nats


@dataclass(frozen=True)
class LatentStatistics:
    """What a data set's posteriors say of each latent, each (K,) or (T, K) for T moments of training."""

    mean_mu2: Array  # E[mu^2]
    std_mu: Array  # std of mu over the data
    mean_sigma2: Array  # E[sigma^2]
    mean_log_sigma2: Array  # E[log sigma^2]

    @property
    def kl(self) -> Array:
        """KL_j = 1/2 E[mu^2 + sigma^2 - log sigma^2 - 1], in nats."""
        return 0.5 * (self.mean_mu2 + self.mean_sigma2 - self.mean_log_sigma2 - 1)


def statistics(
    mu: ArrayLike, sigma2: ArrayLike, log_sigma2: ArrayLike | None = None
) -> LatentStatistics:  # (N, K) each
    """Per-latent statistics of posterior means and variances.

    `log_sigma2` are the latents' shares in log|Sigma| (`posterior.log_variance()`), for one that is not diagonal.

    Parameters
    ----------
    mu : array of shape (N, K)
        Posterior means.
    sigma2 : array of shape (N, K)
        Posterior variances.
    log_sigma2 : array of shape (N, K), optional
        Their logarithms; given for a posterior that is not diagonal.

    Returns
    -------
    LatentStatistics
        Moments of each latent, (K,) each.

    Examples
    --------
    >>> statistics([[1.0, 0.0], [-1.0, 0.0]], [[0.01, 1.0], [0.01, 1.0]]).kl.round(3)
    array([2.308, 0.   ])
    """
    mu, sigma2 = np.asarray(mu, dtype=float), np.asarray(sigma2, dtype=float)
    if mu.shape != sigma2.shape or mu.ndim != 2:
        raise BadInput(f"means {mu.shape} and variances {sigma2.shape} must both be (N, K)")
    if not (np.isfinite(mu).all() and np.isfinite(sigma2).all() and (sigma2 > 0).all()):
        raise BadInput(
            "posterior means must be finite and variances positive: this model has diverged, or these are "
            "log-variances (give their exp); a point posterior (AE) has no KL"
        )
    logs = np.log(sigma2) if log_sigma2 is None else np.asarray(log_sigma2, dtype=float)
    return LatentStatistics((mu**2).mean(0), mu.std(0), sigma2.mean(0), logs.mean(0))


def active_latents(std_mu: Any, mean_sigma2: Any = None) -> Any:  # (..., K), (..., K) -> (..., K) bool
    """Which latents are in use: std(mu_j) > 0.5 or E[sigma_j^2] < 0.8. NumPy or torch in, the same out.

    For a converged ELBO std(mu)^2 + E sigma^2 = 1 and both say the same; other objectives (AnnealedVAE) and users'
    models may encode much in codes of a small spread. A variance of 0 is that of a point, which says nothing.

    Parameters
    ----------
    std_mu : array or Tensor of shape (..., K)
        Standard deviation of the posterior means of each latent.
    mean_sigma2 : array or Tensor of shape (..., K), optional
        Mean of its posterior variances.

    Returns
    -------
    array or Tensor of bool, of shape (..., K)
        Whether each latent is active.

    Examples
    --------
    >>> active_latents([0.98, 0.02, 0.4], [0.04, 0.99, 0.05])
    array([ True, False,  True])
    """
    std_mu, mean_sigma2 = (np.asarray(a) if isinstance(a, list | tuple) else a for a in (std_mu, mean_sigma2))
    wide = std_mu > ACTIVE_STD
    return wide if mean_sigma2 is None else wide | ((mean_sigma2 > 0) & (mean_sigma2 < ACTIVE_VARIANCE))


def collapsed(kl: float) -> bool:
    """Whether a latent's posterior is the prior: KL_j < 0.05 nats. A passive latent need not be.

    >>> collapsed(0.01), collapsed(0.05)
    (True, False)
    """
    return kl < COLLAPSED_KL


def delta_kl(stats: LatentStatistics) -> Array:  # (K,) -> () or (T, K) -> (T,)
    """Delta_KL = |L_KL - L_approxKL| / L_KL; infinite where the KL itself is 0 (everything collapsed).

    Parameters
    ----------
    stats : LatentStatistics
        Of one moment, (K,) each, or of several, (T, K) each.

    Returns
    -------
    array of shape () or (T,)
        The relative distance from the polarized regime.

    Examples
    --------
    >>> bool(delta_kl(statistics([[1.0, 0.0], [-1.0, 0.0]], [[1e-4, 1.0], [1e-4, 1.0]])) < 0.03)
    True
    """
    kl = stats.kl.sum(-1)
    approx = 0.5 * (stats.mean_mu2 - stats.mean_log_sigma2 - 1)
    approx = np.where(active_latents(stats.std_mu), approx, 0.0).sum(-1)
    return np.where(kl > 0, np.abs(kl - approx) / np.where(kl > 0, kl, 1.0), np.inf)


def polarized_since(deltas: ArrayLike, limit: float = 0.03) -> int | None:  # (T,)
    """The first moment from which Delta_KL stays below the limit until the end; None when it does not.

    Parameters
    ----------
    deltas : array of shape (T,)
        Delta_KL over training.
    limit : float, default=0.03
        Below it a model is polarized.

    Returns
    -------
    int or None
        The position in `deltas`.

    Examples
    --------
    >>> polarized_since([0.5, 0.01, 0.2, 0.02, 0.01])
    3
    """
    above = np.flatnonzero(~(np.asarray(deltas, dtype=float) < limit))
    first = int(above[-1]) + 1 if above.size else 0
    return first if first < len(np.asarray(deltas)) else None


def polarized_share(deltas: ArrayLike, limit: float = 0.03) -> float:  # (T,)
    """The share of training during which Delta_KL < limit continuously until the end (thesis Table 3.2).

    Parameters
    ----------
    deltas : array of shape (T,)
        Delta_KL over training.
    limit : float, default=0.03
        Below it a model is polarized.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> polarized_share([0.5, 0.01, 0.2, 0.02, 0.01])
    0.4
    """
    since = polarized_since(deltas, limit)
    length = len(np.asarray(deltas))
    return 0.0 if since is None else (length - since) / length


def unexplained_directions(residual: ArrayLike, price: float) -> int:  # (N, n)
    """How many directions of x - xhat still vary by more than a latent costs, beta s2: what over-pruning left behind.

    In the linear case latent i pays iff its eigenvalue l_i > beta s2. Directions are found on one half of the
    residuals and measured on the other, so that noise does not count.

    >>> noise = np.random.default_rng(0).normal(size=(400, 5)) * [0.1, 0.1, 0.1, 0.1, 2.0]
    >>> unexplained_directions(noise, price=0.5)
    1
    """
    r = np.asarray(residual, dtype=float)
    r = r.reshape(len(r), -1)
    if len(r) < 4:
        raise BadInput(f"residual has {len(r)} rows; at least 4 are needed to tell signal from noise")
    r = r - r.mean(0)
    directions = np.linalg.svd(r[::2], full_matrices=False)[2]  # (m, n)
    return int((np.square(r[1::2] @ directions.T).mean(0) > price).sum())
