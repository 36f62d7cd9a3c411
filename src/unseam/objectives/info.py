"""InfoVAE: part of the KL is traded for a distance between the aggregate posterior and the prior.

loss = -E_q log p(x|z) + (1 - alpha) KL(q(z|x) || p(z)) + (alpha + lambda - 1) MMD^2(q(z), p(z))

(Zhao et al. 2017, with the maximum mean discrepancy.) alpha = 1 leaves MMD alone (MMD-VAE), alpha = 0 and
lambda = 1 is the ELBO. MMD^2 = E k(z, z') - 2 E k(z, p) + E k(p, p') by its U-statistic, which is unbiased and so
can be negative; it has no unit. Kernels are scaled to the prior, for which E|p - p'|^2 = 2 K:

rbf   k(a, b) = exp(-|a - b|^2 / (2 K))
imq   k(a, b) = 2 K / (2 K + |a - b|^2)                                                Tolstikhin et al. 2018
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unseam.axes import Pass, Terms
from unseam.errors import BadInput
from unseam.objectives.base import Context, Objective
from unseam.objectives.elbo import elbo_terms


def kernel_matrix(a: Tensor, b: Tensor, kernel: str) -> Tensor:  # (A, K), (B, K) -> (A, B)
    """k(a_i, b_j).

    >>> kernel_matrix(torch.zeros(1, 2), torch.tensor([[0.0, 2.0]]), "imq")
    tensor([[0.5000]])
    """
    squares = (a.unsqueeze(1) - b).square().sum(2)
    scale = 2 * a.shape[1]
    return torch.exp(-squares / scale) if kernel == "rbf" else scale / (scale + squares)


def mmd2(a: Tensor, b: Tensor, kernel: str = "rbf") -> Tensor:  # (A, K), (B, K) -> ()
    """The unbiased estimate of MMD^2 between the distributions behind two samples.

    >>> mmd2(torch.tensor([[0.0], [9.0]]), torch.tensor([[0.0], [9.0]])).item() < 0
    True
    """

    def within(c: Tensor) -> Tensor:
        n = len(c)
        return (kernel_matrix(c, c, kernel).sum() - n) / (n * (n - 1))  # k(c, c) = 1 is left out

    return within(a) + within(b) - 2 * kernel_matrix(a, b, kernel).mean()


@dataclass(frozen=True)
class InfoVAE(Objective):
    """Part of the KL is replaced by the maximum mean discrepancy between the codes and the prior.

    Examples
    --------
    >>> InfoVAE(kernel="imq")
    InfoVAE(lam=1000.0, alpha=0.0, kernel='imq')
    """

    lam: float = 1000.0
    """lambda: how much the aggregate posterior counts; large enough that MMD weighs like the reconstruction"""
    alpha: float = 0.0
    """how much mutual information is given back: 0 keeps the whole KL, 1 none of it"""
    kernel: Literal["rbf", "imq"] = "rbf"
    """rbf (Zhao) or imq (inverse multi-quadratic, heavier tails)"""

    formula: ClassVar[str] = "-E_q log p(x|z) + (1 - alpha) KL(q(z|x) || p(z)) + (alpha + lambda - 1) MMD^2(q(z), p(z))"
    paper: ClassVar[str] = "Zhao et al. 2017, InfoVAE"
    smallest_batch: ClassVar[int] = 2
    may_be_zero: ClassVar[tuple[str, ...]] = ("alpha",)

    def check(self) -> None:
        Objective.check(self)
        if self.alpha > 1 or self.alpha + self.lam < 1:
            raise BadInput(
                f"alpha={self.alpha} and lam={self.lam} must keep 1 - alpha and alpha + lam - 1 at 0 or more"
            )

    def kl_weight(self) -> float | None:
        return float(1 - self.alpha) or None  # alpha = 1 leaves no KL

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        mmd = mmd2(pass_.z, context.noise["prior"], self.kernel)
        weights = {"kl": 1 - self.alpha, "mmd2": self.alpha + self.lam - 1}
        return Terms(elbo_terms(pass_, context) | {"mmd2": mmd}, weights)

    def noise_shapes(self, batch: int, latents: int) -> dict[str, tuple[int, ...]]:
        return {"prior": (batch, latents)}
