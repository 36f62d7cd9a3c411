"""What a model is trained to do. A new objective is one small file and one line below."""

from unseam.objectives.base import Context, Objective, Optimiser, Player, hyperparameters
from unseam.objectives.elbo import AE, VAE, BetaVAE, BetaVAESigma

OBJECTIVES: dict[str, type[Objective]] = {
    "ae": AE,
    "vae": VAE,
    "beta-vae": BetaVAE,
    "beta-vae-sigma": BetaVAESigma,
}

__all__ = ["OBJECTIVES", "Context", "Objective", "Optimiser", "Player", "hyperparameters"]
