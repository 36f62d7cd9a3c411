"""Encoders, decoders, posteriors and likelihoods of one member; none of them knows a cohort or an objective."""

from unseam.models.autoencoder import Architecture, Autoencoder
from unseam.models.likelihood import Bernoulli, Gaussian, Likelihood
from unseam.models.posterior import Diagonal, Full, Point, Posterior

__all__ = [
    "Architecture",
    "Autoencoder",
    "Bernoulli",
    "Diagonal",
    "Full",
    "Gaussian",
    "Likelihood",
    "Point",
    "Posterior",
]
