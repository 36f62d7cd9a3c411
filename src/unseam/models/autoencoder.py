"""The model of one member: x -> q(z|x) -> z -> theta -> log p(x|z)."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d, pad

from unseam.errors import BadInput, lookup, unknown
from unseam.models.architecture import Architecture
from unseam.models.likelihood import LIKELIHOODS, Gaussian, Likelihood
from unseam.models.mixed_likelihood import Mixed
from unseam.models.own_networks import NetworkPair, wrapped
from unseam.models.posterior import POSTERIORS, Point, Posterior, Rotated

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
    "softplus": nn.Softplus,
}


class Dense(nn.Module):
    """x W + b with torch's default initialisation. W is (inputs, outputs), so that a stack of them is one baddbmm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:  # (B, inputs) -> (B, outputs)
        return torch.addmm(self.bias, x, self.weight)


def dense_layers(sizes: tuple[int, ...], activation: str) -> list[nn.Module]:
    """Dense layers with the activation between them, none after the last."""
    act = lookup(ACTIVATIONS, activation, "activation")
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Dense(inputs, outputs), act()]
    return layers[:-1]


def mlp_encoder(shape: tuple[int, ...], hidden: tuple[int, ...], outputs: int, activation: str) -> nn.Module:
    return nn.Sequential(nn.Flatten(), *dense_layers((math.prod(shape), *hidden, outputs), activation))


def mlp_decoder(shape: tuple[int, ...], hidden: tuple[int, ...], latents: int, activation: str) -> nn.Module:
    layers = dense_layers((latents, *hidden, math.prod(shape)), activation)
    return nn.Sequential(*layers, nn.Unflatten(1, shape))


class ChannelsLast(nn.Module):
    """The memory layout in which CPU convolutions are fastest; the values are the same."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # vmap knows permute, not memory formats


def conv_encoder(shape: tuple[int, ...], outputs: int, small: bool = False) -> nn.Module:
    """4x4 stride-2 convolutions 32-32-64-64, FC 256 (Burgess 2018); small: 2x2 in the last two (Locatello 2019)."""
    channels, rows, columns = conv_grid(shape)
    right, below = 16 * columns - shape[2], 16 * rows - shape[1]
    layers: list[nn.Module] = [*([nn.ZeroPad2d((0, right, 0, below))] if right or below else []), ChannelsLast()]
    sizes = (4, 4, 2, 2) if small else (4, 4, 4, 4)
    for inputs, width, k in zip((channels, 32, 32, 64), (32, 32, 64, 64), sizes, strict=True):
        layers += [nn.Conv2d(inputs, width, k, 2, k // 2 - 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), *dense_layers((64 * rows * columns, 256, outputs), "relu"))


def conv_decoder(shape: tuple[int, ...], latents: int) -> nn.Module:
    """FC 256, then 4x4 stride-2 transposed convolutions 64-32-32-C: the encoder's mirror image."""
    channels, rows, columns = conv_grid(shape)
    layers = [*dense_layers((latents, 256, 64 * rows * columns), "relu"), nn.ReLU()]
    layers += [nn.Unflatten(1, (64, rows, columns)), ChannelsLast()]
    for inputs, width in zip((64, 64, 32, 32), (64, 32, 32, channels), strict=True):
        layers += [nn.ConvTranspose2d(inputs, width, 4, 2, 1), nn.ReLU()]
    whole = (16 * rows, 16 * columns) == shape[1:]
    return nn.Sequential(*layers[:-1], *([] if whole else [Crop(shape[1], shape[2])]))


