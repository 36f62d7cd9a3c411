"""DtO against brute force and SciPy's integer program; cosines and IMA contrast against their definitions."""

from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.stats import ortho_group

from unseam.errors import BadInput
from unseam.geometry.orthogonality import (
    HAAR_TABLE,
    cosines,
    distances,
    dto,
    haar,
    ima_contrast,
    nearest_permutation,
    sampled_haar,
    select,
)


def signed_permutations(d: int) -> np.ndarray:
    signs = np.array(list(product([-1, 1], repeat=d)))
    return np.concatenate([np.eye(d)[list(p)][None] * signs[:, None, :] for p in permutations(range(d))])


def milp_distance(V: np.ndarray) -> float:
    """The thesis' program: binary B+, B- with one entry per row and column, minimising |V - (B+ - B-)|_1."""
    d = len(V)
    cost = np.concatenate([np.abs(V - 1) - np.abs(V), np.abs(V + 1) - np.abs(V)]).ravel()
    rows = np.kron(np.eye(d), np.ones(d))
    columns = np.kron(np.ones(d), np.eye(d))
    once = LinearConstraint(np.block([[rows, rows], [columns, columns]]), 1, 1)
    found = milp(cost, constraints=once, integrality=np.ones(2 * d * d), bounds=Bounds(0, 1)).x.round()
    P = found[: d * d].reshape(d, d) - found[d * d :].reshape(d, d)
    return float(np.linalg.norm(V - P))


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_dto_against_brute_force(d: int) -> None:
    V = ortho_group.rvs(d, size=12, random_state=d)
    candidates = signed_permutations(d)
    for one, distance in zip(V, distances(V), strict=True):
        best = candidates[np.abs(one - candidates).sum((1, 2)).argmin()]  # nearest in L1, as the thesis has it
        assert distance == pytest.approx(np.linalg.norm(one - best), abs=1e-12)


@pytest.mark.parametrize("d", [3, 6, 10])
def test_dto_against_the_integer_program(d: int) -> None:
    V = ortho_group.rvs(d, size=8, random_state=d)
    np.testing.assert_allclose(distances(V), [milp_distance(one) for one in V], atol=1e-9)


@given(seed=st.integers(0, 10_000), d=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_dto_does_not_see_signs_and_order(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    V = ortho_group.rvs(d, random_state=seed)
    P = np.eye(d)[rng.permutation(d)] * rng.choice([-1, 1], d)
    assert distances((V @ P)[None])[0] == pytest.approx(distances(V[None])[0], abs=1e-9)
    assert distances((P @ V)[None])[0] == pytest.approx(distances(V[None])[0], abs=1e-9)
    assert distances(P[None])[0] == 0


def test_haar_baseline() -> None:
    """d = 2 in closed form; the table is what its own script draws, here at fewer draws with another seed."""
    assert haar(1) == (0.0, 0.0)
    assert haar(2)[0] == pytest.approx(32 * np.sqrt(2) / np.pi * np.sin(np.pi / 16) ** 2, abs=1e-12)
    assert sorted(HAAR_TABLE) == list(range(3, 65))
    for d, draws in ((2, 20_000), (3, 20_000), (6, 8_000), (10, 4_000), (31, 300), (64, 60)):
        mean, std = sampled_haar(d, draws, seed=1)
        assert haar(d)[0] == pytest.approx(mean, abs=4 * std / np.sqrt(draws))
        assert haar(d)[1] == pytest.approx(std, rel=4 / np.sqrt(2 * draws))
    assert haar(65)[0] > haar(64)[0]


def test_dto_of_jacobians_and_active_latents() -> None:
    """A dead column makes V arbitrary there; without it the rest is what counts."""
    W = np.diag([3.0, 2.0, 1e-9])
    turn = np.eye(3)
    turn[:2, :2] = [[0.8, -0.6], [0.6, 0.8]]
    gram = torch.as_tensor(turn.T @ W.T @ W @ turn)[None]
    expected = float(distances(turn[None, :2, :2])[0])
    assert dto(gram, np.array([True, True, False])) == pytest.approx(expected, abs=1e-9)
    assert dto(gram, np.array([False, False, False])) == 0.0
    assert select(gram, np.array([True, False, True])).shape == (1, 2, 2)


def test_cosines_and_ima_contrast_by_definition() -> None:
    J = torch.randn(30, 8, 4, generator=torch.Generator().manual_seed(0)).double()
    gram = J.mT @ J
    unit = J / J.norm(dim=1, keepdim=True)
    torch.testing.assert_close(cosines(gram), unit.mT @ unit)
    contrast = J.norm(dim=1).log().sum(1) - 0.5 * torch.logdet(gram)
    torch.testing.assert_close(ima_contrast(gram), contrast)
    assert (contrast > 0).all()
    scaled = J * torch.tensor([1.0, 5.0, 0.2, 3.0]).double()
    torch.testing.assert_close(ima_contrast(scaled.mT @ scaled), contrast)  # lengths do not matter


def test_dead_and_parallel_columns_are_named_numbers_not_nan() -> None:
    dead = torch.diag(torch.tensor([4.0, 1.0, 0.0]))
    assert ima_contrast(dead).item() == 0
    parallel = torch.ones(2, 2)
    assert ima_contrast(parallel).item() == torch.inf


@pytest.mark.parametrize("n", [1, 2, 3])
def test_dependent_columns_have_an_infinite_contrast(n: int) -> None:
    """K = 3 columns in R^n: rounding must not make a finite number of log 0 (review, B12)."""
    J = torch.randn(50, n, 3, generator=torch.Generator().manual_seed(n)).double()
    assert torch.isinf(ima_contrast(J.mT @ J)).all() == (n < 3)


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="one square matrix per point"):
        nearest_permutation(np.zeros((3, 2)))
    with pytest.raises(BadInput, match="NaN or infinite"):
        nearest_permutation(np.full((1, 2, 2), np.nan))
