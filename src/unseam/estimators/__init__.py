"""The scikit-learn face: PPCA, LinearVAE, VAE, Align and FactorFinder as transformers, and scorers for searches.

They keep scikit-learn's contract (`check_estimator` runs in the tests): `__init__` only stores, `transform` is
deterministic and row by row, output has the input's dtype, latents come sorted by information.
"""

from unseam.estimators.closed import PPCA, LinearVAE
from unseam.estimators.finder import FactorFinder
from unseam.estimators.scorers import Scorer, scorer
from unseam.estimators.vae import VAE, Align

__all__ = ["PPCA", "VAE", "Align", "FactorFinder", "LinearVAE", "Scorer", "scorer"]
