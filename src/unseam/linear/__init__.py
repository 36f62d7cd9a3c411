"""What is known exactly: PCA, PPCA, the linear VAE, the gamma-lambda VAE and partition information.

Closed forms in float64 NumPy, no torch: the truth that the rest of the project is tested against.
"""

# isort: off
from unseam.linear import gamma_lambda as gamma_lambda, linear_vae as linear_vae, ppca as ppca
from unseam.linear import precision as precision, scenarios as scenarios
from unseam.linear.information import gaussian_tables as gaussian_tables
from unseam.linear.partition import Partition as Partition, brute_force as brute_force
from unseam.linear.partition import partition_value as partition_value
from unseam.linear.samples import partition_information as partition_information
from unseam.linear.sap import best_latents as best_latents, same_groups as same_groups
from unseam.linear.sap import squared_correlations as squared_correlations
from unseam.linear.scenarios import Scenario as Scenario
from unseam.linear.search import best_partition as best_partition
