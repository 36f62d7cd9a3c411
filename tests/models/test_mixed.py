"""A likelihood a column against SciPy's densities and the pure likelihoods; missing cells say nothing."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import unseam
from unseam.errors import BadInput
from unseam.models.likelihood import Bernoulli, Categorical, Gaussian, Likelihood, NegativeBinomial
from unseam.models.mixed_likelihood import Mixed

g = np.random.default_rng(0)
COLUMNS = ("gaussian:2", "bernoulli:2", "negative-binomial:2", "categorical:3")
X = np.concatenate(
    [g.normal(size=(6, 2)), g.integers(0, 2, (6, 2)), g.poisson(4.0, (6, 2)), np.eye(4)[[0, 1, 2, 3, 1, 0], 1:]], axis=1
)
THETA = torch.as_tensor(g.normal(0.5, 0.7, size=(6, 9)))


def mixed(columns: tuple[str, ...] = COLUMNS) -> Mixed:
    """With parameters that differ from column to column."""
    p = Mixed(columns).double()
    with torch.no_grad():
        for i, parameter in enumerate(p.parameters()):
            parameter.copy_(torch.linspace(-1, 1, len(parameter)) + i)
    return p


def own(p: Mixed, i: int) -> np.ndarray:
    return np.exp(getattr(p, f"own{i}").detach().numpy())


def cells(p: Mixed) -> np.ndarray:
    """log p of each cell by SciPy; a variable of four classes is a third of it in each of its three columns."""
    theta = THETA.numpy()
    r, m = own(p, 2), np.exp(theta[:, 4:6])
    shares = torch.cat([torch.zeros(6, 1), THETA[:, 6:]], 1).softmax(1).numpy()
    whole = np.concatenate([1 - X[:, 6:].sum(1, keepdims=True), X[:, 6:]], axis=1)
    said = [stats.multinomial(1, p).logpmf(x) for x, p in zip(whole, shares, strict=True)]
    return np.concatenate(
        [
            stats.norm(theta[:, :2], np.sqrt(own(p, 0))).logpdf(X[:, :2]),
            stats.bernoulli(1 / (1 + np.exp(-theta[:, 2:4]))).logpmf(X[:, 2:4]),
            stats.nbinom(r, r / (r + m)).logpmf(X[:, 4:6]),
            np.repeat(np.array(said)[:, None] / 3, 3, axis=1),
        ],
        axis=1,
    )


def test_every_column_has_scipys_density() -> None:
    p = mixed()
    assert np.allclose(p.log_prob(torch.as_tensor(X), THETA).detach(), cells(p).sum(1), rtol=1e-10)


def test_missing_cells_say_nothing_whatever_they_hold() -> None:
    p = mixed((*COLUMNS, "seen:9"))
    seen = g.uniform(size=(6, 9)) < 0.6
    seen[:, 6:] = seen[:, 6:7]
    truth = (cells(p) * seen).sum(1)
    theta = torch.cat([THETA, torch.randn(6, 9).double()], 1)
    for guess in (0.0, 7.0):
        x = torch.as_tensor(np.concatenate([np.where(seen, X, guess), seen], axis=1))
        x.requires_grad_()
        theta.requires_grad_()
        said = p.log_prob(x, theta)
        assert np.allclose(said.detach(), truth, rtol=1e-10)
        gradient = torch.autograd.grad(said.sum(), theta)[0][:, :9].numpy()
        assert (gradient[:, :6][~seen[:, :6]] == 0).all()
        assert (gradient[:, :6][seen[:, :6]] != 0).all()


@pytest.mark.parametrize(
    ("columns", "pure", "part"),
    [
        (("gaussian:2",), Gaussian(0.3), slice(0, 2)),
        (("bernoulli:2",), Bernoulli(), slice(2, 4)),
        (("negative-binomial:2",), NegativeBinomial(), slice(4, 6)),
    ],
)
def test_a_table_of_one_kind_is_the_pure_likelihood(columns: tuple[str], pure: Likelihood, part: slice) -> None:
    p, pure = Mixed(columns, 0.3).double(), pure.double()
    x, theta = torch.as_tensor(X[:, part]), THETA[:, part]
    pairs: list[tuple[Tensor, Tensor]] = [
        (p.log_prob(x, theta), pure.log_prob(x, theta)),
        (p.mean(theta), pure.mean(theta)),
        (p.curvature(theta), pure.curvature(theta)),
    ]
    assert all(torch.allclose(a, b, rtol=1e-6) for a, b in pairs)
    assert torch.equal(p.inputs(x), pure.inputs(x))


def test_classes_are_the_pure_likelihood_with_the_first_of_them_at_0() -> None:
    p, x, theta = Mixed(("categorical:3",)), torch.as_tensor(X[:, 6:]), THETA[:, 6:]
    whole, all_theta = torch.cat([1 - x.sum(1, keepdim=True), x], 1), torch.cat([0 * theta[:, :1], theta], 1)
    assert torch.allclose(p.log_prob(x, theta), Categorical().log_prob(whole, all_theta))
    assert torch.allclose(p.mean(theta), Categorical().mean(all_theta)[:, 1:])
    assert torch.allclose(p.curvature(theta), Categorical().curvature(all_theta)[:, 1:])


def test_counts_given_their_sum_have_the_dirichlet_multinomial_of_scipy() -> None:
    p = mixed(("library:3", "seen:3"))
    counts, theta = np.array([[4.0, 9.0, 99.0]]), torch.tensor([[0.2, -0.1, 0.4, 0, 0, 0]]).double()
    a = own(p, 0) * theta[0, :3].softmax(0).numpy()
    truth = stats.dirichlet_multinomial(a[:2], 13).logpmf([4, 9])  # the third cell is missing
    x = torch.as_tensor(np.concatenate([counts, [[1, 1, 0]]], axis=1))
    assert float(p.log_prob(x, theta).detach()) == pytest.approx(float(truth), rel=1e-10)
    whole = torch.as_tensor(np.concatenate([counts, [[1, 1, 1]]], axis=1))
    truth = stats.dirichlet_multinomial(a, 112).logpmf([4, 9, 99])
    assert float(p.log_prob(whole, theta).detach()) == pytest.approx(float(truth), rel=1e-10)
    none = torch.as_tensor(np.concatenate([counts, [[0, 0, 0]]], axis=1))
    assert float(p.log_prob(none, theta).detach()) == 0


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("total", [0, 1, 7])
def test_counts_given_their_sum_sum_to_one(size: int, total: int) -> None:
    p = mixed((f"library:{size}",))
    rows = [r for r in itertools.product(range(total + 1), repeat=size) if sum(r) == total]
    x, theta = torch.tensor(rows).double(), torch.tensor([[0.7, -1.2, 0.1][:size]]).double().expand(len(rows), -1)
    assert float(p.log_prob(x, theta).detach().exp().sum()) == pytest.approx(1, abs=1e-9)
    mean = (p.log_prob(x, theta).exp()[:, None] * x).sum(0).detach() * size / max(total, 1)
    assert torch.allclose(mean, p.mean(theta)[0] * (total > 0))


def test_shares_of_counts_have_the_information_of_their_first_two_moments() -> None:
    """(dm/dtheta)^2 / variance of each column's count, by summing over all rows with one count a column."""
    p, theta = mixed(("library:3",)), torch.tensor([[0.7, -1.2, 0.1]]).double()
    x = torch.tensor([r for r in itertools.product(range(4), repeat=3) if sum(r) == 3]).double()
    mass = p.log_prob(x, theta.expand(len(x), -1)).exp().detach()
    mean = (mass[:, None] * x).sum(0)
    variance = (mass[:, None] * (x - mean) ** 2).sum(0)
    slope = torch.autograd.functional.jacobian(lambda t: p.mean(t), theta)[0, :, 0].diagonal()
    assert torch.allclose(p.curvature(theta)[0], slope**2 / variance)


