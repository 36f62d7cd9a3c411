"""The networks of `find`: when a loss has settled, how many latents there are, what a factor's nats are, and a linear
rival that is at its optimum."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

import unseam
from unseam.axes import Array
from unseam.finding import network as net
from unseam.finding import nonlinear
from unseam.finding.latent_count import NetworkCohort, fewest_latents
from unseam.finding.linear_rival import Rival, fit_factor_analysis, fit_factor_analysis_with_gaps
from unseam.finding.spacings import rotation_by_entropy
from unseam.geometry.align import Frame


def losses(shape: Callable[[Array], Array], noise: float, curves: int = 300) -> list[str]:
    """What is said of simulated held-out losses with a known course."""
    t, g = np.arange(0, 3000, 50.0), np.random.default_rng(0)
    return [net.loss_state(t, shape(t) + noise * g.normal(size=len(t))).word for _ in range(curves)]


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
def test_flat_losses_are_called_settled(noise: float) -> None:
    words = losses(lambda t: 5 * np.exp(-t / 150), noise)
    assert words.count("overfitting") <= 0.03 * len(words)
    assert words.count("still falling") <= 0.06 * len(words)


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_losses_that_rise_and_that_fall_are_seen(noise: float) -> None:
    rises = losses(lambda t: 5 * np.exp(-t / 150) + 0.8 * np.maximum(t - 1000, 0) / 1000, noise)
    assert rises.count("overfitting") >= 0.97 * len(rises)
    falls = losses(lambda t: 5 * np.exp(-t / 150) - 0.6 * t / 1000, noise)
    assert falls.count("still falling") >= 0.97 * len(falls)


class Posterior:
    """A diagonal Gaussian."""

    def __init__(self, mean: Array, variance: Array) -> None:
        self.mean, self._variance = torch.as_tensor(mean), torch.as_tensor(variance)

    def variance(self) -> torch.Tensor:
        return self._variance


class Encoder(torch.nn.Module):
    """Rows are the posterior's means; its variances are constants."""

    def __init__(self, variance: Array) -> None:
        super().__init__()
        self.variance = variance
        self.weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def encode(self, x: torch.Tensor) -> Posterior:
        return Posterior(x.numpy(), np.broadcast_to(self.variance, x.shape).copy())


def test_nats_of_a_scaled_and_turned_latent_are_its_kl() -> None:
    """Against quadrature: the KL of each new coordinate's posterior from the prior in the same coordinate, whatever
    scale the axes have."""
    g = np.random.default_rng(0)
    means, variance = g.normal(size=(40, 2)) * [0.5, 0.9] + [0.2, -0.1], np.array([0.7, 0.15])
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    scale, shift = np.array([[0.5, 0.1], [0.1, 0.9]]), means.mean(0)
    frame = Frame(torch.as_tensor(turn), torch.as_tensor(scale), torch.as_tensor(shift))
    nats = net.RotatedModel(Encoder(variance), frame, np.array([0, 1]), np.ones(2)).nats(means)  # type: ignore[arg-type]
    A = np.linalg.solve(scale, turn)
    grid = np.linspace(-60, 60, 200_001)
    for j in range(2):
        prior = -0.5 * (grid + shift @ A[:, j]) ** 2 / (A[:, j] ** 2).sum() - 0.5 * np.log(
            2 * np.pi * (A[:, j] ** 2).sum()
        )
        kls = []
        for row in (means - shift) @ A[:, j]:
            v = float(variance @ A[:, j] ** 2)
            q = -0.5 * (grid - row) ** 2 / v - 0.5 * np.log(2 * np.pi * v)
            kls.append(np.trapezoid(np.exp(q) * (q - prior), grid))
        assert nats[j] == pytest.approx(np.mean(kls), abs=1e-4)


def test_a_latent_that_is_only_rescaled_keeps_its_nats() -> None:
    means = np.linspace(-1, 1, 201)[:, None] * np.sqrt(0.9)
    for scale in (0.1, 1.0, 7.0):
        frame = Frame(torch.eye(1).double(), torch.full((1, 1), scale).double(), torch.zeros(1).double())
        nats = net.RotatedModel(Encoder(np.array([0.7])), frame, np.array([0]), np.ones(1)).nats(means)  # type: ignore[arg-type]
        assert nats[0] == pytest.approx(0.5 * ((means**2).mean() + 0.7 - np.log(0.7) - 1), abs=1e-9)


