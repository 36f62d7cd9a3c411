"""Objectives on pairs against closed forms, quadrature and cases they must solve."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import laplace, norm, spearmanr

import unseam
from unseam.errors import BadInput
from unseam.models import Diagonal
from unseam.models.posterior import POSTERIORS
from unseam.objectives import OBJECTIVES
from unseam.objectives.adaptive import average_posteriors, divergence, multiplied, shared_latents, tied
from unseam.objectives.slow import gaussian_entropy, laplace_cross_entropy
from unseam.runs.align import align
from unseam.runs.diagnose import diagnose
from unseam.runs.evaluate import evaluate
from unseam.show.explorer.open_runs import open_gallery
from unseam.show.report import report


@pytest.mark.parametrize(("m", "s", "rate"), [(0.0, 1.0, 6.0), (1.3, 0.4, 2.0), (-2.0, 0.05, 0.5), (0.2, 2.0, 1.0)])
def test_the_cross_entropy_under_a_laplace_is_its_integral(m, s, rate):
    expected = quad(
        lambda z: -norm.pdf(z, m, s) * laplace.logpdf(z, scale=1 / rate), m - 12 * s, m + 12 * s, points=[0.0]
    )[0]
    found = laplace_cross_entropy(torch.tensor(m).double(), torch.tensor(2 * np.log(s)).double(), rate)
    assert float(found) == pytest.approx(expected, abs=1e-6)


def test_the_entropy_is_the_gaussian_one():
    q = Diagonal(torch.zeros(1, 2), torch.tensor([[0.0, -3.0]]))
    assert float(gaussian_entropy(q)) == pytest.approx(norm.entropy() + norm.entropy(scale=np.exp(-1.5)), rel=1e-6)


def test_the_divergence_is_that_of_two_gaussians():
    a, b = (
        Diagonal(torch.tensor([[0.3]]), torch.tensor([[-1.0]])),
        Diagonal(torch.tensor([[-0.5]]), torch.tensor([[0.4]])),
    )
    p, q = norm(0.3, np.exp(-0.5)), norm(-0.5, np.exp(0.2))
    expected = quad(lambda z: p.pdf(z) * (p.logpdf(z) - q.logpdf(z)), -8, 8)[0]
    assert float(divergence(a, b)) == pytest.approx(expected, abs=1e-6)


def test_joined_posteriors_by_hand():
    a, b = (
        Diagonal(torch.tensor([[1.0]]), torch.log(torch.tensor([[1.0]]))),
        Diagonal(torch.tensor([[4.0]]), torch.log(torch.tensor([[3.0]]))),
    )
    g, ml = average_posteriors(a, b), multiplied(a, b)
    assert (float(g.mean), float(g.variance())) == pytest.approx((2.5, 2.0))
    assert (float(ml.mean), float(ml.variance())) == pytest.approx(((1 + 4 / 3) * 1.5 / 2, 1.5))


def test_a_perfect_latent_space_is_judged_right_and_left_alone():
    """Codes that are the factors: what is shared is told exactly, and joining equal posteriors changes nothing."""
    draw = torch.Generator().manual_seed(0)
    first = torch.randn(200, 4, generator=draw)
    change = torch.rand(200, 4, generator=draw).argsort(1) < 2
    second = torch.where(change, first + 3 + torch.rand(200, 4, generator=draw), first)
    one, two = (Diagonal(z, torch.full_like(z, -4.0)) for z in (first, second))
    assert torch.equal(shared_latents(one, two), ~change)
    for join in (average_posteriors, multiplied):
        for before, after in zip((one, two), tied(one, two, join), strict=True):
            torch.testing.assert_close(after.mean, before.mean)
            torch.testing.assert_close(after.log_var, before.log_var)


def test_pcl_finds_the_sources_of_a_linear_mixture(tmp_path):
    """Three AR(1) sources with Laplace steps, rotated; the pairs are neighbours in time."""
    rng = np.random.default_rng(0)
    steps = rng.laplace(size=(8000, 3))
    sources = np.zeros_like(steps)
    for t in range(1, len(steps)):
        sources[t] = 0.8 * sources[t - 1] + steps[t]
    sources /= sources.std(0)
    x = sources @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    run = unseam.fit(
        x.astype(np.float32), "pcl", pairs="time", network="linear", latents=3, steps=1500, batch=256, lr=1e-2,
        holdout=0.0, out=tmp_path / "run", show=False, workers=1,
    )  # fmt: skip
    codes = run.model(0).encode(torch.tensor(x, dtype=torch.float32)).mean.detach().numpy()
    rho = np.abs(spearmanr(codes, sources).statistic[:3, 3:])
    assert rho.max(1).min() > 0.95
    assert sorted(rho.argmax(1)) == [0, 1, 2]


@pytest.mark.parametrize("objective", ["ada-gvae", "ada-ml-vae", "slow-vae", "pcl"])
def test_a_cohort_on_pairs_is_its_members(tmp_path, objective):
    """Seed 1 draws the same pairs beside seed 0 as alone, so its codes are the same up to rounding and a shift."""
    small = {"network": "mlp", "encoder": (8,), "decoder": (8,), "latents": 2, "batch": 8, "show": False, "workers": 1}
    small |= {"data_parameters": {"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4}}
    both = unseam.fit("sprites", objective, seeds=[0, 1], steps=30, out=tmp_path / "both", **small)
    alone = unseam.fit("sprites", objective, seeds=[1], steps=30, out=tmp_path / "alone", **small)
    x = both.data.batch(torch.arange(20))
    with torch.no_grad():
        beside, single, other = (m.encode(x).mean for m in (both.model(1), alone.model(0), both.model(0)))
    torch.testing.assert_close(beside - beside.mean(0), single - single.mean(0), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(beside - beside.mean(0), other - other.mean(0), atol=1e-3)


def test_what_has_no_decoder_says_so(tmp_path):
    """PCL trains no decoder: its codes are scored and reported; what would decode is refused in one line."""
    run = unseam.fit(
        "sprites", "pcl", network="mlp", encoder=(8,), decoder=(8,), latents=2, steps=3, out=tmp_path / "run",
        show=False, workers=1, data_parameters={"size": 16, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4},
    )  # fmt: skip
    assert run.table()["reconstruction"].isna().all()  # missing, not 0
    assert evaluate(run, "mig", show=False)[0]["mig"].value >= 0
    for deed in (diagnose, lambda run: align(run, 0), lambda run: open_gallery([run.folder], [None])):
        with pytest.raises(BadInput, match="pcl trains no decoder"):
            deed(run)
    page = report(run, show=False).read_text()
    assert "pcl trains no decoder" in page
    assert "<th>mig</th><th>dci-disentanglement</th>" in page
    assert "observations along each latent" in page
    with pytest.raises(BadInput, match="member=3 is not a finished member"):
        report(run, member=3, show=False)


def test_what_has_no_elbo_says_so(tmp_path):
    """A GAN's diagnosis says first which of its numbers mean nothing, and gives no advice about a beta.

    What is not an advice stays: that the data has more factors than latents are in use.
    """
    small = {"size": 8, "shapes": 1, "orientations": 1, "xs": 4, "ys": 4}
    for data, own in (("ring", {"latents": 2}), ("sprites", {"latents": 4, "data_parameters": small})):
        run = unseam.fit(data, "weak-gan", network="mlp", encoder=(8,), decoder=(8,), steps=3, out=tmp_path / data,
                         show=False, workers=1, **own)  # fmt: skip
        found = diagnose(run, show=False)[0]
        assert found.beta_source == "none"
        assert found.warnings[0].startswith("weak-gan has no ELBO")
        assert not any("beta" in warning for warning in found.warnings[1:])
        assert "lower beta" not in found.verdict
    assert "0 of 4 latents active, but the data has 3 factors" in found.warnings


def test_objectives_without_a_kl_have_no_beta():
    """Codes that are points have no density, so no KL; a GAN's encoder is learned beside its loss."""
    points = {name for name, kind in OBJECTIVES.items() if not POSTERIORS[kind.posterior].has_prior}
    assert {name for name, kind in OBJECTIVES.items() if not kind.has_beta} == {*points, "weak-gan"}
    assert not any(kind.beta_is for kind in OBJECTIVES.values() if not kind.has_beta)
