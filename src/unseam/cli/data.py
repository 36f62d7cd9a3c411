"""`unseam data list | show NAME | fetch NAME`: which data sets there are, what they look like, and their files."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from unseam.cli.common import emit
from unseam.cli.options import Options, named_data
from unseam.data import DATASETS, config, parameters
from unseam.data.base import Dataset
from unseam.data.files import data_folder
from unseam.errors import BadInput


def describe(kind: type[Dataset]) -> dict[str, Any]:
    """What `list` says of a data set, without loading it."""
    try:
        getattr(kind, "locate", lambda: None)()
        status = "ready"
    except BadInput as error:
        status = str(error)
    options = {name: None if f.default is MISSING else f.default for name, f in parameters(kind).items()}
    return {"about": (kind.__doc__ or "").split("\n", 1)[0], "status": status, "parameters": options}


def facts(data: Dataset) -> dict[str, Any]:
    """What `show` says of a data set."""
    return {
        "observations": len(data),
        "shape": list(data.shape),
        "likelihood": data.likelihood,
        "factors": None if data.space is None else data.space.to_json(),
    }


@dataclass
class List:
    """List the data sets, their parameters, and what is missing for those that need files.

    Example: unseam data list
    """

    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        sets = {name: describe(kind) for name, kind in DATASETS.items()}
        if self.json:
            emit({"folder": data_folder(), "datasets": sets})
            return
        for name, about in sets.items():
            print(f"{name}: {about['about']}")
            print("  " + " ".join(f"--data.{option} {value}" for option, value in about["parameters"].items()))
            if about["status"] != "ready":
                print(f"  not here: {about['status']}")
        print(f"\nfiles are looked for in {data_folder()} ($UNSEAM_DATA)")
        print("your own: a path to an .npy, .npz or .h5 array or to a folder of images, with --data.factors FILE.csv")


@dataclass
class Show:
    """Write a contact sheet: one row per factor. Give the data set's parameters as --data.NAME VALUE.

    Example: unseam data show sprites --data.size 32 --data.colour --out sprites.png
    """

    name: tyro.conf.Positional[str]
    """A data set (`unseam data list`), or a path to your own data."""
    out: Path | None = None
    """The PNG to write; NAME.png by default."""
    json: bool = False
    """Print one JSON document."""
    options: Options = field(default_factory=dict)

    def run(self) -> None:
        from unseam.show.contact import write_contact_sheet

        data = named_data(self.name, self.options)
        out = write_contact_sheet(data, self.out or Path(f"{Path(self.name).stem or 'data'}.png"))
        if self.json:
            emit({"data": config(data), **facts(data), "out": out})
            return
        print(f"{self.name}: {len(data):,} observations of shape {tuple(data.shape)}, {data.likelihood} likelihood")
        for factor in data.space or ():
            print(f"  {factor.name:<14} {factor.kind}" + (f", {factor.size} values" if factor.size else ""))
        print(f"wrote {out}")


@dataclass
class Fetch:
    """Download a data set's files into the data folder, checked by their SHA-256.

    Example: unseam data fetch mnist
    """

    name: tyro.conf.Positional[str]
    """Which data set."""
    json: bool = False
    """Print one JSON document."""

    def run(self) -> None:
        from unseam.data.fetch import fetch

        paths = fetch(self.name)
        if self.json:
            emit({"data": self.name, "files": paths})
            return
        for path in paths:
            print(path)


Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Fetch, tyro.conf.subcommand("fetch")]
)