def fake(bounds: dict[int, float], spread: float = 0.5) -> Callable[[int], NetworkCohort]:
    """Cohorts of known bounds."""

    def trained(k: int) -> NetworkCohort:
        rows = bounds[k] + spread * np.random.default_rng(k).normal(size=200)
        return NetworkCohort(k, None, {0: rows, 1: rows - 1}, {0: k, 1: k})  # type: ignore[arg-type]

    return trained


def test_the_number_of_latents_is_the_smallest_that_unseen_rows_allow() -> None:
    assert fewest_latents(6, fake({6: 3.2, 5: 3.4, 4: 4.6, 3: 6.1, 2: -8.5})).cohort.latents == 3  # type: ignore[union-attr]
    assert fewest_latents(3, fake({3: 6.0, 2: 5.99, 1: -9.0})).cohort.latents == 2  # type: ignore[union-attr]
    assert fewest_latents(2, fake({2: 1.0, 1: 0.98})).cohort.latents == 1  # type: ignore[union-attr]
    nothing = fewest_latents(2, lambda k: NetworkCohort(k, None, {0: np.zeros(9)}, {0: 0}))  # type: ignore[arg-type]
    assert nothing.cohort is None


def sample(N: int = 600, n: int = 8, gone: float = 0.0) -> tuple[Array, Array]:
    g = np.random.default_rng(3)
    x = g.normal(size=(N, 2)) @ g.normal(size=(2, n)) + g.uniform(0.2, 1, n) * g.normal(size=(N, n)) + 3
    return x, g.uniform(size=x.shape) >= gone


def test_factor_analysis_is_at_the_maximum_of_the_likelihood() -> None:
    x, _ = sample()
    ours, theirs = fit_factor_analysis(x, 2), FactorAnalysis(2, tol=1e-9, max_iter=5000, svd_method="lapack").fit(x)
    assert ours.converged
    assert ours.log_likelihood(x).mean() == pytest.approx(theirs.score(x), abs=1e-6)
    assert fit_factor_analysis_with_gaps(x, np.ones(x.shape, bool), 2).log_likelihood(x).mean() == pytest.approx(
        theirs.score(x), abs=1e-4
    )


def test_with_missing_cells_the_known_ones_have_their_likelihood_at_its_maximum() -> None:
    """The density of the known cells is SciPy's; guesses in the others change nothing; no small change of any
    parameter makes the known cells likelier."""
    x, seen = sample(gone=0.15)
    first = fit_factor_analysis_with_gaps(np.where(seen, x, x.mean(0)), seen, 2)
    other = fit_factor_analysis_with_gaps(np.where(seen, x, 0.0), seen, 2)
    assert first.converged
    C = first.W @ first.W.T + np.diag(first.noise)
    for i in range(5):
        o = seen[i]
        expected = multivariate_normal(first.mean[o], C[np.ix_(o, o)]).logpdf(x[i, o])
        assert first.log_likelihood(x, seen)[i] == pytest.approx(expected, abs=1e-9)
    level = first.log_likelihood(x, seen).mean()
    assert other.log_likelihood(x, seen).mean() == pytest.approx(level, abs=1e-3)
    for e in (-0.02, 0.02):
        for changed in (
            first._replace(mean=first.mean + e), first._replace(W=first.W * (1 + e)),
            first._replace(noise=first.noise * (1 + e)),
        ):  # fmt: skip
            assert changed.log_likelihood(x, seen).mean() < level


def test_axes_of_codes_are_those_of_least_dependence() -> None:
    """Uniform codes, squeezed towards a Gaussian as a network's prior does it, and turned."""
    g = np.random.default_rng(1)
    s = np.tanh(g.uniform(-1.2, 1.2, (1500, 3)) * [1.0, 0.3, 2.0])
    white = (s - s.mean(0)) / s.std(0)
    turn = np.linalg.qr(g.normal(size=(3, 3)))[0]
    found = turn @ rotation_by_entropy(white @ turn)
    assert (np.sort(np.abs(found), axis=0)[-1] > 0.97).all()


