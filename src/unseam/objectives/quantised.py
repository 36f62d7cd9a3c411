"""QLAE: each latent can take only a few values, from a small codebook of its own.

zhat_k = the value of codebook V_k nearest to e_k(x); its gradient goes straight through to e(x)
loss   = -log p(x|zhat) + lambda_q |sg(e(x)) - zhat|^2 + lambda_c |e(x) - sg(zhat)|^2          sg: no gradient

(Hsu et al. 2023, section 3.) The codebooks are parameters of the model (posterior "quantised", `levels` values a
latent), so codes read from a trained model are the quantised ones. The paper's 0.01 stands before means over n pixels
and K latents, ours before sums: 0.01 n / K, about 4 for 64 x 64 grey images with 10 latents. Left out here: the
paper's strong weight decay, which belongs to the optimiser (`Optimiser(weight_decay=0.1)`), and its InfoWGAN variant.
"""

from dataclasses import dataclass
from typing import ClassVar

from unseam.axes import Pass, Terms
from unseam.models.posterior import Quantised
from unseam.objectives.base import Context, Objective


@dataclass(frozen=True)
class QLAE(Objective):
    """An autoencoder whose latents take a few values each, from learned scalar codebooks.

    Examples
    --------
    >>> QLAE().posterior
    'quantised'
    """

    quantise: float = 4.0
    """lambda_q: pulls the codebook to the codes"""
    commit: float = 4.0
    """lambda_c: pulls the codes to the codebook"""

    formula: ClassVar[str] = "-log p(x|zhat) + lambda_q |sg(e(x)) - zhat|^2 + lambda_c |e(x) - sg(zhat)|^2"
    paper: ClassVar[str] = "Hsu et al. 2023, Disentanglement via latent quantization"
    has_beta: ClassVar[bool] = False
    posterior: ClassVar[str] = "quantised"

    def __call__(self, pass_: Pass, context: Context) -> Terms:
        q = pass_.posterior
        assert isinstance(q, Quantised)
        terms = {
            "reconstruction": -context.model.likelihood.log_prob(pass_.x, pass_.theta),
            "quantise": (q.continuous.detach() - q.nearest).square().sum(1),
            "commit": (q.continuous - q.nearest.detach()).square().sum(1),
        }
        return Terms(terms, {"quantise": self.quantise, "commit": self.commit})
