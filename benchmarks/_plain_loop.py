"""The reference of `unseam bench cohort`: one model, plain PyTorch, as people write it.

Eager modules, torch.optim.Adam, batches indexed from a tensor in memory, float32. Nothing of unseam is used.
"""

import time
from itertools import pairwise

import torch
from torch import Tensor, nn


class MLPVAE(nn.Module):
    """Zietlow 2022, Table 3.1, Synth. Non-Lin.: 60-40-20 tanh both ways, 2 latents."""

    def __init__(self, n: int = 6, latents: int = 2) -> None:
        super().__init__()
        self.encoder = self.layers([n, 60, 40, 20, 2 * latents])
        self.decoder = self.layers([latents, 60, 40, 20, n])

    @staticmethod
    def layers(sizes: list[int]) -> nn.Sequential:
        out: list[nn.Module] = []
        for a, b in pairwise(sizes):
            out += [nn.Linear(a, b), nn.Tanh()]
        return nn.Sequential(*out[:-1])

    def forward(self, x: Tensor) -> Tensor:
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        squares = (x - self.decoder(z)).square().sum(1)
        kl = 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1)
        return (squares + 1e-3 * kl).mean()


class WideVAE(MLPVAE):
    """Layers where arithmetic rules: 784-400-400 and 500-500-784, tanh, 6 latents."""

    def __init__(self, n: int = 784, latents: int = 6) -> None:
        nn.Module.__init__(self)
        self.encoder = self.layers([n, 400, 400, 2 * latents])
        self.decoder = self.layers([latents, 500, 500, n])


class ConvVAE(nn.Module):
    """The 4-layer 32-32-64-64 / FC 256 network every paper uses, 64x64, 10 latents, Bernoulli."""

    def __init__(self, channels: int = 1, latents: int = 10) -> None:
        super().__init__()
        widths = (channels, 32, 32, 64, 64)
        encoder: list[nn.Module] = []
        for a, b in pairwise(widths):
            encoder += [nn.Conv2d(a, b, 4, 2, 1), nn.ReLU()]
        self.encoder = nn.Sequential(
            *encoder, nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 2 * latents)
        )
        decoder: list[nn.Module] = [nn.Linear(latents, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU()]
        decoder.append(nn.Unflatten(1, (64, 4, 4)))
        for a, b in zip((64, 64, 32, 32), (64, 32, 32, channels), strict=True):
            decoder += [nn.ConvTranspose2d(a, b, 4, 2, 1), nn.ReLU()]
        self.decoder = nn.Sequential(*decoder[:-1])

    def forward(self, x: Tensor) -> Tensor:
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        logits = self.decoder(z)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none").flatten(1).sum(1)
        kl = 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1)
        return (loss + 4.0 * kl).mean()


class PlainLoop:
    """A model, its optimiser and its data; `run(steps)` returns seconds."""

    def __init__(self, model: nn.Module, data: Tensor, batch: int, threads: int) -> None:
        self.model, self.data, self.batch, self.threads = model, data, batch, threads
        self.optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def run(self, steps: int) -> float:
        torch.set_num_threads(self.threads)
        start = time.perf_counter()
        for _ in range(steps):
            x = self.data[torch.randint(len(self.data), (self.batch,))]
            loss = self.model(x)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        return time.perf_counter() - start