class Sparse(Encoder):
    """Rows are codes and what is decoded from them: three latents in unknown axes, each bends columns of its own, or
    all of them bend all."""

    def __init__(self, turn: Array, dense: bool) -> None:
        super().__init__(np.full(3, 0.01))
        g = np.random.default_rng(2)
        W = (
            g.normal(size=(3, 15))
            if dense
            else np.kron(np.eye(3), g.uniform(0.5, 1, 5)) + 0.05 * g.normal(size=(3, 15))
        )
        self.turn, self.W = torch.as_tensor(turn), torch.as_tensor(W)

    def encode(self, x: torch.Tensor) -> Posterior:
        return super().encode(x[:, :3])

    def mean(self, z: torch.Tensor) -> torch.Tensor:
        u = z @ self.turn @ self.W
        return u + 0.3 * torch.sin(2 * u)


@pytest.mark.parametrize("dense", [False, True])
def test_a_sparse_jacobian_has_axes_and_a_dense_one_none(dense: bool) -> None:
    g = np.random.default_rng(0)
    turn = np.linalg.qr(g.normal(size=(3, 3)))[0]
    z = g.normal(size=(300, 3))
    model: Any = Sparse(turn, dense)
    x = np.concatenate([z, np.zeros((300, 12))], axis=1)
    x[:, 3:] = model.mean(torch.as_tensor(z))[:, 3:].numpy()
    turned, structure = net.simplest(model, x)
    assert structure.simple is not dense
    assert bool(structure.undecided.any()) is dense
    A = turned.frame.linear().numpy()
    assert np.allclose(A.T @ A, np.eye(3))  # the prior stays what it is
    if not dense:
        found = np.abs(np.corrcoef((z @ turn).T, turned.encode(x).T)[:3, 3:])
        assert (found.max(1) > 0.98).all()


def bent() -> Array:  # (400, 5)
    """Two factors that a linear model does not separate."""
    g = np.random.default_rng(0)
    s = g.uniform(-1, 1, (400, 2))
    x = np.stack([s[:, 0], s[:, 0] ** 2, s[:, 1], s[:, 0] * s[:, 1], np.sin(2 * s[:, 1])], axis=1)
    return np.asarray(x + 0.05 * g.normal(size=x.shape))


class Nets:
    """What `network_answer` does, with trainings that end as we say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, word: str, rival: bool) -> None:
        state = net.LossState(word, 1.0, 0.0)
        monkeypatch.setattr(net, "member_loss_state", lambda *_: state)
        monkeypatch.setattr(net, "train_longer", lambda run, *_: run)
        monkeypatch.setattr(
            nonlinear, "linear_rival", lambda rows, *_: Rival(np.full(len(rows.test), -99.0), rival, "x")
        )


@pytest.mark.parametrize(
    ("word", "rival", "kind", "found"),
    [
        ("settled", True, "non-linear", True),
        ("still falling", True, "linear", False),
        ("settled", False, "linear", False),
        ("overfitting", True, "non-linear", False),
    ],
)
def test_what_has_not_settled_is_neither_taken_nor_found(
    word: str, rival: bool, kind: str, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(net.EFFORTS, "quick", net.Effort(seeds=2, steps=250, width=16))
    monkeypatch.setattr(nonlinear, "TURNS", 0.0)
    seen: dict[str, Any] = {}

    def turned(*given: Any) -> Any:
        seen["rests"] = given[-1]
        return real(*given)

    real = nonlinear.turned_answer
    monkeypatch.setattr(nonlinear, "turned_answer", turned)
    Nets(monkeypatch, word, rival)
    answer = unseam.find(bent(), effort="quick", show=False, latents=2)
    assert answer.kind == kind
    assert any("had not settled" in note for note in answer.notes) == (kind == "linear")
    if kind == "non-linear":
        assert seen["rests"] == found
        assert found or "found" not in {f.grade for f in answer.factors}
        assert answer.settled == found


def test_seed_and_beta_reach_every_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(net.EFFORTS, "quick", net.Effort(seeds=2, steps=20, width=8, again=0))
    calls: list[dict[str, Any]] = []

    def fit(*given: Any, **settings: Any) -> Any:
        calls.append(settings)
        return real(*given, **settings)

    real = net.fit
    monkeypatch.setattr(net, "fit", fit)
    unseam.find(bent(), effort="quick", seed=7, beta=2.5, show=False, latents=2, out=tmp_path / "out")
    assert calls
    assert all(list(c["seeds"]) == [7, 8] for c in calls)
    assert all(c["beta"] == 2.5 for c in calls)
    members = unseam.load_run(tmp_path / "out" / "run").config.members
    assert [(m.seed, m.hyper["beta"]) for m in members] == [(7, 2.5), (8, 2.5)]
