"""Objects with `transform` and `inverse_transform`: scikit-learn's PCA, FastICA, NMF, pipelines of them, ours.

They compute in NumPy, so the decoder's derivatives are central differences in double precision. Codes are divided by
their standard deviation, as a prior N(0, I) would have them: the scale of a component carries no meaning otherwise, and
PCA's components of length 1 would all look alike.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from unseam.errors import BadInput
from unseam.models.adapters.base import (
    FAILURES,
    AdaptedModel,
    EncoderOutput,
    check_code_rows,
    check_twice,
    one_line,
    read_decoder_output,
)

_FIXED = "give it a fixed random_state"
_PROBES = 4  # observations that are transformed twice, to see whether codes are random


def matches(model: Any) -> bool:
    methods = all(callable(getattr(model, name, None)) for name in ("transform", "inverse_transform"))
    return methods and not isinstance(model, nn.Module)


def adapt(model: Any, x: Any) -> AdaptedModel:
    try:
        codes = np.asarray(model.transform(x), dtype=float)
    except FAILURES as error:
        raise BadInput(f"transform fails on x ({one_line(error)}); fit the model first, on data of this shape") \
            from error  # fmt: skip
    if codes.ndim != 2:
        raise BadInput(f"transform gives codes of shape {codes.shape}; they must be (N, K)")
    check_code_rows(torch.from_numpy(codes), x.shape[0] if hasattr(x, "shape") else len(x), "transform")
    check_random(model, x)
    scale = np.where(codes.std(0) > 0, codes.std(0), 1.0)

    def decode(z: Tensor) -> Any:
        out = model.inverse_transform(z.detach().cpu().double().numpy() * scale)
        if isinstance(out, (tuple, Mapping, Tensor, Distribution)):
            return read_decoder_output(out).double()
        return torch.from_numpy(np.array(out, dtype=float))

    def encode(rows: Tensor) -> EncoderOutput:
        found = np.asarray(model.transform(rows.detach().cpu().double().numpy()), dtype=float)
        return EncoderOutput(torch.from_numpy(found / scale))

    data = torch.from_numpy(np.array(x.to_numpy() if hasattr(x, "to_numpy") else x, dtype=float))
    return AdaptedModel("scikit-learn", decode, encode, torch.from_numpy(codes / scale), data=data, has_beta=False,
                        differentiable=False)  # fmt: skip


def check_random(model: Any, x: Any) -> None:
    """Refuse a transform that gives two answers; one that takes no fewer rows than there are is not asked."""
    try:
        probe = x[:_PROBES]
        model.transform(probe)
    except FAILURES:
        return
    check_twice(lambda rows: torch.from_numpy(np.array(model.transform(rows), dtype=float)), probe, _FIXED)
