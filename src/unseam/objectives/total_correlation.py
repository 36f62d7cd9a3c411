"""beta-TCVAE: the KL in its three parts, each with its own weight.

E KL(q(z|x) || p(z)) = I(x; z) + TC(z) + sum_k KL(q(z_k) || p(z_k))                    (Chen et al. 2018, eq. 2)
loss = -E_q log p(x|z) + alpha I(x; z) + beta TC(z) + gamma sum_k KL(q(z_k) || p(z_k))

The aggregate q(z) = 1/N sum_n q(z|x_n) is a mixture over the whole training set, of which a batch shows B terms.
Row i of a weight matrix W estimates it at z_i: log q(z_i) = log sum_j W_ij q(z_i|x_j), and so for each latent alone.

weighted     W_ij = 1 / (N B)                                           Chen et al. 2018, appendix C
stratified   W_ii = 1/N,  W_ij = (N - 1) / (N (B - 1)) for j != i       derived from Chen et al. 2018, appendix C

Stratified, derived: z_i was drawn from x_i, whose share of the mixture is exactly 1/N. The other B - 1 samples were
drawn without replacement from the other N - 1, so their mean estimates the rest, whose share is (N - 1)/N. Rows sum
to 1 and sum_j W_ij q(z_i|x_j) is unbiased; for B = N it is q(z_i) itself. The paper gives one of the others the
weight (N - M)/(N M) and the rest 1/M (M = B - 1): the mean over which one it is gives the weights above, with the same
expectation and no more variance.

Neither log is unbiased: see docs/objectives.md for the measured bias. An estimated TC can be negative, and is logged
as it is.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.models import Diagonal
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms


def log_normal(z: Tensor, mean: Tensor, log_var: Tensor) -> Tensor:
    """log N(z; mean, exp(log_var)), element by element."""
    return -0.5 * ((z - mean).square() * torch.exp(-log_var) + log_var + math.log(2 * math.pi))


def log_weights(estimator: str, B: int, N: int, device: torch.device | str = "cpu") -> Tensor:  # (B, B)
    """log W of the weighted or the stratified estimator, for batches of B out of N samples.

    >>> log_weights("stratified", 3, 5).exp()
    tensor([[0.2000, 0.4000, 0.4000],
            [0.4000, 0.2000, 0.4000],
            [0.4000, 0.4000, 0.2000]])
    """
    if estimator == "weighted":
        return torch.full((B, B), -math.log(N * B), device=device)
    own, other = 1 / N, (N - 1) / (N * (B - 1))
    return torch.where(torch.eye(B, dtype=torch.bool, device=device), own, other).log()


def log_aggregate(z: Tensor, posterior: Diagonal, log_w: Tensor) -> tuple[Tensor, Tensor]:
    """(log q(z_i), sum_k log q(z_ik)), each (B,), at z (B, K) for a diagonal posterior and weights (B, B)."""
    log_q = log_normal(z.unsqueeze(1), posterior.mean, posterior.log_var)  # (B, B, K)
    joint = torch.logsumexp(log_q.sum(2) + log_w, 1)
    return joint, torch.logsumexp(log_q + log_w.unsqueeze(2), 1).sum(1)


def decompose(z: Tensor, posterior: Diagonal, log_w: Tensor) -> dict[str, Tensor]:
    """The three parts of the KL, estimated at each sample (B,); they sum to log q(z|x) - log p(z)."""
    log_q_zx = log_normal(z, posterior.mean, posterior.log_var).sum(1)
    log_p_z = log_normal(z, torch.zeros_like(z), torch.zeros_like(z)).sum(1)
    log_q_z, log_prod_q_zk = log_aggregate(z, posterior, log_w)
    return {
        "mutual_information": log_q_zx - log_q_z,
        "tc": log_q_z - log_prod_q_zk,
        "dimension_kl": log_prod_q_zk - log_p_z,
    }


@dataclass(frozen=True)
class BetaTCVAE(Objective):
    """The KL in three parts (index-code information, total correlation, dimension-wise KL), weighed apart.

    Examples
    --------
    >>> BetaTCVAE(beta=2.0)
    BetaTCVAE(beta=2.0, alpha=1.0, gamma=1.0, estimator='weighted')
    """

    beta: float = 6.0
    """weight of the total correlation (Locatello 2019 sweeps 1 to 10)"""
    alpha: float = 1.0
    """weight of the index-code mutual information"""
    gamma: float = 1.0
    """weight of the dimension-wise KL"""
    estimator: Literal["weighted", "stratified"] = "weighted"
    """of the aggregate posterior: minibatch-weighted (the paper's choice) or minibatch-stratified sampling"""

    formula: ClassVar[str] = "-E_q log p(x|z) + alpha I(x;z) + beta TC(z) + gamma sum_k KL(q(z_k) || p(z_k))"
    paper: ClassVar[str] = "Chen et al. 2018, Isolating sources of disentanglement in VAEs"
    smallest_batch: ClassVar[int] = 2
    may_be_zero: ClassVar[tuple[str, ...]] = ("alpha", "gamma")
    grid: ClassVar[dict[str, tuple[float, ...]]] = {"beta": (1, 2, 4, 6, 8, 10)}

    def kl_weight(self) -> float | None:
        """alpha, where the loss is alpha KL + (beta - alpha) TC; beta weighs what no single posterior sees."""
        return float(self.alpha) or None if self.alpha == self.gamma else None

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        log_w = log_weights(self.estimator, len(pass_.z), context.size, pass_.z.device).to(pass_.z)
        assert isinstance(pass_.posterior, Diagonal)
        parts = decompose(pass_.z, pass_.posterior, log_w)
        weights = {"mutual_information": self.alpha, "tc": self.beta, "dimension_kl": self.gamma, "kl": 0.0}
        return Terms(elbo_terms(pass_, context) | parts, weights)
