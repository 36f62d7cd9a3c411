"""What a request must look like. Everything that comes in passes here; what does not fit is refused in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from unseam.errors import BadInput, unknown

FARTHEST = 1000.0  # |z_k| beyond which no decoder was ever trained
AXES = ("latents", "singular")
FILMS = ("grid", "gif")


def document(body: bytes) -> dict[str, Any]:
    """A JSON object; NaN and Infinity are not JSON.

    >>> document(b'{"z": [1]}')
    {'z': [1]}
    """
    try:
        found = json.loads(body, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, BadInput) else BadInput("the request is not a JSON document") from None
    if not isinstance(found, dict):
        raise BadInput(f"the request is a JSON {type(found).__name__}; it must be an object")
    return found


def refuse_constant(name: str) -> NoReturn:
    raise BadInput(f"the request holds {name}; every number must be finite")


def _number(value: Any, what: str, largest: float = FARTHEST) -> float:
    """A finite number within +-largest.

    >>> _number(2, "z_0")
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{what}={str(value)[:40]!r} is not a number")
    if not abs(value) <= largest:  # also what is not finite, and whole numbers too long for a float
        raise BadInput(f"{what}={str(value)[:12]} is out of range; it must be within {-largest:g}..{largest:g}")
    return float(value)


def checked_integer(value: Any, what: str, low: int, high: int) -> int:
    """A whole number low..high; text, as in a query, is read.

    >>> checked_integer("7", "row", 0, 9)
    7
    """
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) < 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadInput(f"{what}={str(value)[:40]!r} must be a whole number {low}..{high}")
    return value


def latent_vector(values: Any, size: int) -> Tensor:  # (K,)
    """z: exactly K finite numbers.

    >>> latent_vector([0, 1.5], 2)
    tensor([0.0000, 1.5000])
    """
    if not isinstance(values, list) or len(values) != size:
        got = f"{len(values)} numbers" if isinstance(values, list) else type(values).__name__
        raise BadInput(f"z must be a list of {size} numbers, got {got}")
    return torch.tensor([_number(v, f"z_{k}") for k, v in enumerate(values)])


def raw_observation(body: bytes, shape: tuple[int, ...]) -> Tensor:  # (*shape)
    """float32 bytes, little endian, as many as an observation has, all finite.

    >>> raw_observation(np.ones(2, "<f4").tobytes(), (2,))
    tensor([1., 1.])
    """
    if len(body) != 4 * math.prod(shape):
        raise BadInput(f"x has {len(body)} bytes; an observation of shape {shape} has {4 * math.prod(shape)}")
    x = np.frombuffer(body, "<f4").reshape(shape)
    if not np.isfinite(x).all():
        raise BadInput("x holds NaN or infinite values")
    return torch.from_numpy(x.astype(np.float32))


def flag(value: Any, what: str) -> bool:
    """true or false; "1" and "0" in a query."""
    if value not in (True, False, "1", "0") or isinstance(value, float):
        raise BadInput(f"{what}={str(value)[:40]!r} must be true or false")
    return value in (True, "1")


def one_of(known: tuple[str, ...], value: Any, what: str) -> str:
    """One of the words we know.

    >>> one_of(AXES, "singular", "axes")
    'singular'
    """
    if not isinstance(value, str) or value not in known:
        raise unknown(what, str(value)[:40], known)
    return value


def need(fields: Mapping[str, Any], name: str) -> Any:
    """A field that must be there."""
    if name not in fields:
        raise BadInput(f"the request has no {name!r}")
    return fields[name]
