"""What a model is trained to do. A new objective is one small file and one line below."""

from unseam.objectives.adaptive import AdaGVAE, AdaMLVAE
from unseam.objectives.base import Context, Objective, Optimiser, Player, hyperparameters
from unseam.objectives.capacity import AnnealedVAE
from unseam.objectives.contrastive import PCL
from unseam.objectives.deterministic import DetVAE
from unseam.objectives.dip import DIPVAEI, DIPVAEII
from unseam.objectives.elbo import AE, VAE, BetaVAE, BetaVAESigma
from unseam.objectives.factor import FactorVAE
from unseam.objectives.hfs import HFS
from unseam.objectives.info import InfoVAE
from unseam.objectives.orthogonal import IMAVAE, OrthoVAE
from unseam.objectives.quantised import QLAE
from unseam.objectives.sigma import SigmaVAE
from unseam.objectives.slow import SlowVAE
from unseam.objectives.total_correlation import BetaTCVAE
from unseam.objectives.tripod import Tripod
from unseam.objectives.weak_gan import WeakGAN

OBJECTIVES: dict[str, type[Objective]] = {
    "ae": AE,
    "vae": VAE,
    "beta-vae": BetaVAE,
    "beta-vae-sigma": BetaVAESigma,
    "annealed-vae": AnnealedVAE,
    "factor-vae": FactorVAE,
    "beta-tcvae": BetaTCVAE,
    "dip-vae-i": DIPVAEI,
    "dip-vae-ii": DIPVAEII,
    "det-vae": DetVAE,
    "sigma-vae": SigmaVAE,
    "ortho-vae": OrthoVAE,
    "ima-vae": IMAVAE,
    "qlae": QLAE,
    "info-vae": InfoVAE,
    "ada-gvae": AdaGVAE,
    "ada-ml-vae": AdaMLVAE,
    "slow-vae": SlowVAE,
    "pcl": PCL,
    "weak-gan": WeakGAN,
    "tripod": Tripod,
    "hfs": HFS,
}

__all__ = ["OBJECTIVES", "Context", "Objective", "Optimiser", "Player", "hyperparameters"]
