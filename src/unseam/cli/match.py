"""`unseam match A B ...`: do two seeds find the same directions?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from unseam.atomic import write_atomic
from unseam.cli.common import AsJson, MaybePath, emit, stdout
from unseam.errors import BadInput
from unseam.matching import AT, match


@dataclass
class Command:
    """Match directions one to one: dictionaries of several seeds, codes of the same rows, or the members of runs.

    Says how alike matched directions are, what random axes would give, and which share every set has.

    Example: unseam match sae-seed0.safetensors:W_dec sae-seed1.safetensors:W_dec --signed
    """

    things: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SET ...")]
    """Dictionaries or codes (.npy, .npz:NAME, .safetensors:NAME), or run folders: their finished members."""
    of: Literal["directions", "codes"] = "directions"
    """What files hold: directions, one a row, or codes of the same rows, one latent a column."""
    columns: bool = False
    """Directions are the columns of the matrices (torch's decoder.weight), not the rows."""
    signed: bool = False
    """A direction and its opposite are two."""
    at: float = AT
    """From which |cosine| or |rank correlation| on two directions are the same."""
    out: MaybePath = None
    """Write the matching to this .csv: a row for each direction of the first set."""
    seed: int = 0
    """Of the random axes."""
    json: AsJson = False

    def run(self) -> None:
        if not self.things:
            raise BadInput("nothing to match; give two dictionaries, or a run with several members")
        sets = [opened(place) for place in self.things]
        runs = any(hasattr(s, "members") for s in sets)
        if runs and self.columns:
            raise BadInput("--columns is about matrices; runs are compared by their codes, leave it out")
        sets = [s.T for s in sets] if self.columns else sets
        names = None if runs else list(distinct_names(self.things))
        found = match(*sets, of=self.of, signed=self.signed, at=self.at, names=names, seed=self.seed)
        if self.out is not None:
            write_atomic(self.out, found.table().to_csv(index=False))
        if self.json:
            emit({**found.to_json(), "out": self.out})
            return
        stdout.print(str(found), soft_wrap=True)
        if self.out is not None:
            stdout.print(f"written to {self.out}", soft_wrap=True)


def distinct_names(places: tuple[str, ...]) -> tuple[str, ...]:
    """File names, or whole paths where those are the same."""
    short = tuple(Path(place).name for place in places)
    return short if len(set(short)) == len(short) else tuple(f"{i}:{name}" for i, name in enumerate(short))


def opened(place: str) -> Any:
    """A run, or the matrix in a file."""
    from unseam.metrics.inputs.read import read_array

    if Path(place).is_dir():
        from unseam.run import load_run
        from unseam.runs.diagnose import chosen_members

        run = load_run(place)
        chosen_members(run, None)  # says which members are left out, and why
        return run
    path, _, key = place.partition(":") if not Path(place).exists() else (place, "", "")
    return _tensor(Path(path), key) if path.endswith(".safetensors") else read_array(place, "directions").content


def _tensor(path: Path, key: str) -> Any:
    """A matrix of a .safetensors file: the one named, the only one that is called a decoder, or the only one."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise BadInput(f"{path} does not exist; give a .npy, .npz or .safetensors file, or a run folder")
    try:
        with safe_open(path, framework="pt") as archive:
            shapes = {name: archive.get_slice(name).get_shape() for name in archive.keys()}  # noqa: SIM118
            name = key or _pick(path, {n: s for n, s in shapes.items() if len(s) == 2})
            if name not in shapes:
                raise BadInput(f"{path} has no tensor {name!r}; it holds {', '.join(shapes)}")
            return archive.get_tensor(name).float().numpy()
    except SafetensorError as error:
        raise BadInput(f"{path} cannot be read as .safetensors ({error})") from None


def _pick(path: Path, matrices: dict[str, list[int]]) -> str:
    decoders = [name for name in matrices if "dec" in name.lower()]
    found = decoders if len(decoders) == 1 else list(matrices)
    if len(found) != 1:
        raise BadInput(f"{path} holds the matrices {', '.join(matrices) or '(none)'}; pick one with {path}:NAME")
    return found[0]
