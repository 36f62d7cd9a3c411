"""Each tensor operator of a training step as a jnp expression: the one table that the XLA engine knows (xla.py).

Names and arguments are those of torch's own operators (ATen). An operator that is not here makes the step fall back
to the written-out engine; to add one is to add its line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any

import torch

_ATEN = torch.ops.aten


@cache
def operators() -> dict[Any, Callable[..., Any]]:
    """ATen operator -> the same function of JAX arrays."""
    from jax import lax, nn
    from jax import numpy as jnp
    from jax.scipy import special

    def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
        return jnp.clip(x, low, high)

    def power(x: Any, exponent: float) -> Any:
        if float(exponent).is_integer():
            return lax.integer_pow(x, int(exponent))
        return {0.5: jnp.sqrt, -0.5: lax.rsqrt}.get(exponent, lambda x: jnp.power(x, exponent))(x)

    def to_copy(x: Any, dtype: Any = None, **_: Any) -> Any:
        return x if dtype is None else x.astype(_name(dtype))

    def axes(x: Any, dims: Any) -> Any:
        return None if dims is None or (isinstance(dims, (list, tuple)) and not dims) else _tuple(dims)

    def total(x: Any, dims: Any = None, keep: bool = False, **_: Any) -> Any:
        return jnp.sum(x, axes(x, dims), keepdims=keep)

    def mean(x: Any, dims: Any = None, keep: bool = False, **_: Any) -> Any:
        return jnp.mean(x, axes(x, dims), keepdims=keep)

    def variance(x: Any, dims: Any = None, correction: int = 1, keepdim: bool = False) -> Any:
        return jnp.var(x, axes(x, dims), ddof=correction, keepdims=keepdim)

    def norm(x: Any, order: float = 2, dims: Any = None, keep: bool = False, **_: Any) -> Any:
        return jnp.sum(jnp.abs(x) ** order, axes(x, dims), keepdims=keep) ** (1 / order)

    def expand(x: Any, sizes: Any, **_: Any) -> Any:
        known = (1,) * (len(sizes) - x.ndim) + x.shape
        return jnp.broadcast_to(x, [have if size == -1 else size for size, have in zip(sizes, known, strict=True)])

    def squeeze(x: Any, dims: Any = None) -> Any:
        dims = range(x.ndim) if dims is None else _tuple(dims)
        return jnp.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))

    def part(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
        return x[_at(x.ndim, dim, slice(start, end, step))]

    def part_back(gradient: Any, sizes: Any, dim: int, start: int, end: int, step: int) -> Any:
        return jnp.zeros(sizes, gradient.dtype).at[_at(len(sizes), dim, slice(start, end, step))].set(gradient)

    def select(x: Any, dim: int, index: int) -> Any:
        return x[_at(x.ndim, dim, index)]

    def select_back(gradient: Any, sizes: Any, dim: int, index: int) -> Any:
        return jnp.zeros(sizes, gradient.dtype).at[_at(len(sizes), dim, index)].set(gradient)

    def split(x: Any, size: int, dim: int = 0) -> Any:
        return jnp.split(x, list(range(size, x.shape[dim], size)), dim)

    def split_with_sizes(x: Any, sizes: Any, dim: int = 0) -> Any:
        return jnp.split(x, list(accumulate(sizes))[:-1], dim)

    def unbind(x: Any, dim: int = 0) -> Any:
        return [select(x, dim, i) for i in range(x.shape[dim])]

    def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
        return jnp.diagonal(x, offset, dim1, dim2)

    def diagonal_back(gradient: Any, sizes: Any, offset: int, dim1: int, dim2: int) -> Any:
        x = jnp.moveaxis(jnp.zeros(sizes, gradient.dtype), (dim1, dim2), (-2, -1))
        i = jnp.arange(gradient.shape[-1])
        filled = x.at[..., i + max(-offset, 0), i + max(offset, 0)].set(gradient)
        return jnp.moveaxis(filled, (-2, -1), (dim1, dim2))

    def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
        size, rank = x.shape[-1] + abs(offset), x.ndim + 1
        sizes = list(x.shape[:-1])
        for dim in sorted((dim1 % rank, dim2 % rank)):
            sizes.insert(dim, size)
        return diagonal_back(x, sizes, offset, dim1 % rank, dim2 % rank)

    def gather(x: Any, dim: int, index: Any, **_: Any) -> Any:
        return x[_grid(jnp, dim, index)]

    def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
        return x.at[_grid(jnp, dim, index)].add(source[tuple(map(slice, index.shape))])

    def index_at(x: Any, indices: Any) -> Any:
        return x[tuple(slice(None) if i is None else i for i in indices)]

    def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
        place = x.at[tuple(slice(None) if i is None else i for i in indices)]
        return place.add(values) if accumulate else place.set(values)

    def sort(x: Any, dim: int = -1, descending: bool = False) -> Any:
        order = jnp.argsort(x, axis=dim, stable=True, descending=descending)
        return jnp.take_along_axis(x, order, dim), order

    def arg(function: Any) -> Callable[..., Any]:
        return lambda x, dim=None, keep=False: function(x, dim, keepdims=keep)

    def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
        return jnp.where(x * beta > threshold, x, jnp.log1p(jnp.exp(jnp.minimum(x * beta, threshold))) / beta)

    def softplus_back(gradient: Any, x: Any, beta: float, threshold: float) -> Any:
        return jnp.where(x * beta > threshold, gradient, gradient * nn.sigmoid(x * beta))

    def leaky_back(gradient: Any, x: Any, slope: float, _: bool) -> Any:
        return jnp.where(x > 0, gradient, gradient * slope)

    def elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
        return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0) * input_scale))

    def elu_back(gradient: Any, alpha: float, scale: float, input_scale: float, is_result: bool, x: Any) -> Any:
        below = x + alpha * scale if is_result else input_scale * alpha * scale * jnp.exp(jnp.minimum(x, 0))
        return gradient * jnp.where(x > 0, scale, below)

    def log_softmax_back(gradient: Any, result: Any, dim: int, *_: Any) -> Any:
        return gradient - jnp.exp(result) * jnp.sum(gradient, dim, keepdims=True)

    def softmax_back(gradient: Any, result: Any, dim: int, *_: Any) -> Any:
        return result * (gradient - jnp.sum(gradient * result, dim, keepdims=True))

    def polygamma(n: int, x: Any) -> Any:
        return special.digamma(x) if n == 0 else special.polygamma(n, x)

    def slogdet(x: Any) -> Any:
        """Sign, logarithm, and what `lu_solve` needs: the factors and the rows' permutation (for torch's pivots)."""
        factors, _, order = lax.linalg.lu(x)
        diagonal_of = jnp.diagonal(factors, 0, -2, -1)
        odd = _odd(jnp, order)
        sign = jnp.prod(jnp.sign(diagonal_of), -1) * jnp.where(odd, -1.0, 1.0).astype(x.dtype)
        return sign, jnp.sum(jnp.log(jnp.abs(diagonal_of)), -1), factors, order

    def lu_solve(factors: Any, order: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
        if not left:  # X A = B is A' X' = B'
            swapped = lu_solve(factors, order, jnp.swapaxes(b, -1, -2), left=True, adjoint=not adjoint)
            return jnp.swapaxes(swapped, -1, -2)
        solve = lax.linalg.triangular_solve
        if not adjoint:  # P A = L U
            b = jnp.take_along_axis(b, order[..., None], -2)
            b = solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
            return solve(factors, b, left_side=True, lower=False)
        b = solve(factors, b, left_side=True, lower=False, transpose_a=True)
        b = solve(factors, b, left_side=True, lower=True, unit_diagonal=True, transpose_a=True)
        return jnp.take_along_axis(b, jnp.argsort(order, -1)[..., None], -2)

    def baddbmm(x: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Any:
        return beta * x + alpha * (a @ b)

    def binary(function: Any) -> Callable[..., Any]:
        """With torch's `alpha`: x + alpha y."""
        return lambda x, y, alpha=1: function(x, y if alpha == 1 else alpha * y)

    def promoted(function: Any) -> Callable[..., Any]:
        """Integers become float32 beside a float and in a quotient: torch's default, not JAX's."""

        def of(x: Any, y: Any, **more: Any) -> Any:
            whole = jnp.issubdtype(jnp.result_type(x), jnp.integer) and hasattr(x, "dtype")
            return function(x.astype("float32") if whole and (isinstance(y, float) or divides) else x, y, **more)

        divides = function is jnp.divide
        return of

    same = lambda x, *_, **__: x  # noqa: E731
    add, subtract = promoted(binary(jnp.add)), promoted(binary(jnp.subtract))
    multiply, divide = promoted(jnp.multiply), promoted(jnp.divide)
    return {
        # shapes
        _ATEN.view.default: lambda x, sizes: jnp.reshape(x, sizes),
        _ATEN._unsafe_view.default: lambda x, sizes: jnp.reshape(x, sizes),
        _ATEN.reshape.default: lambda x, sizes: jnp.reshape(x, sizes),
        _ATEN.expand.default: expand, _ATEN.squeeze.dim: squeeze, _ATEN.squeeze.dims: squeeze,
        _ATEN.squeeze.default: squeeze,
        _ATEN.unsqueeze.default: lambda x, dim: jnp.expand_dims(x, dim),
        _ATEN.transpose.int: lambda x, a, b: jnp.swapaxes(x, a, b), _ATEN.t.default: jnp.transpose,
        _ATEN.permute.default: lambda x, dims: jnp.transpose(x, dims),
        _ATEN.slice.Tensor: part, _ATEN.slice_backward.default: part_back, _ATEN.select.int: select,
        _ATEN.select_backward.default: select_back, _ATEN.split.Tensor: split, _ATEN.unbind.int: unbind,
        _ATEN.split_with_sizes.default: split_with_sizes,
        _ATEN.cat.default: lambda xs, dim=0: jnp.concatenate(xs, dim),
        _ATEN.stack.default: lambda xs, dim=0: jnp.stack(xs, dim),
        _ATEN.diagonal.default: diagonal, _ATEN.diagonal_backward.default: diagonal_back,
        _ATEN.diag_embed.default: diag_embed,
        _ATEN.roll.default: lambda x, by, dims=None: jnp.roll(x, tuple(_tuple(by)), axes(x, dims)),
        _ATEN.repeat.default: lambda x, times: jnp.tile(x, times),
        _ATEN.flip.default: lambda x, dims: jnp.flip(x, dims),
        _ATEN.gather.default: gather, _ATEN.scatter_add.default: scatter_add, _ATEN.index.Tensor: index_at,
        _ATEN.index_put.default: index_put, _ATEN.sort.default: sort,
        _ATEN.tril.default: lambda x, k=0: jnp.tril(x, k), _ATEN.triu.default: lambda x, k=0: jnp.triu(x, k),
        # copies and constants
        _ATEN._to_copy.default: to_copy, _ATEN.clone.default: same, _ATEN.detach.default: same,
        _ATEN.alias.default: same,
        _ATEN.lift_fresh_copy.default: same, _ATEN.contiguous.default: same,
        _ATEN.copy.default: lambda x, y, *_: jnp.broadcast_to(y, x.shape).astype(x.dtype),
        # sums
        _ATEN.sum.dim_IntList: total, _ATEN.sum.default: total, _ATEN.mean.dim: mean, _ATEN.mean.default: mean,
        _ATEN.var.correction: variance, _ATEN.linalg_vector_norm.default: norm,
        _ATEN.std.correction: lambda x, dims=None, **k: jnp.sqrt(variance(x, dims, **k)),
        _ATEN.amin.default: lambda x, dims=(), keep=False: jnp.min(x, axes(x, dims), keepdims=keep),
        _ATEN.amax.default: lambda x, dims=(), keep=False: jnp.max(x, axes(x, dims), keepdims=keep),
        _ATEN.argmin.default: arg(jnp.argmin), _ATEN.argmax.default: arg(jnp.argmax),
        _ATEN.logsumexp.default: lambda x, dims, keep=False: special.logsumexp(x, axes(x, dims), keepdims=keep),
        _ATEN.prod.dim_int: lambda x, dim, keep=False, **_: jnp.prod(x, dim, keepdims=keep),
        _ATEN.cumsum.default: lambda x, dim, **_: jnp.cumsum(x, dim),
        # products
        _ATEN.bmm.default: jnp.matmul, _ATEN.mm.default: jnp.matmul, _ATEN.mv.default: jnp.matmul,
        _ATEN.dot.default: jnp.dot,
        _ATEN.addmm.default: baddbmm, _ATEN.baddbmm.default: baddbmm,
        _ATEN._linalg_slogdet.default: slogdet, _ATEN.linalg_lu_solve.default: lu_solve,
        # of two
        _ATEN.add.Tensor: add, _ATEN.add.Scalar: add, _ATEN.sub.Tensor: subtract, _ATEN.sub.Scalar: subtract,
        _ATEN.rsub.Scalar: lambda x, y, alpha=1: y - alpha * x, _ATEN.mul.Tensor: multiply,
        _ATEN.mul.Scalar: multiply,
        _ATEN.div.Tensor: divide, _ATEN.div.Scalar: divide, _ATEN.pow.Tensor_Scalar: power,
        _ATEN.pow.Tensor_Tensor: jnp.power, _ATEN.maximum.default: jnp.maximum, _ATEN.minimum.default: jnp.minimum,
        _ATEN.logaddexp.default: jnp.logaddexp, _ATEN.where.self: jnp.where, _ATEN.clamp.default: clamp,
        _ATEN.clamp_min.default: jnp.maximum, _ATEN.clamp_max.default: jnp.minimum,
        _ATEN.eq.Tensor: jnp.equal, _ATEN.eq.Scalar: jnp.equal, _ATEN.ne.Tensor: jnp.not_equal,
        _ATEN.ne.Scalar: jnp.not_equal,
        _ATEN.lt.Tensor: jnp.less, _ATEN.lt.Scalar: jnp.less, _ATEN.le.Tensor: jnp.less_equal,
        _ATEN.le.Scalar: jnp.less_equal,
        _ATEN.gt.Tensor: jnp.greater, _ATEN.gt.Scalar: jnp.greater, _ATEN.ge.Tensor: jnp.greater_equal,
        _ATEN.ge.Scalar: jnp.greater_equal, _ATEN.logical_and.default: jnp.logical_and,
        _ATEN.bitwise_and.Tensor: jnp.bitwise_and,
        _ATEN.logical_or.default: jnp.logical_or, _ATEN.bitwise_or.Tensor: jnp.bitwise_or,
        _ATEN.masked_fill.Scalar: lambda x, mask, value: jnp.where(mask, value, x),
        # of one
        _ATEN.neg.default: jnp.negative, _ATEN.abs.default: jnp.abs, _ATEN.exp.default: jnp.exp,
        _ATEN.log.default: jnp.log,
        _ATEN.log1p.default: jnp.log1p, _ATEN.expm1.default: jnp.expm1, _ATEN.sqrt.default: jnp.sqrt,
        _ATEN.rsqrt.default: lax.rsqrt,
        _ATEN.reciprocal.default: jnp.reciprocal, _ATEN.sign.default: jnp.sign, _ATEN.sgn.default: jnp.sign,
        _ATEN.tanh.default: jnp.tanh, _ATEN.sigmoid.default: nn.sigmoid, _ATEN.erf.default: special.erf,
        _ATEN.sin.default: jnp.sin, _ATEN.cos.default: jnp.cos, _ATEN.square.default: jnp.square,
        _ATEN.floor.default: jnp.floor,
        _ATEN.round.default: jnp.round, _ATEN.logical_not.default: jnp.logical_not, _ATEN.isnan.default: jnp.isnan,
        _ATEN.lgamma.default: special.gammaln, _ATEN.digamma.default: special.digamma,
        _ATEN.polygamma.default: polygamma,
        _ATEN.relu.default: lambda x: jnp.maximum(x, 0), _ATEN.elu.default: elu, _ATEN.softplus.default: softplus,
        _ATEN.leaky_relu.default: lambda x, slope=0.01: jnp.where(x > 0, x, slope * x),
        _ATEN._log_softmax.default: lambda x, dim, *_: nn.log_softmax(x, dim),
        _ATEN._softmax.default: lambda x, dim, *_: nn.softmax(x, dim),
        _ATEN.log_sigmoid_forward.default: lambda x: (nn.log_sigmoid(x), x),
        # and back
        _ATEN.tanh_backward.default: lambda gradient, y: gradient * (1 - y * y),
        _ATEN.sigmoid_backward.default: lambda gradient, y: gradient * y * (1 - y),
        _ATEN.threshold_backward.default: lambda gradient, x, threshold: jnp.where(x <= threshold, 0.0, gradient),
        _ATEN.elu_backward.default: elu_back, _ATEN.leaky_relu_backward.default: leaky_back,
        _ATEN.softplus_backward.default: softplus_back, _ATEN._log_softmax_backward_data.default: log_softmax_back,
        _ATEN._softmax_backward_data.default: softmax_back,
        _ATEN.log_sigmoid_backward.default: lambda gradient, x, _: gradient * nn.sigmoid(-x),
    }  # fmt: skip


def _tuple(dims: Any) -> tuple[int, ...]:
    return (dims,) if isinstance(dims, int) else tuple(dims)


def _at(rank: int, dim: int, place: Any) -> tuple[Any, ...]:
    """The index that is `place` in one dimension and everything in the others."""
    return (*(slice(None),) * (dim % rank), place)


def _grid(jnp: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """Where torch's `gather` looks: `index` in one dimension, the position itself in the others."""
    places = list(jnp.ogrid[tuple(map(slice, index.shape))]) if index.ndim > 1 else [None]
    places[dim % index.ndim] = index
    return tuple(places)


def _odd(jnp: Any, order: Any) -> Any:
    """Whether a permutation (*, n) is odd: its inversions, counted in pairs."""
    before = jnp.triu(jnp.ones((order.shape[-1],) * 2, bool), 1)
    return (jnp.sum((order[..., :, None] > order[..., None, :]) & before, (-2, -1)) % 2) == 1


def _name(dtype: torch.dtype) -> str:
    """torch.float32 -> 'float32'."""
    return {torch.bool: "bool"}.get(dtype, str(dtype).removeprefix("torch."))
