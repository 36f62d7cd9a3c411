"""Every decoder without a geometry is refused in one line that says what to do."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unseam import align, diagnose
from unseam.errors import BadInput
from unseam.geometry.decoder_checks import as_points, check_decoder
from unseam.geometry.jacobian import jacobian


class Square(torch.autograd.Function):
    """An operation that knows only how to go backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return 2 * grad * ctx.saved_tensors[0]


BAD: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "dropout": (nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5)), r"training mode with Dropout '1'; call decoder.eval"),
    "batch norm": (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), "training mode with BatchNorm1d '1'"),
    "random": (lambda z: z + torch.rand_like(z), "two answers for the same points"),
    "numpy": (lambda z: torch.as_tensor(np.sin(z.numpy())), "not differentiable"),
    "detached": (lambda z: z.detach() ** 2, "cut from the graph"),
    "rounded": (lambda z: torch.round(3 * z), "cut from the graph"),
    "integers": (lambda z: z.long(), "floating point numbers"),
    "a tuple": (lambda z: (z, z), "returns a tuple of 2"),
    "one row": (lambda z: z[:1], "must keep the batch axis"),
    "no columns": (lambda z: z.sum(1), "must keep the batch axis"),
    "NaN": (lambda z: (z - 100).log(), "NaN or infinite values at finite points"),
    "NaN slope": (lambda z: (z - z).sqrt(), "Jacobian holds NaN"),
    "other latents": (nn.Linear(5, 3), "is it a decoder of 3 latents"),
    "mixes rows": (lambda z: z - z.mean(0), "depends on the other points"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("verb", [diagnose, align])
def test_refuses(name: str, verb: Callable[..., Any]) -> None:
    decoder, said = BAD[name]
    with pytest.raises(BadInput, match=said) as caught:
        verb(decoder, torch.randn(20, 3, generator=torch.Generator().manual_seed(0)))
    assert "\n" not in str(caught.value)


def test_refuses_what_cannot_be_called() -> None:
    with pytest.raises(BadInput, match="give a function or module"):
        diagnose(3, torch.randn(5, 2))  # type: ignore[arg-type]


def test_accepts_evaluation_mode_and_constants() -> None:
    z = torch.randn(9, 3)
    assert check_decoder(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).eval(), z) == "forward"
    assert check_decoder(nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.0)), z) == "forward"
    assert check_decoder(lambda z: torch.zeros(len(z), 4), z) == "forward"


def test_falls_back_to_reverse_mode() -> None:
    """Attention has no forward derivative on this device; a custom operation may have none either."""
    z = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    assert check_decoder(Square.apply, z) == "reverse"
    torch.testing.assert_close(jacobian(Square.apply, z, mode="reverse"), torch.diag_embed(2 * z))
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    transformer = nn.Sequential(nn.Linear(3, 16), nn.Unflatten(1, (2, 8)), layer).eval()
    assert check_decoder(transformer, z) == "reverse"
    result = diagnose(transformer, z)
    assert np.isfinite(result.entanglement_cost)


def test_points_take_the_decoders_precision() -> None:
    assert as_points(np.zeros((2, 3)), nn.Linear(3, 2)).dtype == torch.float32
    assert as_points(np.zeros((2, 3)), nn.Linear(3, 2).double()).dtype == torch.float64
    assert as_points(torch.zeros(2, 3).double()).dtype == torch.float64
    assert as_points([[1, 2]]).dtype == torch.float32
    bound = nn.Linear(3, 2).double().forward
    assert as_points(np.zeros((2, 3)), bound).dtype == torch.float64


def test_codes_and_posteriors_as_people_have_them() -> None:
    """pandas, torch.distributions and (mean, log-variance) say the same as plain arrays; log-variances are named."""
    import pandas
    from torch.distributions import Independent, MultivariateNormal, Normal

    mean = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    variance = torch.full((60, 2), 0.1)
    W = torch.tensor([[3.0, 0.5], [0.0, 1.0], [1.0, 0.0]])
    known = diagnose(lambda z: z @ W.T, mean, variance)
    same = [
        (pandas.DataFrame(mean.numpy()), pandas.DataFrame(variance.numpy())),
        (Normal(mean, variance.sqrt()), None),
        (mean, Independent(Normal(mean, variance.sqrt()), 1)),
        ((mean, variance.log()), None),
        (mean, (mean.numpy(), variance.log().numpy())),
    ]
    for codes, posterior in same:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # pandas' arrays are read-only, which is not a business of the user's
            found = diagnose(lambda z: z @ W.T, codes, posterior)
        assert found.sigma_law_error == pytest.approx(known.sigma_law_error, rel=1e-4)
        assert found.entanglement_cost == pytest.approx(known.entanglement_cost, rel=1e-4)
    full = diagnose(lambda z: z @ W.T, MultivariateNormal(mean, variance.diag_embed()))
    assert full.full_posterior
    with pytest.raises(BadInput, match="look like log-variances"):
        diagnose(lambda z: z @ W.T, mean, variance.log())
