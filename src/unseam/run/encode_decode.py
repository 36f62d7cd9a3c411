"""What a user hands a run (NumPy, pandas, torch) -> what its models take, and back in the same kind and units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unseam.data.scaling import Scaling
from unseam.errors import BadInput

_CHUNK = 512  # rows at a time


def as_observations(
    x: Any, shape: tuple[int, ...], scaling: Scaling | None, features: Sequence[str]
) -> Tensor:  # (N, *shape)
    """Rows in the data's own units: of a DataFrame the columns the run knows; bytes are pixels.

    >>> as_observations(np.array([[0, 255]], np.uint8), (2,), None, ())
    tensor([[0., 1.]])
    """
    plain = finite_tensor(x, "x", features)
    out = plain.float()
    if plain.dtype == torch.uint8:
        out = out / 255
    if len(shape) == 3 and out.ndim == 3 and shape[0] == 1:
        out = out[:, None]
    if out.ndim == 4 and tuple(out.shape[1:]) != shape and (out.shape[3], *out.shape[1:3]) == shape:
        out = out.movedim(3, 1)
    if tuple(out.shape[1:]) != shape:
        raise BadInput(f"x has shape {tuple(plain.shape)}; this run takes {('N', *shape)}")
    return out.contiguous() if scaling is None else scaling.apply(out)


def finite_tensor(x: Any, what: str, names: Sequence[str] = ()) -> Tensor:
    """A finite tensor of any number type, on this machine's memory."""
    import pandas as pd  # here, not above: half a second that training need not pay

    if isinstance(x, pd.DataFrame) and names:
        if missing := [name for name in names if name not in x.columns]:
            raise BadInput(f"{what} has no column {missing[0]!r}; this run was trained on {', '.join(names[:8])}")
        x = x[list(names)]
    try:
        array = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
        out = torch.tensor(array.astype(np.float32) if array.dtype.kind == "O" else array, device="cpu")
    except (TypeError, ValueError) as error:
        raise BadInput(f"{what} must be numbers: {str(error).splitlines()[0]}") from None
    if not torch.isfinite(out).all():
        raise BadInput(f"{what} holds NaN or infinity; every value must be finite")
    return out


@torch.no_grad()
def in_chunks(act: Callable[[Tensor], Tensor], x: Tensor, device: str = "cpu") -> Tensor:
    return torch.cat([act(part.to(device)).cpu() for part in x.split(_CHUNK)])


def like(template: Any, values: Tensor, names: Sequence[str]) -> Any:
    """The values as what was given: a tensor, a DataFrame with its index, else an array.

    >>> import pandas as pd
    >>> like(pd.DataFrame({"a": [1.0]}, index=[7]), torch.ones(1, 2), ["z0", "z1"]).loc[7].tolist()
    [1.0, 1.0]
    """
    import pandas as pd

    if isinstance(template, Tensor):
        return values.to(template.device)
    array = values.numpy()
    if isinstance(template, pd.DataFrame):
        return pd.DataFrame(array.reshape(len(array), -1), index=template.index, columns=list(names))
    return array
