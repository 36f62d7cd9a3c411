"""The manifolds are what they claim: closed-form Jacobians, orthogonal columns, distinct lengths."""

import numpy as np
import pytest
import torch

from unseam import BadInput
from unseam.data.sets.manifolds import COORDINATE_SYSTEMS, Manifolds

CONFIGURATIONS = [(kind, pairs) for kind in COORDINATE_SYSTEMS for pairs in (1, 3)]


def build(kind: str, pairs: int, **more: float) -> tuple[Manifolds, torch.Tensor]:
    data = Manifolds(kind=kind, pairs=pairs, size=200, **more)
    return data, data.factors(torch.arange(200)).double()


@pytest.mark.parametrize(("kind", "pairs"), CONFIGURATIONS)
@pytest.mark.parametrize("shear", [0.0, 0.7])
def test_jacobian_equals_automatic_differentiation(kind: str, pairs: int, shear: float) -> None:
    data, w = build(kind, pairs, shear=shear)
    truth = torch.func.vmap(torch.func.jacrev(lambda one: data.function(one[None])[0]))(w[:20])
    torch.testing.assert_close(data.jacobian(w[:20]), truth, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("kind", "pairs"), CONFIGURATIONS)
def test_columns_are_orthogonal(kind: str, pairs: int) -> None:
    data, w = build(kind, pairs)
    J = data.jacobian(w)
    gram = J.mT @ J
    off = gram - torch.diag_embed(gram.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-10


@pytest.mark.parametrize(("kind", "pairs"), CONFIGURATIONS)
def test_shear_breaks_orthogonality(kind: str, pairs: int) -> None:
    data, w = build(kind, pairs, shear=0.5)
    J = torch.nn.functional.normalize(data.jacobian(w), dim=1)
    assert ((J[:, :, 0] * J[:, :, 1]).sum(1).abs() > 0.3).all()


@pytest.mark.parametrize("kind", COORDINATE_SYSTEMS)
def test_the_first_column_is_longer_by_the_ratio(kind: str) -> None:
    data, w = build(kind, 1, ratio=1.5)
    first, second = data.jacobian(w).norm(dim=1).unbind(1)
    if kind == "torus":
        assert (first / second >= 1.5).all()
    else:
        torch.testing.assert_close(first / second, torch.full_like(first, 1.5))


def test_embedding_is_an_isometry() -> None:
    data = Manifolds(dims=30, pairs=4, size=10)
    np.testing.assert_allclose(data.frame.T @ data.frame, np.eye(8), atol=1e-12)


@pytest.mark.parametrize("kind", COORDINATE_SYSTEMS)
def test_different_factors_are_different_points(kind: str) -> None:
    data, _ = build(kind, 1)
    grid = torch.cartesian_prod(torch.linspace(-3.5, 3.5, 60), torch.linspace(-3.5, 3.5, 60))
    x = data.observe(grid)
    nearest = torch.cdist(x, x).fill_diagonal_(torch.inf).min()
    assert nearest > 1e-4


def test_factors_are_standard_normal() -> None:
    w = Manifolds(size=50_000, pairs=2).factors(torch.arange(50_000))
    torch.testing.assert_close(w.T.cov(), torch.eye(4), rtol=0, atol=0.02)
    torch.testing.assert_close(w.mean(0), torch.zeros(4), rtol=0, atol=0.02)


@pytest.mark.parametrize(
    "bad", [{"kind": "polar"}, {"dims": 3, "pairs": 2}, {"ratio": 0.5}, {"spread": 0.0}, {"pairs": 0}]
)
def test_bad_parameters_are_refused(bad: dict) -> None:
    with pytest.raises(BadInput, match=next(iter(bad))):
        Manifolds(**bad)
