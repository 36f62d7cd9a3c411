"""Where the parts of `find` meet: which rows a number is of, which factor a sentence names, what rivals were told."""

from typing import Literal

import numpy as np
import pytest

import unseam
from unseam.axes import Array
from unseam.finding.axes import fit_axes
from unseam.finding.findings import Findings
from unseam.finding.grades import FoundFactor
from unseam.finding.nonlinear import is_likelier
from unseam.finding.parts import fit_parts
from unseam.finding.sentences import Size, sentence
from unseam.rng import numpy_generator

N = 400


@pytest.fixture(scope="module")
def mixed() -> tuple[Array, Array]:
    """Three factors of unlike strength; the rows that are tested on are noisier than all the others."""
    g = np.random.default_rng(0)
    s = g.laplace(size=(N, 3))
    x = (s * [4.0, 2.0, 1.0]) @ np.linalg.qr(g.normal(size=(9, 3)))[0].T + 0.05 * g.normal(size=(N, 9))
    x[unseen()] += 0.5 * g.normal(size=(N // 5, 9))
    return x, s


def unseen() -> Array:
    return numpy_generator(0, "rows").permutation(N)[: N // 5]


@pytest.fixture(scope="module")
def found(mixed: tuple[Array, Array]) -> Findings:
    return unseam.find(mixed[0], network=False, factors=mixed[1], latents=3, scale="none")


def test_what_is_kept_is_of_unseen_rows(mixed: tuple[Array, Array], found: Findings) -> None:
    """Ours and the rivals are fitted on the same rows and asked about the others: a linear model keeps what as many
    principal components of those rows keep, and its density is that of standardised columns."""
    x, test = mixed[0], unseen()
    others = np.delete(x, test, axis=0)
    ours, pca = found.rivals["unseam"], found.rivals["PCA"]
    for row, unit in ((ours, np.ones(9)), (pca, x.std(0))):  # ours was told not to standardise
        U = np.linalg.svd((others - others.mean(0)) / unit, full_matrices=False)[2][:3]
        centred = (x[test] - others.mean(0)) / unit
        left = (centred - centred @ U.T @ U) * unit / x.std(0)
        kept = 1 - (left**2).sum() / (((x[test] - others.mean(0)) / x.std(0)) ** 2).sum()
        assert row["variance_kept"] == pytest.approx(kept, abs=1e-9)
    density = fit_axes(others, 3).log_likelihood(x[test]).mean() + np.log(x.std(0)).sum()
    assert ours["log_likelihood"] == pytest.approx(density, abs=1e-6)


def test_parts_are_compared_on_unseen_rows() -> None:
    g = np.random.default_rng(2)
    h, W = g.exponential(size=(N, 2)), g.exponential(size=(2, 8)) * (g.uniform(size=(2, 8)) < 0.6)
    x = h @ W + 0.3 * g.uniform(size=(N, 8))
    found = unseam.find(x, network=False, scale="none")
    assert found.kind == "parts"
    assert found.rivals["unseam"]["log_likelihood"] is None
    others = numpy_generator(0, "rows").permutation(N)[N // 5 :]
    fitted = fit_parts(x[others], found.count, False, 0, starts=2)
    left = (x[unseen()] - fitted.rows(fitted.amounts(x[unseen()]))) / x.std(0)
    kept = 1 - (left**2).sum() / (((x[unseen()] - x[others].mean(0)) / x.std(0)) ** 2).sum()
    assert found.rivals["unseam"]["variance_kept"] == pytest.approx(kept, abs=1e-9)


def test_a_sentence_names_the_strongest_and_numbers_stand_in_their_columns(found: Findings) -> None:
    nats = [factor.nats for factor in found.factors]
    assert nats == sorted(nats, reverse=True)
    assert "The strongest found, factor 0, moves" in found.sentence
    assert all(
        factor.agreement >= factor.bar >= max(0.9, factor.chance) and factor.chance > 0 for factor in found.factors
    )
    assert found.rivals["unseam"]["mcc"] > 0.9  # against the true factors of the same rows


def test_one_factor_is_not_known_together_with_itself() -> None:
    def sentence_of(*grades: Literal["found", "pair", "unstable"]) -> str:
        factors = [FoundFactor(i, grade, 1.0, 0.99, 0.5, ()) for i, grade in enumerate(grades)]
        return sentence(factors, "linear", Size(800, 64), knows=100)

    assert "2 known only together (their axes are not identified), 1 unstable" in sentence_of(
        "pair", "pair", "unstable"
    )
    assert "1 that comes back, but not on an axis of its own, 3 unstable" in sentence_of("pair", *["unstable"] * 3)


def test_a_network_must_surely_be_better_than_the_linear_model() -> None:
    line, noise = np.zeros(300), np.random.default_rng(0).normal(size=300)
    assert is_likelier(line + 1 + noise, line)[0]
    assert not is_likelier(line + 0.02, line)[0]  # surely better, by too little
    assert not is_likelier(line + 0.1 + 3 * noise, line)[0]  # by enough, not surely
