"""What is known exactly: PCA, PPCA, the linear VAE, the gamma-lambda VAE and partition information.

Closed forms in float64 NumPy, no torch: the truth that the rest of the project is tested against.
"""

from unseam.linear import evidence, gamma_lambda, linear_vae, ppca, precision, scenarios
from unseam.linear.information import gaussian_information, gaussian_tables
from unseam.linear.partition import Partition, brute_force, partition_value
from unseam.linear.samples import partition_information
from unseam.linear.sap import best_latents, same_groups, sap_score, squared_correlations
from unseam.linear.scenarios import Scenario
from unseam.linear.search import best_partition

__all__ = [
    "Partition",
    "Scenario",
    "best_latents",
    "best_partition",
    "brute_force",
    "evidence",
    "gamma_lambda",
    "gaussian_information",
    "gaussian_tables",
    "linear_vae",
    "partition_information",
    "partition_value",
    "ppca",
    "precision",
    "same_groups",
    "sap_score",
    "scenarios",
    "squared_correlations",
]
