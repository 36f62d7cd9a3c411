"""Diagnose and repair a VAE that unseam did not build: plain PyTorch, your own modules, your own loss.

    python examples/diagnose_your_own_vae.py

The data is a curved sheet in R^8 made from two independent factors. Two small VAEs are trained on it, for some seconds
each: one with the usual diagonal posterior, and one with a full covariance, to which all axes of latent space cost the
same. `unseam.diagnose` says why the first has found the factors and the second has not; `unseam.align` turns the
second one's latent space to the axes that its own decoder prefers, without labels and without training.
"""

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

import unseam

S2, LATENTS = 0.01, 2


class MyVAE(nn.Module):
    """Nothing of ours: the encoder gives a mean and a Cholesky factor, the decoder the mean of x."""

    def __init__(self, full: bool) -> None:
        super().__init__()
        self.full = full
        self.encoder = nn.Sequential(
            nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2 * LATENTS + 1)
        )
        self.decoder = nn.Sequential(nn.Linear(LATENTS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8))

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """mean (B, 2) and L (B, 2, 2) of N(mean, L L^T); L is diagonal in an ordinary VAE."""
        out = self.encoder(x)
        L = torch.diag_embed(torch.exp(out[:, 2:4]))
        if self.full:
            L = L + out[:, 4, None, None] * torch.tensor([[0.0, 0.0], [1.0, 0.0]])
        return out[:, :2], L


def sheet(count: int) -> tuple[Tensor, Tensor]:
    """Each factor moves along its own curve, one long and one short: x (N, 8) and the factors (N, 2)."""
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(count, 2, generator=generator)
    a, b = w.unbind(1)
    curves = torch.stack([a, 0.5 * torch.sin(2 * a), 0.5 * b, 0.2 * torch.cos(2 * b)], 1)
    frame = torch.linalg.qr(torch.randn(8, 4, generator=generator))[0]
    return curves @ frame.T + 0.02 * torch.randn(count, 8, generator=generator), w


def train(x: Tensor, full: bool, steps: int = 3000) -> MyVAE:
    """An ordinary training loop on -ELBO = |x - xhat|^2 / (2 s2) + KL."""
    torch.manual_seed(0)
    model = MyVAE(full)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        batch = x[torch.randint(len(x), (256,))]
        mean, L = model.posterior(batch)
        z = mean + (L @ torch.randn(len(mean), LATENTS, 1)).squeeze(2)
        reconstruction = (batch - model.decoder(z)).square().sum(1) / (2 * S2)
        log_det = 2 * L.diagonal(dim1=1, dim2=2).log().sum(1)
        kl = 0.5 * (mean.square().sum(1) + L.square().sum((1, 2)) - log_det - LATENTS)
        loss = (reconstruction + kl).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def correlations(codes: np.ndarray, factors: Tensor) -> str:
    """How well the best latent of each factor follows it."""
    table = np.abs(spearmanr(codes, factors.numpy()).statistic[:LATENTS, LATENTS:])
    return ", ".join(f"{value:.2f}" for value in table.max(0))


def main() -> None:
    torch.set_num_threads(1)
    x, factors = sheet(4000)
    for name, full in (("diagonal posterior", False), ("full posterior", True)):
        model = train(x, full)
        with torch.no_grad():
            mean, L = model.posterior(x)
        spread = L @ L.mT if full else L.diagonal(dim1=1, dim2=2).square()  # covariances (N, K, K) or variances (N, K)

        print(f"\n=== {name} ===")
        print(unseam.diagnose(model.decoder, mean, spread, data=x, s2=S2))
        print(f"rank correlation of the best latent with each factor: {correlations(mean.numpy(), factors)}\n")

        result = unseam.align(model.decoder, mean, spread, s2=S2)
        print(result)
        print(f"rank correlation of the best latent with each factor: {correlations(result.codes, factors)}")

        # The turned model is the same model: it decodes the turned codes to the same reconstructions.
        turned = torch.as_tensor(result.codes, dtype=torch.float32)
        with torch.no_grad():
            difference = (result.decoder(turned) - model.decoder(mean)).abs().max()
        print(f"largest change of a reconstruction: {difference:.1e}")


if __name__ == "__main__":
    main()
