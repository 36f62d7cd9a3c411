"""A network in bfloat16 on a CPU: its weights and activations, without autocast. The parameters stay as they are.

The first convolution and the last transposed one have hardly any channels on one side (the picture's C), which leaves
a CPU's vectors empty. Two neighbouring columns of a picture are 2 C channels of one half as wide, in the same memory;
so both are done in pairs of columns, q = 0, 1 the place within a pair:

y_o(i, j)      = sum_c,k,l  w_oc(k, l) x_c(2i + k - 1, 2j + l - 1)          conv 4x4, stride 2, padding 1
               = sum_qc,k,m w'_o,qc(k, m) x'_qc(2i + k - 1, j + m)          conv 4x2, stride (2, 1)
w'_o,qc(k, m)  = w_oc(k, 2m + q),    x'_qc(., m) = x_c(., 2m + q - 1)       and the transposed one the same way back

The sums are those of the plain convolutions. The bias of a transposed one is added after it: oneDNN takes 7.6 ms for
the gradient of 32 biases (64 pictures of 32x32), a plain sum 0.1.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d, pad

from unseam.models.networks import Dense

_FEW = 4  # channels of a picture up to which pairs of columns are faster


def run(network: nn.Sequential, x: Tensor) -> Tensor:
    """The network's outputs in single precision."""
    x = x.bfloat16()
    for layer in network:
        x = through(layer, x)
    return x.float()


def through(layer: nn.Module, x: Tensor, bias: bool = True) -> Tensor:
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
