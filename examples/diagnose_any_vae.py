"""Diagnose models that unseam did not build, in three lines each: a module, a pair, latents (C, H, W), scikit-learn,
and pythae, diffusers and scvi-tools where they are installed.

    python examples/diagnose_any_vae.py            # about two minutes on one core
    python examples/diagnose_any_vae.py module     # one of: module pair conv sklearn run pythae diffusers scvi
"""

import sys
import time
import warnings
from importlib.util import find_spec
from tempfile import mkdtemp

import numpy as np
import torch
from torch import Tensor, nn

import unseam

warnings.filterwarnings("ignore")


def sheet(count: int = 3000) -> Tensor:  # (N, 8)
    """Two independent factors, one moving the data further than the other."""
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(count, 2, generator=g).unbind(1)
    curves = torch.stack([a, 0.5 * torch.sin(2 * a), 0.5 * b, 0.2 * torch.cos(2 * b)], 1)
    frame = torch.linalg.qr(torch.randn(8, 4, generator=g))[0]
    return curves @ frame.T + 0.05 * torch.randn(count, 8, generator=g)


def images(count: int = 1500, size: int = 32) -> Tensor:  # (N, 1, size, size)
    """Squares of several sizes in many places."""
    data = unseam.load_data("sprites", size=size)
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:count]
    return data.batch(rows).float()


def minimise(loss, parameters, x: Tensor, steps: int, lr: float = 2e-3, batch: int = 128) -> None:
    """A plain training loop."""
    optimiser, g = torch.optim.Adam(parameters, lr=lr), torch.Generator().manual_seed(0)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(x[torch.randint(len(x), (batch,), generator=g)]).backward()
        optimiser.step()


class MyVAE(nn.Module):
    """Any torch module with `encode` and `decode`."""

    def __init__(self) -> None:
        super().__init__()
        self.inwards = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 6))
        self.outwards = nn.Sequential(nn.Linear(3, 64), nn.Tanh(), nn.Linear(64, 8))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.inwards(x).chunk(2, 1)
        return mean, log_variance

    def decode(self, z: Tensor) -> Tensor:
        return self.outwards(z)

    def loss(self, x: Tensor) -> Tensor:
        mean, log_variance = self.encode(x)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(1)
        return ((x - self.decode(z)).square().sum(1) / (2 * 0.01) + kl).mean()


class ConvVAE(nn.Module):
    """Latents (4, 8, 8), a vector of 4 channels at each of 64 places."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.SiLU(), nn.Conv2d(16, 8, 4, 2, 1))
        self.up = nn.Sequential(nn.ConvTranspose2d(4, 16, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.down(x).chunk(2, 1)
        return mean, log_variance

    def decode(self, z: Tensor) -> Tensor:
        return self.up(z)

    def loss(self, x: Tensor) -> Tensor:
        mean, log_variance = self.encode(x)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).flatten(1).sum(1)
        return ((x - self.decode(z)).square().flatten(1).sum(1) / (2 * 0.02) + kl).mean()


def module() -> None:
    x, model = sheet(), MyVAE()
    minimise(model.loss, model.parameters(), x, 1500)
    print(unseam.diagnose(model, x, s2=0.01, beta=1))
    print(unseam.theorems(model, x, s2=0.01, beta=1))


def pair() -> None:
    x = sheet()
    encoder, decoder = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2)), nn.Linear(2, 8)
    both = [*encoder.parameters(), *decoder.parameters()]
    minimise(lambda b: (b - decoder(encoder(b))).square().sum(1).mean(), both, x, 500)
    print(unseam.diagnose((encoder, decoder), x))


def conv() -> None:
    x, model = images(), ConvVAE()
    minimise(model.loss, model.parameters(), x, 400)
    print(unseam.diagnose(model, x, s2=0.02, beta=1))


def sklearn() -> None:
    from sklearn.decomposition import FastICA

    x = sheet().numpy()
    model = FastICA(2, random_state=0).fit(x)
    print(unseam.diagnose(model, x))


def run() -> None:
    trained = unseam.fit(
        "synth-linear", beta=0.01, steps=2000, lr=0.01, network="linear", latents=2, out=mkdtemp() + "/run"
    )
    print(unseam.diagnose(trained))


def pythae() -> None:
    from pythae.models import VAE, VAEConfig

    x = images(size=16)
    model = VAE(VAEConfig(input_dim=(1, 16, 16), latent_dim=4, reconstruction_loss="bce"))
    minimise(lambda b: model({"data": b}).loss, model.parameters(), x, 600)
    print(unseam.diagnose(model.eval(), x))


def diffusers() -> None:
    from diffusers import AutoencoderKL

    x = images(400)
    model = AutoencoderKL(
        in_channels=1, out_channels=1, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
        latent_channels=4, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip

    def loss(b: Tensor) -> Tensor:
        q = model.encode(b).latent_dist
        return ((b - model.decode(q.sample()).sample).square().flatten(1).sum(1) / 0.04 + q.kl()).mean()

    minimise(loss, model.parameters(), x, 100, batch=16)
    print(unseam.diagnose(model.eval(), x[:200], points=300, samples=64))


def scvi() -> None:
    import anndata
    from scvi.model import SCVI

    rng = np.random.default_rng(0)
    programs = rng.normal(size=(2, 40))  # two programs of 40 genes
    counts = rng.poisson(np.exp(rng.normal(size=(1000, 2)) @ programs * 0.7 + 1)).astype(np.float32)
    cells = anndata.AnnData(counts)
    SCVI.setup_anndata(cells)
    model = SCVI(cells, n_latent=4, gene_likelihood="nb")
    model.train(60, accelerator="cpu", enable_progress_bar=False, logger=False)
    print(unseam.diagnose(model, cells))


CASES = (module, pair, conv, sklearn, run, pythae, diffusers, scvi)
PACKAGES = ("pythae", "diffusers", "scvi")


def main(*names: str) -> None:
    torch.set_num_threads(1)
    for case in CASES:
        name = case.__name__
        if names and name not in names:
            continue
        print(f"\n=== {name} ===")
        if name in PACKAGES and find_spec(name) is None:
            print(f"{name} is not installed")
            continue
        torch.manual_seed(0)
        began = time.process_time()
        case()
        print(f"({time.process_time() - began:.0f} s of CPU, training included)")


if __name__ == "__main__":
    main(*sys.argv[1:])
