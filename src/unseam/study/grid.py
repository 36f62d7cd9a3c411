"""What a study trains: data sets x methods x strengths x seeds, from a TOML file or a preset.

name = "mine"
seeds = "0..4"             # or a list
together = 5               # seeds that train as one stack, with all strengths; 0: every model alone
[data.sprites]             # a name of your own, then what `load_data` takes
name = "sprites"
size = 16
[methods.beta-vae]         # an objective; the one list is what is swept
beta = [1, 2, 4]
[settings]                 # what `unseam.fit` takes: steps, batch, lr, latents, ...
steps = 2000
[evaluation]               # see `Evaluation`
rows = 10000
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from unseam.errors import BadInput, check_literals, lookup, unknown
from unseam.from_json import as_type
from unseam.metrics.shared.predictors import Backend
from unseam.objectives import OBJECTIVES

PRESETS = {path.stem: path for path in sorted((Path(__file__).parent / "presets").glob("*.toml"))}
_PLAIN = re.compile(r"[\w+][\w.+ -]{0,99}")  # a name that is a folder's and stays inside the study
_MANY = 100_000  # seeds
_OWN = ("out", "seeds", "how", "workers", "data_parameters")  # settings of `fit` that a study makes itself


@dataclass(frozen=True)
class Evaluation:
    """How each model is scored."""

    rows: int = 10_000
    """rows that predictors are fitted on and mutual information is counted on"""
    test: int = 5_000
    """other rows, which test the predictors"""
    trees: Backend = "lightgbm"
    """predictor of DCI and of the downstream task: lightgbm (100 rounds of boosted trees), quick (10), ..."""
    labels: tuple[int, ...] = (10, 100, 1_000, 10_000)
    """sizes of the downstream task by logistic regression"""
    tree_labels: tuple[int, ...] = (10, 100, 1_000, 10_000)
    """and by boosted trees"""
    points: int = 500
    """codes at which the decoder is differentiated"""
    kept: int = 1_000
    """rows whose codes are kept, for scores that compare models (UDR)"""

    def __post_init__(self) -> None:
        check_literals(self, {"trees": "evaluation.trees"})
        for name in ("rows", "test", "points", "kept"):
            if getattr(self, name) < 10:
                raise BadInput(f"evaluation.{name}={getattr(self, name)!r} must be at least 10")
        for name in ("labels", "tree_labels"):
            sizes = getattr(self, name)
            if min(sizes, default=1) < 1:
                raise BadInput(f"evaluation.{name}={sizes!r} must be above 0, or []")
        largest = max((*self.labels, *self.tree_labels), default=0)
        if largest > self.rows:
            raise BadInput(f"evaluation: {largest} labels are requested, but rows={self.rows}; raise rows or leave out")


@dataclass(frozen=True)
class StudyMethod:
    """An objective, its swept hyperparameter and its other settings."""

    name: str
    objective: str
    swept: str
    strengths: tuple[float, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyModel:
    """One model of a study."""

    number: int  # place in the whole grid; the published model_num in the preset `locatello`
    data: str
    method: StudyMethod
    strength: float
    seed: int


@dataclass(frozen=True)
class Piece:
    """What is trained as one: models of one data set and one method. Its name ends in a hash of all it depends on."""

    name: str
    data: Mapping[str, Any]
    models: tuple[StudyModel, ...]
    settings: Mapping[str, Any]
    evaluation: Evaluation

    @property
    def method(self) -> StudyMethod:
        return self.models[0].method


@dataclass(frozen=True)
class Grid:
    """A whole study."""

    name: str
    data: Mapping[str, Mapping[str, Any]]
    methods: tuple[StudyMethod, ...]
    seeds: tuple[int, ...]
    together: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Evaluation = field(default_factory=Evaluation)
    only: tuple[int, ...] | None = None  # numbers of the models, if not all

    @property
    def published(self) -> bool:
        """Whether a model's number is the one of Locatello et al. (2019)."""
        return self.name == "locatello"

    @cached_property
    def models(self) -> tuple[StudyModel, ...]:
        """Every model, in the order of its number: data set, method, strength, seed."""
        every = product(self.data, ((m, s) for m in self.methods for s in m.strengths), self.seeds)
        models = [StudyModel(n, data, method, s, seed) for n, (data, (method, s), seed) in enumerate(every)]
        if self.only is None:
            return tuple(models)
        if strange := [n for n in self.only if not 0 <= n < len(models)]:
            raise BadInput(f"models: {strange[0]} is not in {self.name}; its models are 0..{len(models) - 1}")
        return tuple(models[n] for n in sorted(set(self.only)))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """Every piece; the first seeds of all settings come first, so that a part of a study is a smaller study."""
        groups: dict[tuple[Any, ...], list[StudyModel]] = {}
        for m in self.models:
            place = self.seeds.index(m.seed)
            stacked = self.together and self.only is None  # a selection need not be a product
            block = place // self.together if stacked else place
            alone = () if stacked else (m.method.strengths.index(m.strength),)
            groups.setdefault((block, m.data, m.method.name, *alone), []).append(m)
        blocks = sorted(groups, key=lambda key: key[0])
        return tuple(self.piece(tuple(groups[key])) for key in blocks)

    def piece(self, models: tuple[StudyModel, ...]) -> Piece:
        first = models[0]
        parts = (self.data[first.data], [asdict(m) | {"number": 0} for m in models], self.settings, self.evaluation)
        identity = json.dumps(parts, sort_keys=True, default=asdict)
        seeds = sorted({m.seed for m in models})
        strength = f"-{first.strength:g}" if len({m.strength for m in models}) == 1 else ""
        named = f"{first.data}-{first.method.name}{strength}-{seeds[0]}" + (f"to{seeds[-1]}" if len(seeds) > 1 else "")
        name = f"{named}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
        return Piece(name, self.data[first.data], models, self.settings, self.evaluation)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def load_grid(grid: str | Path | Grid, models: tuple[int, ...] | None = None) -> Grid:
    """A preset by its name, or a TOML file.

    >>> grid = load_grid("minute")
    >>> len(grid.methods), {len(m.strengths) for m in grid.methods}
    (6, {2})
    >>> load_grid("locatello", models=(1800 * 2 + 50 * 8 + 3,)).models[0].method.name
    'factor-vae'
    """
    if isinstance(grid, Grid):
        return grid if models is None else replace(grid, only=models)
    path = PRESETS.get(str(grid), Path(grid))
    if not path.is_file():
        raise BadInput(f"grid={str(grid)!r} is neither a preset ({', '.join(PRESETS)}) nor a TOML file")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}") from None
    if (name := document.get("name", path.stem)) in PRESETS and not path.samefile(PRESETS[name]):
        raise BadInput(f"{path}: {name!r} is the name of a preset; call the file or its `name` otherwise")
    return from_document({"name": path.stem, **document}, str(path), models)


