"""The scikit-learn estimators under their public name; they are defined in `unseam.sklearn_api`.

>>> from unseam.estimators import PPCA
"""

from unseam.sklearn_api import PPCA, VAE, Align, FactorFinder, LinearVAE, scorer

__all__ = ["PPCA", "VAE", "Align", "FactorFinder", "LinearVAE", "scorer"]