class Crop(nn.Module):
    """The first rows and columns: what lies beyond them was padding."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns

    def forward(self, x: Tensor) -> Tensor:  # (B, C, H', W') -> (B, C, H, W)
        return x[..., : self.rows, : self.columns]


def conv_grid(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(C, H/16, W/16), rounded up (the network pads below and to the right); an error where these are not images.

    >>> conv_grid((1, 28, 28))
    (1, 2, 2)
    """
    if len(shape) != 3 or 0 in shape:
        raise BadInput(f"network='conv' needs images (C, H, W), the data has shape {shape}; use --network mlp")
    return shape[0], -(-shape[1] // 16), -(-shape[2] // 16)


def _likelihood_of(a: Architecture) -> Likelihood:
    if a.likelihood == "mixed":
        return Mixed(a.columns, a.s2)
    gaussian = a.likelihood in ("auto", "gaussian")
    return Gaussian(a.s2, a.learned_s2) if gaussian else LIKELIHOODS[a.likelihood]()


class Autoencoder(nn.Module):
    """One model: encoder, decoder and likelihood.

    Parameters
    ----------
    architecture : Architecture
        Its networks, latents, posterior and likelihood.
    shape : tuple of int
        The shape of one observation.
    networks : (encoder, decoder), optional
        The user's own modules in place of ours.

    Examples
    --------
    >>> model = Autoencoder(Architecture("mlp", 2, likelihood="gaussian"), (5,))
    >>> model.encode(torch.zeros(3, 5)).mean.shape, model.decode(torch.zeros(3, 2)).shape
    (torch.Size([3, 2]), torch.Size([3, 5]))
    """

    def __init__(self, architecture: Architecture, shape: tuple[int, ...], networks: NetworkPair | None = None) -> None:
        super().__init__()
        a, k = architecture, architecture.latents
        self.architecture, self.shape, self.latents = a, shape, k
        if a.posterior not in POSTERIORS:
            raise unknown("posterior", a.posterior, POSTERIORS)
        self.family = POSTERIORS[a.posterior]
        outputs = self.family.outputs(k)
        if networks is not None:
            self.encoder, self.decoder = wrapped(networks, outputs, k, shape)
        elif a.network == "conv":
            self.encoder, self.decoder = conv_encoder(shape, outputs, a.small_kernels), conv_decoder(shape, k)
        else:
            hidden = ((), ()) if a.network == "linear" else (a.encoder, a.decoder)
            self.encoder = mlp_encoder(shape, hidden[0], outputs, a.encoder_activation)
            self.decoder = mlp_decoder(shape, hidden[1], k, a.decoder_activation)
        own = self.family.parameters(k, a.levels)
        self.own = tuple(own)
        for name, value in own.items():
            self.register_parameter(name, nn.Parameter(value))
        if a.aligned:  # z' = (z - shift) axes; the decoder's first layer takes z' already
            self.register_buffer("aligned_axes", torch.eye(k, dtype=torch.float64, device="cpu"))
            self.register_buffer("aligned_shift", torch.zeros(k, dtype=torch.float64, device="cpu"))
        self.bfloat16_networks = False  # run the networks, not the likelihood, in bfloat16
        self.likelihood: Likelihood = _likelihood_of(a)

    def encode(self, x: Tensor) -> Posterior:  # (B, *shape) -> q(z|x)
        """The posterior q(z|x) of each row."""

        if not isinstance(x, Tensor):
            raise BadInput(
                f"x is a {type(x).__name__}; a model takes torch tensors, `run.encode` also NumPy and pandas"
            )
        own = {name: getattr(self, name) for name in self.own}
        q = self.family.from_outputs(self.run(self.encoder, self.likelihood.inputs(x)), self.latents, **own)
        return q if not self.architecture.aligned else self._in_new_axes(q)

    def _in_new_axes(self, q: Posterior) -> Posterior:
        """N(m, S) -> N((m - shift) A, A^T S A)."""
        A, shift = self.get_buffer("aligned_axes").to(q.mean), self.get_buffer("aligned_shift").to(q.mean)
        mean = (q.mean - shift) @ A
        return Rotated(mean, A.T @ q.covariance() @ A) if q.has_prior else Point(mean)

    def decode(self, z: Tensor) -> Tensor:  # (B, K) -> theta (B, *shape)
        """The parameters theta of the likelihood, of the shape of the data."""

        if self.architecture.aligned and self.architecture.network == "own":  # ours have it in their first layer
            axes, shift = (self.get_buffer(name) for name in ("aligned_axes", "aligned_shift"))
            z = z @ torch.linalg.inv(axes).to(z) + shift.to(z)
        return self.run(self.decoder, z)

    def run(self, network: nn.Module, inputs: Tensor) -> Tensor:
        """A network of this member (its own, a critic) in the precision of its networks."""
        if not self.bfloat16_networks:
            outputs: Tensor = network(inputs)
            return outputs
        if inputs.device.type == "cpu" and isinstance(network, nn.Sequential):
            return run_in_bfloat16(network, inputs)
        with torch.autocast(inputs.device.type, torch.bfloat16):
            outputs = network(inputs)
        return outputs.float()

    def mean(self, z: Tensor) -> Tensor:
        """xhat = E[x|z] (B, *shape)."""
        return self.likelihood.mean(self.decode(z))

    def forward(self, x: Tensor, noise: Tensor | None = None) -> tuple[Posterior, Tensor, Tensor]:
        """q(z|x), z and theta, with this noise; without noise, z is the mean."""
        posterior = self.encode(x)
        z = posterior.mean if noise is None else posterior.sample(noise)
        return posterior, z, self.decode(z)


# A network in bfloat16 on a CPU: its weights and activations, without autocast. The parameters stay as they are.
#
# The first convolution and the last transposed one have hardly any channels on one side (the picture's C), which leaves
# a CPU's vectors empty. Two neighbouring columns of a picture are 2 C channels of one half as wide, in the same memory;
# so both are done in pairs of columns, q = 0, 1 the place within a pair:
#
# y_o(i, j)      = sum_c,k,l  w_oc(k, l) x_c(2i + k - 1, 2j + l - 1)          conv 4x4, stride 2, padding 1
#                = sum_qc,k,m w'_o,qc(k, m) x'_qc(2i + k - 1, j + m)          conv 4x2, stride (2, 1)
# w'_o,qc(k, m)  = w_oc(k, 2m + q),    x'_qc(., m) = x_c(., 2m + q - 1)       and the transposed one the same way back
#
# The sums are those of the plain convolutions. The bias of a transposed one is added after it: oneDNN takes 7.6 ms for
# the gradient of 32 biases (64 pictures of 32x32), a plain sum 0.1.


_FEW = 4  # channels of a picture up to which pairs of columns are faster


def run_in_bfloat16(network: nn.Sequential, x: Tensor) -> Tensor:
    """The network's outputs in single precision."""
    x = x.bfloat16()
    for layer in network:
        x = layer_in_bfloat16(layer, x)
    return x.float()


def layer_in_bfloat16(layer: nn.Module, x: Tensor, bias: bool = True) -> Tensor:
    """One layer, with its parameters in the type of x; without its bias it maps tangents."""
    if not isinstance(layer, (Dense, nn.Conv2d, nn.ConvTranspose2d)):
        moved: Tensor = layer(x)
        return moved
    w, b = layer.weight.to(x), layer.bias.to(x) if bias else None  # type: ignore[union-attr]
    if isinstance(layer, Dense):
        return x @ w if b is None else torch.addmm(b, x, w)
    if isinstance(layer, nn.Conv2d):
        few = layer.in_channels <= _FEW and layer.kernel_size == (4, 4)
        return conv_in_pairs(x, w, b) if few else conv2d(x, w, b, layer.stride, layer.padding)
    y = transposed_in_pairs(x, w) if layer.out_channels <= _FEW else conv_transpose2d(x, w, None, 2, 1)
    return y if b is None else y + b.view(-1, 1, 1)


def conv_in_pairs(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """conv2d(x, w, b, stride=2, padding=1) by columns in pairs: (B, C, H, W), (O, C, 4, 4) -> (B, O, H/2, W/2)."""
    rows = pad(x.permute(0, 2, 3, 1), (0, 0, 1, 1, 1, 1))  # (B, H + 2, W + 2, C)
    pairs = rows.unflatten(2, (-1, 2)).flatten(3)  # (B, H + 2, W/2 + 1, 2 C)
    return conv2d(pairs.permute(0, 3, 1, 2), _paired(w), b, (2, 1))


def transposed_in_pairs(x: Tensor, w: Tensor) -> Tensor:
    """conv_transpose2d(x, w, stride=2, padding=1) by columns in pairs: (B, C, H, W), (C, O, 4, 4) -> (B, O, 2H, 2W)."""
    pairs = conv_transpose2d(x, _paired(w), None, (2, 1), (1, 0)).permute(0, 2, 3, 1)  # (B, 2H, W + 1, 2 O)
    columns = pairs.unflatten(3, (2, -1)).flatten(2, 3)[:, :, 1:-1]  # (B, 2H, 2W, O)
    return columns.permute(0, 3, 1, 2)


def _paired(w: Tensor) -> Tensor:  # (O, C, 4, 4) -> (O, 2 C, 4, 2)
    """w'_o,qc(k, m) = w_oc(k, 2m + q)."""
    return w.unflatten(3, (2, 2)).movedim(4, 1).flatten(1, 2)
