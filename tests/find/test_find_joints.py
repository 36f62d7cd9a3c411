"""Where the parts of `find` meet: which rows a number is of, which factor a sentence names, what rivals were told."""

import numpy as np
import pytest

import unseam
from unseam.find.cohort import likelier
from unseam.find.findings import Findings
from unseam.rng import numpy_generator
from unseam.types import Array

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
    """`variance_kept` of ours and of the rivals is that of rows that nothing was fitted on."""
    x, test = mixed[0], unseen()
    centre = np.delete(x, test, axis=0).mean(0)
    left = x[test] - found.inverse_transform(found.transform(x[test]))
    kept = 1 - (left**2).sum() / ((x[test] - centre) ** 2).sum()
    assert found.rivals["unseam"]["variance_kept"] == pytest.approx(kept, abs=1e-9)
    assert found.rivals["PCA"]["variance_kept"] == pytest.approx(kept, abs=0.01)  # as many components as we have


def test_a_sentence_names_the_strongest_and_numbers_stand_in_their_columns(found: Findings) -> None:
    nats = [factor.nats for factor in found.factors]
    assert nats == sorted(nats, reverse=True)
    assert "The strongest found, factor 0, moves" in found.sentence
    assert all(factor.agreement > 0.9 > factor.chance > 0 for factor in found.factors)
    assert found.rivals["unseam"]["mcc"] > 0.9  # against the true factors of the same rows


def test_a_network_must_surely_be_better_than_the_linear_model() -> None:
    line, noise = np.zeros(300), np.random.default_rng(0).normal(size=300)
    assert likelier(line + 1 + noise, line)[0]
    assert not likelier(line + 0.02, line)[0]  # surely better, by too little
    assert not likelier(line + 0.1 + 3 * noise, line)[0]  # by enough, not surely
