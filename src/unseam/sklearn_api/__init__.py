"""The scikit-learn face: PPCA, LinearVAE, VAE, Align and FactorFinder as transformers, and scorers for searches.

They keep scikit-learn's contract (`check_estimator` runs in the tests): `__init__` only stores, `transform` is
deterministic and row by row, output has the input's dtype, latents come sorted by information.
"""

from unseam.sklearn_api.closed_form import PPCA, LinearVAE
from unseam.sklearn_api.finder import FactorFinder
from unseam.sklearn_api.scorer import Scorer, scorer
from unseam.sklearn_api.vae import VAE, Align

__all__ = ["PPCA", "VAE", "Align", "FactorFinder", "LinearVAE", "Scorer", "scorer"]
