"""What is known exactly about linear VAEs, in one sitting: python examples/linear_truth.py (a few seconds)."""

import numpy as np

from unseam.linear import Scenario, best_partition, gaussian_tables, linear_vae, ppca, precision
from unseam.linear.gamma_lambda import random_starts, solve

rng = np.random.default_rng(0)
axes = np.linalg.qr(rng.normal(size=(5, 5)))[0]
spectrum = np.array([5.0, 3.0, 1.5, 0.5, 0.4])
S = axes * spectrum @ axes.T  # a data covariance with known principal axes

print("1. PPCA: EM climbs to the closed form")
exact = ppca.closed_form(S, d=2)
found, trace = ppca.em(S, rng.normal(size=(5, 2)))
print(f"   log-likelihood {trace[0]:.4f} -> {trace[-1]:.6f} in {len(trace)} steps", end=", ")
print(f"exactly {exact.expected_log_likelihood(S):.6f}")

print("2. Linear VAE: a diagonal posterior chooses the axes, a full one does not care")
turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
best = linear_vae.optimum(S, d=2, s2=0.5)
turned = best.rotated(turn)
print(f"   full posterior:     {best.loss(S):.6f}, rotated by 45 degrees {turned.loss(S):.6f}")
print(f"   diagonal posterior: {best.loss(S):.6f}, rotated {linear_vae.best_encoder(turned.W, 0.5).loss(S):.6f}")
print(f"   the difference is the entanglement cost, {linear_vae.entanglement_cost(turned.W, 0.5):.6f} nats")

print("3. Collapse: latent i dies at beta = l_i / s2")
print("   points", linear_vae.collapse_points(spectrum, s2=0.5))
for beta in (1, 4, 8, 12):
    alive = int((linear_vae.optimum(S, 3, s2=0.5, beta=beta).W ** 2).sum(0).astype(bool).sum())
    lost = linear_vae.likelihood_loss(spectrum, 3, s2=0.5, beta=beta)
    print(f"   beta {beta:>2}: {alive} of 3 alive, {lost:.3f} nats of log-likelihood lost")

print("4. The precision budget (thesis 3.20-3.22)")
M = np.array([[4, 1], [-3, 1], [5, -1]])
print(f"   as given {precision.allocate(M).value:.1f}, rotated {precision.allocate(M @ turn.T).value:.1f}", end=", ")
print(f"with orthogonal columns {precision.rotate(M)[1].value:.1f}")

print("5. The gamma-lambda VAE: 25 pairs x 20 starts at once")
gamma, lam = np.linspace(0.98, 1.02, 5), np.linspace(-0.02, 0.02, 5)
scenario = Scenario(n=4, groups=((0, 1), (2,)))
ends = solve(scenario.Sy, gamma[:, None, None], lam[:, None], random_starts((5, 5, 20), 4, 3))
for outcome, count in zip(*np.unique(ends.outcome, return_counts=True), strict=True):
    print(f"   {count:>3} {outcome}")

print("6. Partition information at s = m = 10: the best of 10^10 assignments")
B, L = rng.normal(size=(10, 10)), rng.normal(size=(10, 10)) / 10**0.5
Sv = L @ L.T + 0.3 * np.eye(10)
answer = best_partition(gaussian_tables(Sv, np.diag(B @ Sv @ B.T) + 0.3, B @ Sv))
print(
    f"   {answer.value:.4f} nats with groups {[g for g in answer.groups if g]}, gap {answer.gap}, {answer.nodes} nodes"
)
