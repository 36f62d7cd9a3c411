"""The names that a person gave to the latents of a run, stored with it in names.json, and the units of its columns.

{"MEMBER": {"LATENT": "name"}}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unseam.atomic import write_atomic
from unseam.errors import ENVIRONMENT, BadInput, error_text
from unseam.run import Run
from unseam.run.user_files import files

LONGEST = 40  # characters of a name
_LARGEST = 2**20  # bytes of the file
UNITS = {"standard": "in standard deviations of the column", "unit": "as a share of the column's range"}

Names = dict[int, dict[int, str]]  # member -> latent -> name


def data_place(run: Run) -> str:
    """The folder of the user's own data, to distinguish two files of one name; empty for other data."""
    own = files(run.config.data).get("name")
    return "" if own is None else f"in {Path(own).parent.name or Path(own).parent}"


def column_units(run: Run) -> str:
    """Of a table's columns, as the model sees them."""
    return UNITS.get(str(run.config.data.get("scale")), "in the data's own units")


def latent_names(run: Run) -> Names:
    """The names that latents of this run were given; a file that holds anything else is refused.

    >>> import tempfile
    >>> from unseam.train import fit
    >>> run = fit("synth-linear", steps=2, network="linear", latents=2, out=tempfile.mkdtemp() + "/run", show=False)
    >>> latent_names(run), name_latent(run, 0, 1, "width"), latent_names(run)
    ({}, {1: 'width'}, {0: {1: 'width'}})
    """
    path = _place(run)
    if not path.exists():
        return {}
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"more than {_LARGEST} bytes")
        return {member_of(run, m): latents_of(run, named) for m, named in json.loads(path.read_bytes()).items()}
    except (ValueError, AttributeError, RecursionError, OSError) as error:
        raise BadInput(f"{path} holds no names of latents ({error}); correct it or delete it") from None


def name_latent(run: Run, member: int, latent: int, name: str) -> dict[int, str]:
    """Keep a name with the run, "" takes it away; the member's names then."""
    known = latent_names(run)
    own = {**known.get(member_of(run, member), {}), latent_of(run, latent): _checked(name)}
    all_names = {**known, member: {k: text for k, text in sorted(own.items()) if text}}
    try:
        write_atomic(_place(run), json.dumps(all_names, indent=1, ensure_ascii=False))
    except ENVIRONMENT as error:
        raise BadInput(f"the name cannot be stored: {error_text(error)}") from None
    return all_names[member]


def _place(run: Run) -> Path:
    return run.folder / "names.json"


def _checked(name: Any) -> str:
    """One line of printable characters, not too many.

    >>> _checked("  x   position ")
    'x position'
    """
    text = " ".join(name.split()) if isinstance(name, str) else None
    if text is None or len(text) > LONGEST or not text.isprintable():
        raise BadInput(f"name={str(name)[:50]!a} must be at most {LONGEST} printable characters")
    return text


def latents_of(run: Run, named: Any) -> dict[int, str]:
    return {latent_of(run, k): _checked(name) for k, name in named.items()}


def member_of(run: Run, member: Any) -> int:
    return index(member, len(run.members), "member")


def latent_of(run: Run, latent: Any) -> int:
    return index(latent, run.config.architecture.latents, "latent")


def index(value: Any, count: int, what: str) -> int:
    """0..count-1; JSON's keys are text."""
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9 else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < count:
        raise BadInput(f"{what}={str(value)[:40]!a} is not in this run; it has {what}s 0..{count - 1}")
    return number
