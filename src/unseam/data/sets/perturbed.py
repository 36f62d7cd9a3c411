"""A data set whose every observation is changed a little, along one curve: x' = fold(x + eps m(w)).

m(w) = tanh(picture(tanh(a . w + b))): one learned scalar of the factors w, and a picture for each of its values
(Zietlow 2022, section 4.2.4). |m| <= 1, so no value moves by more than eps; fold reflects what leaves [0, 1]. The
factors stay what they are. A folder written by `unseam perturb` holds the base's configuration (perturbed.json) and
the weights of m (m.safetensors); where factors are not known, w are codes, one row of w.npy an observation.
"""

from __future__ import annotations

import json
import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from unseam.atomic import write_array, write_atomic
from unseam.axes import Array
from unseam.data.base import Dataset, PassThrough
from unseam.data.names import PERTURBED as FILE
from unseam.data.wrap import fold
from unseam.errors import BadInput, lookup
from unseam.readers import load_array, refusing

LONGEST_CHAIN = 16  # perturbed data of perturbed data of ...
_HIDDEN = 64  # units of the picture's hidden layers
_ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}  # tanh: with relu m stays small for longer (docs/perturb.md)


def column_reach(values: Tensor) -> tuple[Tensor, Tensor]:  # (N, F) -> (F,), (F,)
    """The middle of each column and how far it goes from there; 1 for one that does not vary.

    >>> column_reach(torch.tensor([[0, 4], [0, 8]]))
    (tensor([0., 6.]), tensor([1., 2.]))
    """
    low, high = values.float().amin(0), values.float().amax(0)
    half = (high - low) / 2
    return (low + high) / 2, torch.where(half > 0, half, 1.0)


class Mover(nn.Module):
    """m: w (B, W) -> (B, *shape), between -1 and 1."""

    def __init__(self, inputs: int, shape: tuple[int, ...], activation: str = "tanh", hidden: int = _HIDDEN) -> None:
        super().__init__()
        self.inputs, self.shape, self.activation = inputs, shape, activation
        self.scalar = nn.Linear(inputs, 1)
        act, n = lookup(_ACTIVATIONS, activation, "activation"), math.prod(shape)
        self.picture = nn.Sequential(
            nn.Linear(1, hidden), act(), nn.Linear(hidden, hidden), act(), nn.Linear(hidden, n)
        )

    def along(self, w: Tensor) -> Tensor:  # (B, W) -> (B, 1)
        """Where on the curve an observation lies."""
        return torch.tanh(self.scalar(w))

    def at(self, s: Tensor) -> Tensor:  # (B, 1) -> (B, *shape)
        """The change at a place on the curve."""
        return torch.tanh(self.picture(s)).unflatten(1, self.shape)

    def forward(self, w: Tensor) -> Tensor:
        return self.at(self.along(w))


