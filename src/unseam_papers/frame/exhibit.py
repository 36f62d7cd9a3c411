"""What an exhibit is: something a paper shows, shown again, its numbers beside ours.

An exhibit is one small module with an ID, some metadata and four functions of plain data, and one row in
unseam_papers/__init__.py:

    compute(settings, work) -> numbers      the expensive part, in steps that `work` remembers
    judge(numbers)          -> rows         published | ours | kind | verdict, each with a key
    draw(numbers)           -> figure
    conclude(numbers, rows) -> text         what it means, in plain words; rows by key

Only the published values are written down; everything else is computed, the verdicts too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from unseam import __version__
from unseam.atomic import write_atomic
from unseam.axes import Array
from unseam.errors import BadInput
from unseam_papers.frame.rows import VerdictRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unseam.run import Run

ExhibitScale = Literal["tiny", "quick", "large", "paper"]
ExhibitEngine = Literal["auto", "xla", "written-out"]  # auto and xla choose alike; xla wants JAX to be there
Numbers = dict[str, Any]  # what JSON can hold
Name = TypeVar("Name", bound=Hashable)
_SPOKEN = re.compile(r"ID|TITLE|CLAIM|SOURCE|SCALES|PAPER|RULE.*|.*CHOICES|[A-Z]\d+")  # words, not settings
_ENGINES = "engines.json"
_TWO_PROCESSES = 20_000  # member-steps from which a cohort is cut in two
PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True)
class Exhibit:
    """One row of EXHIBITS."""

    id: str
    title: str
    claim: str  # one sentence
    source: str
    choices: tuple[str, ...]  # what the source leaves open, and what we chose
    scales: Mapping[
        ExhibitScale, Any
    ]  # frozen dataclasses: tiny (tests), quick (minutes), large (hours), paper (published)
    compute: Callable[[Any, Work], Numbers]
    judge: Callable[[Numbers], Sequence[VerdictRow]]
    draw: Callable[[Numbers], Figure]
    conclude: Callable[[Numbers, Mapping[str, VerdictRow]], str]
    paper: str = ""  # what of the paper scale is ours, because the source does not print it
    constants: str = ""  # of its module, as text: a part of the digest

    def has(self, scale: ExhibitScale) -> ExhibitScale:
        """The scale itself; quick where an exhibit has no large one."""
        return "quick" if scale == "large" and "large" not in self.scales else scale

    def settings(self, scale: ExhibitScale) -> Any:
        if scale not in self.scales:
            raise BadInput(f"scale={scale!r} is unknown for {self.id}; known: {', '.join(self.scales)}")
        return self.scales[scale]

    def digest(self, scale: ExhibitScale) -> str:
        """A short name of settings, constants and version: results of others are never taken for these."""
        text = json.dumps(asdict(self.settings(scale)), sort_keys=True, default=str)
        return hashlib.sha256(f"{text}{self.constants}{__version__}".encode()).hexdigest()[:10]


def exhibit_of(module: ModuleType) -> Exhibit:
    """The exhibit that a module is: its ID, TITLE, CLAIM, SOURCE, CHOICES, SCALES, PAPER and four functions."""
    words = {name: getattr(module, name.upper()) for name in ("id", "title", "claim", "source", "scales")}
    deeds = {name: getattr(module, name) for name in ("compute", "judge", "draw", "conclude")}
    choices, paper = tuple(module.CHOICES), getattr(module, "PAPER", "")
    return Exhibit(**words, **deeds, choices=choices, paper=paper, constants=constants(module))


def constants(module: ModuleType) -> str:
    """The UPPER-CASE names of a module, and of the modules of the papers that it takes something from, as text."""
    return "".join(
        f"{found.__name__}.{name.lstrip('_')}={_as_text(value)}\n"
        for found in _used(module)
        for name, value in sorted(vars(found).items(), key=lambda item: item[0].lstrip("_"))
        if name.isupper() and not _SPOKEN.fullmatch(name.lstrip("_"))
    )


def _used(module: ModuleType) -> list[ModuleType]:
    """The module and those of the papers (without the frame) that it takes something from, one after another."""
    import sys

    out, queue = {module.__name__: module}, [module]
    while queue:
        for value in vars(queue.pop()).values():
            name = value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))
            if name.startswith(f"{PACKAGE}.") and ".frame" not in name and name not in out:
                out[name] = sys.modules[name]
                queue.append(out[name])
    return [out[name] for name in sorted(out)]


def _as_text(value: Any) -> str:
    """What stands for a constant in a digest, the same in every process.

    >>> _as_text({"b": np.zeros(1), "a": (1, "x", print)})[:30]
    "{'a':(1,'x',builtins.print,),'"
    """
    if isinstance(value, Mapping):
        return "{" + "".join(f"{key!r}:{_as_text(value[key])}," for key in sorted(value, key=repr)) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return "(" + "".join(f"{_as_text(item)}," for item in items) + ")"
    if is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{type(value).__name__}{_as_text(inside)}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "tobytes"):
        return _named(value)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@dataclass(frozen=True)
class Work:
    """Where an exhibit keeps its finished steps and its models, so that a killed run continues where it stopped."""

    folder: Path  # the finished steps of this exhibit
    runs: Path = Path("runs")  # trained cohorts, shared by the exhibits: two that ask for the same train it once
    engine: ExhibitEngine = "auto"  # what runs the steps of cohorts

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """The result of `make()` as JSON gives it back; computed at most once in this folder.

        >>> import tempfile
        >>> work = Work(Path(tempfile.mkdtemp()))
        >>> work.once("half", lambda: (1 / 2,)), work.once("half", lambda: 1 / 0)
        ([0.5], [0.5])
        """
        path = self.folder / f"{name}.json"
        with suppress(OSError, ValueError):  # not there yet, or damaged
            return json.loads(path.read_bytes())
        write_atomic(path, json.dumps(make(), default=lambda array: array.tolist(), allow_nan=False))
        return json.loads(path.read_bytes())

    def each(self, names: Iterable[Name], measure: Callable[[Name], Any], prefix: str = "") -> dict[Name, Any]:
        """name -> `measure(name)`, each computed at most once in this folder.

        >>> import tempfile
        >>> Work(Path(tempfile.mkdtemp())).each([0.5, 2.0], lambda x: x**2)
        {0.5: 0.25, 2.0: 4.0}
        """
        return {name: self.once(re.sub(r"[\s/]+", "_", f"{prefix}{name}"), lambda: measure(name)) for name in names}  # noqa: B023

    def train(self, data: str | Array, objective: str = "beta-vae", **settings: Any) -> Run:
        """`unseam.fit(data, objective, **settings)`, trained at most once in this output folder and resumable."""
        from unseam.train import fit, resume

        folder = self._cohort(data, objective, settings)
        exists = (folder / "config.json").exists()
        return self.noted(resume(folder) if exists else fit(data, objective, out=folder, **self.how(settings)))

    def how(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a training, with what its digits depend on: the stacks it is cut into, and the engine.

        >>> Work(Path()).how({"steps": 9}), Work(Path(), engine="written-out").how({"steps": 9})
        ({'steps': 9, 'workers': 1}, {'steps': 9, 'workers': 1, 'engine': 'written-out'})
        """
        return cut_alike(settings) | ({"engine": self.engine} if self.engine == "written-out" else {})

    def noted(self, run: Run) -> Run:
        """The run, with the engine that trained it kept among the finished steps."""
        engines = {*self.engines(), *(str(name) for name in run.table()["engine"].dropna() if name)}
        write_atomic(self.folder / _ENGINES, json.dumps(sorted(engines)))
        return run

    def engines(self) -> list[str]:
        """The engines that trained the cohorts of this exhibit so far."""
        with suppress(OSError, ValueError):
            return [str(name) for name in json.loads((self.folder / _ENGINES).read_bytes())]
        return []

    def _cohort(self, data: str | Array, objective: str, settings: Mapping[str, Any]) -> Path:
        """The folder of a cohort; its name holds what was asked."""
        label = data if isinstance(data, str) else "array"
        text = json.dumps([_named(data), objective, settings], sort_keys=True, default=_named)
        return self.runs / f"{label}-{objective}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def cut_alike(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with a fixed number of processes, so that a cohort is cut into the same stacks on every machine.

    A stack of ten members and two of five agree up to rounding only, and over 100,000 steps rounding reaches the digits
    that are printed. Convolutions are trained one member at a time, so they may take all cores.

    >>> cut_alike({"seeds": [0, 1], "beta": [1.0, 2.0], "steps": 10_000})["workers"]
    2
    >>> cut_alike({"seeds": [0, 1], "steps": 100})["workers"]
    1
    """
    if "workers" in settings or settings.get("network") == "conv":
        return dict(settings)
    members = int(np.prod([len(value) for value in settings.values() if isinstance(value, list)]))
    return {**settings, "workers": 2 if members * settings.get("steps", 0) >= _TWO_PROCESSES else 1}


def _named(value: Any) -> str:
    """What stands for a value in a digest: an array is its shape and bytes."""
    if hasattr(value, "tobytes"):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    return str(value)


OFFICIAL = {"sprites": "dsprites", "rooms": "shapes3d"}  # of what we draw


def absent(data: str, **parameters: Any) -> str:
    """Why the files of a data set are not here; empty when they are.

    >>> absent("sprites"), absent("celeba", path="/nowhere")
    ('', "path='/nowhere' has no list_attr_celeba.txt")
    """
    import torch

    from unseam.data import load_data

    try:
        load_data(data, **parameters).batch(torch.arange(1))
    except BadInput as error:
        return str(error)
    return ""


def official(ours: str) -> str:
    """The official data set whose factors ours has, where its files are here; else ours."""
    return ours if ours not in OFFICIAL or absent(OFFICIAL[ours]) else OFFICIAL[ours]


def as_in_the_study() -> dict[str, Any]:
    """The network of Locatello 2019, which Zietlow 2022 (chapter 4) takes too."""
    return {"network": "conv", "small_kernels": True, "likelihood": "bernoulli"}


def beta_argument(objective: str, beta: Any) -> dict[str, Any]:
    """The strength as an argument; an autoencoder has none.

    >>> beta_argument("ae", 2.0), beta_argument("beta-vae", 2.0)
    ({}, {'beta': 2.0})
    """
    return {} if objective == "ae" else {"beta": beta}


def pick(entries: Iterable[Mapping[str, Any]], name: str) -> Array:  # (entries, ...)
    """One value of every entry.

    >>> pick([{"a": 1}, {"a": 2}], "a")
    array([1, 2])
    """
    return np.array([entry[name] for entry in entries])


def mean(entries: Iterable[Mapping[str, Any]], name: str) -> float:
    """The mean of one value over the entries."""
    return float(pick(entries, name).mean())


def median(entries: Iterable[Mapping[str, Any]], name: str) -> float:
    """The median of one value over the entries."""
    return float(np.median(pick(entries, name)))


def both(value: Any, what: str = "") -> dict[str, Any]:
    """The same for encoder and decoder, as settings of a run.

    >>> both((24, 24)), both("tanh", "activation")
    ({'encoder': (24, 24), 'decoder': (24, 24)}, {'encoder_activation': 'tanh', 'decoder_activation': 'tanh'})
    """
    return {f"{half}_{what}".rstrip("_"): value for half in ("encoder", "decoder")}


def training_arguments(settings: Any, *names: str) -> dict[str, Any]:
    """Some fields of an exhibit's settings, as arguments of a training."""
    return {name: getattr(settings, name) for name in names}