def from_document(document: Mapping[str, Any], where: str, only: tuple[int, ...] | None = None) -> Grid:
    """The grid that a TOML document describes."""
    known = ("name", "seeds", "together", "data", "methods", "settings", "evaluation")
    for key in document:
        if key not in known:
            raise unknown(f"{where}: key", key, known)
    for key in ("data", "methods"):
        if not isinstance(document.get(key), dict) or not document[key]:
            raise BadInput(f"{where}: there is no [{key}.NAME]; give at least one")
    methods = [method(name, body, where) for name, body in document["methods"].items()]
    identity = {**document, "methods": methods, "seeds": seeds_of(document.get("seeds", [0]), where), "only": only}
    return _checked(identity, where)


def _checked(document: Mapping[str, Any], where: str) -> Grid:
    """The grid, every value of it checked; names become names of folders."""
    grid: Grid = as_type(Grid, document, where)
    floats = [replace(m, strengths=tuple(map(float, m.strengths))) for m in grid.methods]  # 1 and 1.0 are one model
    grid = replace(grid, methods=tuple(floats))
    if grid.together < 0:
        raise BadInput(f"{where}: together={grid.together} must be 0 or more")
    for name in (*grid.data, *(m.name for m in grid.methods)):
        if not _PLAIN.fullmatch(name):
            raise BadInput(f"{where}: the name {name[:80]!r} cannot be a folder's; use letters, digits and _ . + -")
    for key in grid.settings:
        if key in _OWN or key in {m.swept for m in grid.methods}:
            raise BadInput(f"{where}: settings.{key} is given by the study itself; leave it out")
    for method in grid.methods:
        lookup(OBJECTIVES, method.objective, f"{where}: objective")
        _once(method.strengths, f"{where}: methods.{method.name}.{method.swept}")
    _once(grid.seeds, f"{where}: seeds")
    if strange := [name for name, body in grid.data.items() if not isinstance(body.get("name"), str)]:
        raise BadInput(f'{where}: [data.{strange[0]}] must say which data it is: name = "sprites", or a path')
    return grid


def _once(values: Sequence[Any], what: str) -> None:
    """At least one, all finite, none twice: it would train the same model twice."""
    numbers = [v for v in values if isinstance(v, int | float) and math.isfinite(v)]
    if not values or len(set(numbers)) < len(values):
        raise BadInput(f"{what}={str(list(values))[:80]} must be finite numbers that differ, at least one")


def method(name: str, body: Any, where: str) -> dict[str, Any]:
    """`[methods.NAME]`: an objective (NAME, unless `objective` says another) and one list."""
    if not isinstance(body, dict):
        raise BadInput(f"{where}: methods.{name} must be a table, [methods.{name}]")
    rest = {"objective": name, **body}
    lists = [key for key, value in rest.items() if isinstance(value, list)]
    if len(lists) != 1:
        raise BadInput(
            f"{where}: methods.{name} has {len(lists)} lists; give one, which is what is swept: beta = [1, 4]"
        )
    swept = {"swept": lists[0], "strengths": rest.pop(lists[0])}
    _once(swept["strengths"], f"{where}: methods.{name}.{lists[0]}")
    return {"name": name, "objective": rest.pop("objective"), **swept, "fixed": rest}


def seeds_of(text: Any, where: str) -> Any:
    """`"0..8"`, or a list.

    >>> seeds_of("0..3", ""), seeds_of([5, 7], "")
    ([0, 1, 2, 3], [5, 7])
    """
    if isinstance(text, list):
        return text
    found = re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", str(text))
    if found is None or not 0 <= int(found[2]) - int(found[1]) < _MANY:
        raise BadInput(
            f'{where}: seeds={str(text)[:40]!r} must be "0..8" or a list of whole numbers, at most {_MANY:,}'
        )
    return list(range(int(found[1]), int(found[2]) + 1))


def from_json(document: Any) -> Grid:
    """What `Grid.to_json` wrote."""
    return _checked(document, "study.json")
