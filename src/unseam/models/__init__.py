"""Encoders, decoders, posteriors and likelihoods of one member; none of them knows a cohort or an objective."""

# isort: off
from unseam.models.autoencoder import Architecture as Architecture, Autoencoder as Autoencoder
from unseam.models.likelihood import Bernoulli as Bernoulli, Gaussian as Gaussian, Likelihood as Likelihood
from unseam.models.posterior import Diagonal as Diagonal, Full as Full, Point as Point, Posterior as Posterior
