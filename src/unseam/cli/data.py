"""`unseam data list | show NAME | fetch NAME | pack RUN`: data sets, their looks and their files; runs as files."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unseam.cli.common import AsJson, DataName, MaybePath, Options, emit, named_data, new_folder, reading_note
from unseam.data.cache import data_folder
from unseam.data.download.sources import FOLDERS, SOURCES
from unseam.errors import BadInput

if TYPE_CHECKING:
    from unseam.data.base import Dataset


def defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: None if field.default is MISSING else field.default for name, field in fields.items()}


def _describe(name: str, kind: type[Dataset]) -> dict[str, Any]:
    """What `list` says of a data set, without loading it: is it here, what does it need, how large is it."""
    from unseam.data import own_parameters  # not above: --help needs no torch

    try:
        getattr(kind, "locate", lambda: None)()
        status = "ready"
    except BadInput as error:
        status = str(error)
    files = [file for source, folder in FOLDERS.items() if folder == name for file in SOURCES[source]]
    sizes = [file.size for file in files]
    present = [file.name for file in files if is_here(name, file.name)]
    return {
        "about": (kind.__doc__ or "").split("\n", 1)[0],
        "status": status,
        "here": status == "ready",
        "needs": [file.name for file in files],
        "present": present,
        "bytes": sum(size or 0 for size in sizes) if files and None not in sizes else None,
        "parameters": defaults(own_parameters(kind)),
    }


def is_here(name: str, file: str) -> bool:
    """Whether a file lies in DATA/NAME or DATA, packed or unpacked."""
    names = (file, f"{file}.gz", file.removesuffix(".gz"))
    return any((folder / each).is_file() for folder in (data_folder() / name, data_folder()) for each in names)


def _needs(about: dict[str, Any]) -> str:
    """One line of `list`: the files and their size.

    >>> _needs({"needs": ["a.h5"], "bytes": 267_573_662}), _needs({"needs": ["b.npz"], "bytes": None})
    ('a.h5 (267.6 MB)', 'b.npz (size unknown)')
    """
    size = f" ({about['bytes'] / 1e6:,.1f} MB)" if about["bytes"] else " (size unknown)"
    return _some(about["needs"]) + size


def _here(about: dict[str, Any]) -> str:
    """One line of `list` for a set that is here: which of its files are, and which are not.

    >>> _here({"needs": ["a.npz", "b.npz"], "present": ["a.npz"], "bytes": None})
    'a.npz; not there, or in another form: b.npz'
    >>> _here({"needs": ["a.h5"], "present": [], "bytes": None})
    'in another form or place than a.h5'
    """
    absent = [name for name in about["needs"] if name not in about["present"]]
    if not absent:
        return _needs(about)
    if not about["present"]:
        return f"in another form or place than {_some(absent)}"
    return f"{_some(about['present'])}; not there, or in another form: {_some(absent)}"


def _some(names: list[str]) -> str:
    more = len(names) - 4
    return ", ".join(names[:4]) + (f" and {more} more" if more > 0 else "")


def _facts(data: Dataset) -> dict[str, Any]:
    """What `show` says of a data set."""
    return {
        "observations": len(data),
        "shape": list(data.shape),
        "likelihood": data.likelihood,
        "factors": None if data.space is None else data.space.to_json(),
        "read": reading_note(data),
    }


@dataclass
class List:
    """List the data sets, their parameters, and what is missing for those that need files.

    Example: unseam data list
    """

    json: AsJson = False

    def run(self) -> None:
        from unseam.data import DATASETS
        from unseam.data.registry import wrapper_options
        from unseam.data.wrap import WRAPPERS

        sets = {name: _describe(name, kind) for name, kind in DATASETS.items()}
        any_set = {name: value for kind in WRAPPERS for name, value in defaults(wrapper_options(kind)).items()}
        if self.json:
            emit({"folder": data_folder(), "datasets": sets, "any": any_set})
            return
        for name, about in sets.items():
            print(f"{name}: {about['about']}")
            print(_flags(about["parameters"]))
            if about["needs"]:
                print(f"  here: {_here(about)}" if about["here"] else f"  needs: {_needs(about)}")
            elif about["here"]:
                print("  here: drawn on demand, or part of an installed package")
            if not about["here"]:
                print(f"  not here: {about['status']}")
        print(f"\nany set takes\n{_flags(any_set)}")
        print(f"\nfiles are looked for in {data_folder()} ($UNSEAM_DATA)")
        print("your own: a path to an .npy, .npz, .h5, .csv or .parquet file or to a folder of images, with")
        print("--data.factors FILE, or --data.labels NAME for labels in the same file")


def _flags(parameters: dict[str, Any]) -> str:
    return "  " + " ".join(f"--data.{option} {value}" for option, value in parameters.items())


@dataclass
class Show:
    """Write a contact sheet: one row per factor. Give the data set's parameters as --data.NAME VALUE.

    Example: unseam data show sprites --data.size 32 --data.colour --out sprites.png
    """

    name: DataName
    """A data set (`unseam data list`), or a path to your own data."""
    out: MaybePath = None
    """The PNG to write; NAME.png by default."""
    json: AsJson = False
    options: Options = field(default_factory=dict)

    def run(self) -> None:
        from unseam.data import config
        from unseam.show.contact_sheet import write_contact_sheet

        data = named_data(self.name, self.options)
        out = write_contact_sheet(data, self.out or Path(f"{Path(self.name).stem or 'data'}.png"))
        if self.json:
            emit({"data": config(data), **_facts(data), "out": out})
            return
        print(f"{self.name}: {len(data):,} observations of shape {tuple(data.shape)}, {data.likelihood} likelihood")
        if reading_note(data):
            print(f"  read: {reading_note(data)}")
        for factor in data.space or ():
            print(f"  {factor.name:<14} {factor.kind}" + (f", {factor.size} values" if factor.size else ""))
        print(f"wrote {out}")


@dataclass
class Fetch:
    """Download a data set's files, checked by size and hash; broken downloads continue.

    Example: unseam data fetch mnist
    """

    name: DataName
    """Which data set."""
    origin: Annotated[str | None, tyro.conf.arg(name="from", metavar="FILE_OR_URL")] = None
    """Take the files from this file, folder or address instead of the publisher's."""
    json: AsJson = False

    def run(self) -> None:
        from unseam.data.download.fetch import fetch

        paths = fetch(self.name, self.origin)
        if self.json:
            emit({"data": self.name, "files": paths})
            return
        for path in paths:
            print(path)


