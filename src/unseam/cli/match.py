"""`unseam match A B ...`: do two seeds find the same directions?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from unseam.atomic import write_atomic
from unseam.cli.common import AsJson, MaybePath, ModelData, emit, stdout
from unseam.cli.model_file import load_model, model_file, read_observations, refuse_model_flags
from unseam.errors import BadInput
from unseam.matching import AT, match, open_set


@dataclass
class Command:
    """Match directions one to one: dictionaries of several seeds, codes of the same rows, or the members of runs.

    Prints how alike matched directions are, what random axes would give, and the share that every set has.

    Example: unseam match sae-seed0.safetensors:W_dec sae-seed1.safetensors:W_dec --signed
    """

    things: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SET ...")]
    """Dictionaries or codes (.npy, .npz:NAME, .safetensors:NAME, .pt:NAME), folders of SAELens or dictionary_learning,
    or run folders: their finished members; or FILE.py:NAME, models of your own, with --data."""
    of: Literal["directions", "codes"] = "directions"
    """What the files hold: directions, one per row, or codes of the same rows, one latent per column."""
    columns: Annotated[bool, tyro.conf.arg(name="transpose")] = False
    """Directions are the columns of the matrices, not the rows. torch's decoder.weight needs no flag."""
    signed: bool = False
    """Treat a direction and its opposite as different."""
    at: float = AT
    """Two directions are the same from this |cosine| or |rank correlation| on."""
    figure: MaybePath = None
    """Draw quality over coverage to this .svg, .pdf or .png."""
    out: MaybePath = None
    """Write the matching to this .csv: a row for each direction of the first set."""
    data: ModelData = None
    seed: int = 0
    """Seed of the random axes."""
    json: AsJson = False

    def run(self) -> None:
        if not self.things:
            raise BadInput("nothing to match; give two dictionaries, or a run with several members")
        sets, x = self.open_sets()
        runs = any(hasattr(s, "members") for s in sets) and x is None
        names = None if runs else list(distinct_names(self.things))
        found = match(*sets, of=self.of, signed=self.signed, at=self.at, names=names, seed=self.seed, data=x)
        if self.out is not None:
            write_atomic(self.out, found.table().to_csv(index=False))
        if self.figure is not None:
            from unseam.show.coverage_figure import coverage_figure
            from unseam.show.style import save

            save(coverage_figure(found), self.figure)
        if self.json:
            emit({**found.to_json(), "out": self.out, "figure": self.figure})
            return
        stdout.print(str(found), soft_wrap=True)
        for path in (self.out, self.figure):
            if path is not None:
                stdout.print(f"written to {path}", soft_wrap=True)

    def open_sets(self) -> tuple[list[Any], Any]:
        """What is matched, and the observations where it is models."""
        models = [model_file(place) is not None for place in self.things]
        if not any(models):
            refuse_model_flags(self.things[0], self.data)
            return [open_set(place, columns=self.columns or None) for place in self.things], None
        if not all(models):
            other = self.things[models.index(False)]
            raise BadInput(f"{other!r} is no model, FILE.py:NAME, and models are matched with models only")
        x, _ = read_observations(self.data, self.things[0])
        return [load_model(place) for place in self.things], x


def distinct_names(places: tuple[str, ...]) -> tuple[str, ...]:
    """File names, or whole paths where those are the same."""
    short = tuple(Path(place).name for place in places)
    return short if len(set(short)) == len(short) else tuple(f"{i}:{name}" for i, name in enumerate(short))