@dataclass(frozen=True)
class Perturbed(PassThrough):
    """A base data set, every observation moved by eps m(w); the folder is what `unseam perturb` wrote."""

    folder: str

    name = "perturbed"

    @cached_property
    def document(self) -> dict[str, Any]:
        path = Path(self.folder) / FILE
        with self.whole(FILE):
            found = json.loads(path.read_bytes())
            if (
                not isinstance(found["base"]["name"], str)
                or type(found["inputs"]) is not int
                or not 0 < found["eps"] <= 0.5
            ):
                raise ValueError("base, inputs or eps is not what it should be")
        return dict(found)

    @cached_property
    def base(self) -> Dataset:
        from unseam.data import load_config

        with self.whole(f"the base in {FILE}"):
            self.check_chain()
            return load_config(self.document["base"], f"data={self.folder!r}: base")

    def check_chain(self) -> None:
        """Refuse a chain of bases that comes back to a folder, or is longer than anyone makes by hand.

        Read as plain JSON, before any data set is made: each would otherwise ask the next for its shape, until the
        interpreter's stack is full.
        """
        place, visited = Path(self.folder).resolve(), set[Path]()
        while (place / FILE).is_file():
            if place in visited or len(visited) == LONGEST_CHAIN:
                what = "comes back to" if place in visited else f"is longer than {LONGEST_CHAIN} folders at"
                remedy = f"name the data that was perturbed in {FILE}, or make the folder again: unseam perturb"
                raise BadInput(f"data={self.folder!r}: the chain of bases {what} {str(place)!r}; {remedy}")
            visited.add(place)
            place = Path(json.loads((place / FILE).read_bytes())["base"]["name"]).resolve()

    @property
    def of(self) -> Dataset:  # type: ignore[override]
        return self.base

    def whole(self, what: str) -> AbstractContextManager[None]:
        """Turn any error into a one-line message that names the file."""
        return refusing(f"data={self.folder!r}: {what}", "missing, damaged or does not fit")

    @property
    def eps(self) -> float:
        return float(self.document["eps"])

    @cached_property
    def mover(self) -> Mover:
        with self.whole("m.safetensors"):
            weights = load((Path(self.folder) / "m.safetensors").read_bytes())
            kind = self.document.get("activation", "relu"), len(weights["picture.0.weight"])  # folders of before: relu
            found = Mover(self.document["inputs"], self.base.shape, *kind)
            found.load_state_dict(weights)
            if not all(torch.isfinite(tensor).all() for tensor in weights.values()):
                raise ValueError("weights that are not finite")
        return found.eval()

    @cached_property
    def own(self) -> Tensor | None:  # (N, W)
        """w of every row where the base has no factors."""
        path = Path(self.folder) / "w.npy"
        if not path.exists():
            return None
        found = load_array(path, f"data={self.folder!r}: w.npy")
        fits = found.shape == (len(self.base), self.document["inputs"]) and found.dtype.kind == "f"
        w = np.asarray(found[:]) if fits else np.array(np.nan)
        if not np.isfinite(w).all():
            raise BadInput(
                f"data={self.folder!r}: w.npy ({found.dtype} {found.shape}) is not one row of numbers a row of data"
            )
        return torch.from_numpy(w).float()

    @property
    def renders(self) -> bool:  # type: ignore[override]
        return self.base.renders and self.own is None

    def scalars(self, index: Tensor) -> Tensor:  # (B,) -> (B, W)
        """w at rows: what m sees."""
        if self.own is not None:
            return self.own[index]
        return self.scaled(self.factors(index))

    def scaled(self, factors: Tensor) -> Tensor:  # (B, F) -> (B, F)
        """Factors on [-1, 1], as far as they go in the base."""
        middle, half = self.reach
        return (factors.float() - middle) / half

    @cached_property
    def reach(self) -> Tensor:  # (2, F)
        """The middle of each factor and how far it goes from there."""
        with self.whole(f"reach in {FILE}"):
            found = torch.tensor(self.document["reach"], dtype=torch.float32)
            factors = len(self.base.space or ())
            if found.shape != (2, factors) or not found.isfinite().all() or not (found[1] > 0).all():
                raise ValueError(f"shape {tuple(found.shape)}, or numbers that cannot be")
        return found

    @torch.no_grad()
    def moved(self, x: Tensor, w: Tensor) -> Tensor:
        return fold(x + self.eps * self.mover(w))

    def batch(self, index: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.moved(self.base.batch(index, generator), self.scalars(index))

    def observe(self, factors: Tensor, generator: torch.Generator | None = None) -> Tensor:
        if self.own is not None or self.space is None:
            raise BadInput("this data was moved along codes, not factors; only its own rows can be observed")
        return self.moved(self.base.observe(factors, generator), self.scaled(factors))


def write_perturbed(
    folder: Path,
    base: dict[str, Any],
    eps: float,
    mover: Mover,
    scale: tuple[Tensor, Tensor] | None = None,  # middle and reach of the factors
    own: Array | None = None,  # (N, W) where there are none
) -> Perturbed:
    """The folder of a perturbed data set; perturbed.json is written last, so a folder that has it is complete."""
    weights = {name: tensor.detach().contiguous().clone() for name, tensor in mover.state_dict().items()}
    write_atomic(folder / "m.safetensors", save(weights))
    if own is not None:
        write_array(folder / "w.npy", np.asarray(own, dtype=np.float32))
    document = {"base": base, "eps": eps, "inputs": mover.inputs, "activation": mover.activation}
    if scale is not None:
        document["reach"] = [numbers.tolist() for numbers in scale]
    write_atomic(folder / FILE, json.dumps(document, indent=2))
    return Perturbed(str(folder.resolve()))
