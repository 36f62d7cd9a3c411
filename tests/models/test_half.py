"""Networks in bfloat16 on the CPU: convolutions by pairs of columns are convolutions; nothing else changes."""

import pytest
import torch
from torch.func import vmap
from torch.nn.functional import conv2d, conv_transpose2d

from unseam.models import Architecture, Autoencoder, autoencoder
from unseam.models.autoencoder import conv_in_pairs, layer_in_bfloat16, transposed_in_pairs

DOUBLE = torch.float64


@pytest.mark.parametrize("channels", [1, 3])
def test_a_convolution_in_pairs_is_the_convolution_and_so_is_its_gradient(channels: int) -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(2, channels, 6, 8).double(), torch.randn(5, channels, 4, 4).double(), torch.randn(5).double()
    mine, plain = (
        torch.func.vjp(f, x, w, b) for f in (conv_in_pairs, lambda x, w, b: conv2d(x, w, b, 2, 1))
    )  # fmt: skip
    torch.testing.assert_close(mine[0], plain[0])
    g = torch.randn_like(plain[0])
    for a, c in zip(mine[1](g), plain[1](g), strict=True):
        torch.testing.assert_close(a, c)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_transposed_one_in_pairs_too(channels: int) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(2, 5, 3, 4).double(), torch.randn(5, channels, 4, 4).double()
    mine, plain = (
        torch.func.vjp(f, x, w) for f in (transposed_in_pairs, lambda x, w: conv_transpose2d(x, w, None, 2, 1))
    )
    torch.testing.assert_close(mine[0], plain[0])
    g = torch.randn_like(plain[0])
    for a, c in zip(mine[1](g), plain[1](g), strict=True):
        torch.testing.assert_close(a, c)


@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 20, 28)])
@pytest.mark.parametrize("small", [False, True])
def test_layer_by_layer_it_is_the_network(shape: tuple[int, ...], small: bool) -> None:
    """In double precision, where rounding hides nothing."""
    model = Architecture(latents=4, small_kernels=small, network="conv").for_data(shape, "bernoulli").build(shape, 0)
    model.double()
    for network, given in (
        (model.encoder, torch.rand(2, *shape, dtype=DOUBLE)),
        (model.decoder, torch.randn(2, 4).double()),
    ):
        x = given
        for layer in network:  # type: ignore[attr-defined]
            x = layer_in_bfloat16(layer, x)
        torch.testing.assert_close(x, network(given))


def gradient(model: Autoencoder, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """Of all parameters, as one vector."""
    model.zero_grad()
    model(x, noise)[2].square().sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def test_outputs_are_single_and_gradients_are_no_rougher_than_those_of_autocast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = (1, 32, 32)
    model = Architecture(latents=4).for_data(shape, "bernoulli").build(shape, 0)
    x, noise = torch.rand(8, *shape), torch.randn(8, 4)
    single, exact = model(x, noise)[2], gradient(model, x, noise)
    model.bfloat16_networks = True
    theta, mine = model(x, noise)[2], gradient(model, x, noise)
    assert (theta.dtype, mine.dtype) == (torch.float32, torch.float32)
    torch.testing.assert_close(theta, single, atol=0.02 * float(single.detach().abs().max()), rtol=0)

    def autocast(network: torch.nn.Sequential, given: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return network(given).float()

    monkeypatch.setattr(autoencoder, "run_in_bfloat16", autocast)
    theirs = gradient(model, x, noise)
    assert 0 < float((mine - exact).norm()) < 1.5 * float((theirs - exact).norm())


def test_members_of_a_stack_get_what_they_get_alone() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(3, 2, 1, 8, 8), torch.randn(3, 5, 1, 4, 4)
    y = vmap(conv_in_pairs)(x, w)
    torch.testing.assert_close(y, torch.stack([conv2d(a, b, None, 2, 1) for a, b in zip(x, w, strict=True)]))
    back = vmap(transposed_in_pairs)(y, w)
    alone = [conv_transpose2d(a, b, None, 2, 1) for a, b in zip(y, w, strict=True)]
    torch.testing.assert_close(back, torch.stack(alone), rtol=1e-5, atol=1e-5)
