"""Encoders, decoders, posteriors and likelihoods of one member; none of them knows a cohort or an objective."""

from typing import TYPE_CHECKING

from unseam.lazy import lazy_names
from unseam.models.architecture import Architecture as Architecture

if TYPE_CHECKING:
    from unseam.models.autoencoder import Autoencoder as Autoencoder
    from unseam.models.likelihood import Bernoulli as Bernoulli
    from unseam.models.likelihood import Gaussian as Gaussian
    from unseam.models.likelihood import Likelihood as Likelihood
    from unseam.models.posterior import Diagonal as Diagonal
    from unseam.models.posterior import Full as Full
    from unseam.models.posterior import Point as Point
    from unseam.models.posterior import Posterior as Posterior
else:  # not at once: they need torch, `Architecture` does not
    __getattr__ = lazy_names(
        __name__,
        {
            "Autoencoder": "unseam.models.autoencoder",
            **dict.fromkeys(("Bernoulli", "Gaussian", "Likelihood"), "unseam.models.likelihood"),
            **dict.fromkeys(("Diagonal", "Full", "Point", "Posterior"), "unseam.models.posterior"),
        },
    )