@dataclass
class Pack:
    """Write runs, or a study, to one folder that others can open: weights, codes, factors, scores, a card, checksums.

    `unseam.load_run(DIR)` opens it, also from an address; no data is packed but the codes and factors of some rows.

    Example: unseam data pack runs/sprites-beta-vae --out published --licence CC-BY-4.0
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """The folders of runs or of studies; of a study all pieces that are done, and its table."""
    out: Path
    """A new or an empty folder."""
    licence: str = "not stated"
    """The licence under which others may use it; it is stated on the card."""
    rows: Annotated[int, tyro.conf.arg(name="samples")] = 10_000
    """Rows of the data whose codes and factors are packed, at most."""
    json: AsJson = False

    def run(self) -> None:
        from unseam import study
        from unseam.run import Run, load_run
        from unseam.runs.pack import pack

        if self.rows < 1:
            raise BadInput(f"--samples={self.rows} must be at least 1")
        studies = {folder: study.load(folder) for folder in self.runs if (folder / "study.json").is_file()}
        tables = {folder.resolve().name: found.table() for folder, found in studies.items()}
        parts: list[Run | tuple[str, Run]] = []
        for folder in self.runs:
            parts += studies[folder].runs().items() if folder in studies else [load_run(folder)]
        with new_folder(self.out) as out:
            pack(parts, out, self.licence, self.rows, tables=tables)
        files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
        if self.json:
            emit({"pack": out, "files": files})
            return
        place = f"{str(out)!r})" if len(parts) == 1 else f"{str(out / 'RUN')!r}), RUN one of its {len(parts)} runs"
        print(f"{len(files)} files in {out}; read {out / 'README.md'}, open it with unseam.load_run({place}")


Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Fetch, tyro.conf.subcommand("fetch")]
    | Annotated[Pack, tyro.conf.subcommand("pack")]
)