def test_the_mask_is_neither_shown_nor_bent() -> None:
    p = Mixed(("gaussian:1", "negative-binomial:1", "seen:2"))
    x, theta = torch.tensor([[0.5, 3.0, 1.0, 0.0]]), torch.ones(1, 4)
    assert torch.equal(
        p.inputs(x),
        torch.tensor([[0.5, 3.0, 0.0, 0.0]]).where(torch.tensor([True, False, True, True]), torch.tensor(3.0).log1p()),
    )
    assert p.curvature(theta)[0, 2:].tolist() == p.mean(theta)[0, 2:].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (("gausian:9",), "did you mean 'gaussian'"),
        (("gaussian",), "KIND:NUMBER"),
        (("gaussian:4",), "describe 4 columns, the data has 9"),
        (("seen:4", "gaussian:4"), "stands last"),
        ((), "describe 0 columns"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_training(
    columns: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=says):
        unseam.fit(X, likelihood="mixed", columns=columns, steps=1, out=tmp_path / "run", show=False)
    assert not (tmp_path / "run").exists()


SPREAD = (0.3, 0.3, 0.6, 0.6, 1.2, 1.2)


def test_a_cohort_learns_a_variance_for_each_column(tmp_path: Path) -> None:
    """One factor in six columns: its loadings and their noise are identified."""
    draws = np.random.default_rng(1)
    x = 2 * draws.normal(size=(800, 1)) + draws.normal(size=(800, 6)) * SPREAD
    run = unseam.fit(
        x, likelihood="mixed", columns=("gaussian:6",), beta=1.0, latents=1, encoder=(), decoder=(), lr=0.02,
        steps=1200, batch=256, seeds=[0, 1], how="stacked", workers=1, out=tmp_path / "run", show=False, scale="none",
    )  # fmt: skip
    for member in (0, 1):
        s2 = run.model(member).likelihood.own0.exp().detach().numpy()
        assert np.allclose(np.sqrt(s2), SPREAD, rtol=0.15)
