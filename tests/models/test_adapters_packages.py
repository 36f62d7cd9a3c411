"""The real pythae, diffusers and scvi-tools, where they are installed (not in CI)."""

import numpy as np
import pytest
import torch

import unseam
from unseam.models.adapters import adapter_for


def test_pythae():
    models = pytest.importorskip("pythae.models")
    model = models.BetaVAE(models.BetaVAEConfig(input_dim=(1, 4, 4), latent_dim=3, beta=3.0)).eval()
    x = torch.rand(60, 1, 4, 4)
    assert adapter_for(model).kind == "pythae"
    found = unseam.diagnose(model, x)
    assert found.beta == 3.0
    assert len(found.latents) == 3
    e = model.encoder(x)
    by_hand = unseam.diagnose(
        lambda z: model.decoder(z).reconstruction, e.embedding, e.log_covariance.exp().detach(), s2=1.0, beta=3.0
    )
    assert found.entanglement_cost == pytest.approx(by_hand.entanglement_cost, rel=1e-5)


@pytest.mark.parametrize("attention", [True, False])
def test_diffusers(attention):
    AutoencoderKL = pytest.importorskip("diffusers").AutoencoderKL
    down, up = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
    model = AutoencoderKL(
        block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=4, latent_channels=4, down_block_types=down,
        up_block_types=up, mid_block_add_attention=attention,
    ).eval()  # fmt: skip
    x = torch.randn(20, 3, 8, 8)
    assert adapter_for(model).kind == "diffusers"
    found = unseam.diagnose(model, x, points=40, samples=8)
    assert found.scope == "4 channels at each of 16 locations"
    assert found.whole_cost > 0
    np.testing.assert_allclose(
        [z.mu_std for z in unseam.diagnose(model, x, points=320, samples=0).latents],
        model.encode(x).latent_dist.mean.detach().movedim(1, 0).flatten(1).std(1, correction=0), rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("likelihood", ["poisson", "nb", "zinb", "normal"])
def test_scvi_tools(likelihood):
    scvi, anndata = pytest.importorskip("scvi"), pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    cells = anndata.AnnData(rng.poisson(3, size=(80, 12)).astype(np.float32))
    cells.obs["batch"] = rng.integers(0, 2, 80).astype(str)
    scvi.model.SCVI.setup_anndata(cells, batch_key="batch")
    model = scvi.model.SCVI(cells, n_latent=3, gene_likelihood=likelihood)
    model.train(1, accelerator="cpu", enable_progress_bar=False, logger=False)
    assert adapter_for(model).kind == "scvi-tools"
    found = unseam.diagnose(model, cells)
    mean, variance = model.get_latent_representation(return_dist=True)
    np.testing.assert_allclose([z.mu_std for z in found.latents], mean.std(0), rtol=1e-3)
    np.testing.assert_allclose([z.sigma2 for z in found.latents], variance.mean(0), rtol=1e-3)
    assert found.points == 80
    assert found.entanglement_cost >= 0
