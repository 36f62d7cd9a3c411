"""Every public callable has a NumPy-style docstring: each parameter of its signature and no other, what it returns, and
an example (which pytest runs with the other doctests).

Public are the names of the Python reference (docs/site/reference.py): those of `unseam`, of its packages, every
objective and data set; and the classes that these take and return. The fields of a dataclass may be documented where
they stand, by a string below each.
"""

import ast
import dataclasses
import importlib
import inspect
import runpy
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from torch.nn import Module

import unseam
import unseam.metrics
from unseam import estimators

HEADS = ("Parameters", "Attributes", "Returns", "Raises", "See Also", "Notes", "Examples")


REFERENCE = Path(__file__).parents[1] / "docs/site/reference.py"
MORE = {  # what the functions take and return
    "unseam.run": ("Member", "Run", "RunConfig", "Training"),
    "unseam.models": ("Architecture", "Autoencoder"),
    "unseam.metrics": ("Scores",),
    "unseam.runs.export": ("export",),
    "unseam.show.film": ("Film", "film"),
}
NO_EXAMPLE = {"unseam.explore": "it serves until it is stopped"}


def public() -> dict[str, Any]:
    """name -> callable, each object once."""
    places = [("unseam", name) for name in unseam.__all__]
    places += [("unseam.estimators", name) for name in estimators.__all__]
    places += [("unseam.metrics", name) for name, call in vars(unseam.metrics).items() if hasattr(call, "of")]
    places += [(module, name) for module, names in MORE.items() for name in names]
    found: dict[int, tuple[str, Any]] = {}
    for module, name in places:
        thing = getattr(importlib.import_module(module), name)
        if callable(thing):
            found.setdefault(id(thing), (f"{module}.{name}", thing))
    for page in runpy.run_path(str(REFERENCE))["listed"]().values():
        for address, thing in page.items():
            if inspect.isclass(thing) or inspect.isroutine(inspect.unwrap(thing)):  # not a type alias
                found.setdefault(id(thing), (address, thing))
    return dict(found.values())


PUBLIC = public()


def sections(doc: str) -> dict[str, list[str]]:
    """Heading -> its lines; the text above the first heading is under ""."""
    out: dict[str, list[str]] = {"": []}
    lines, head = inspect.cleandoc(doc).splitlines(), ""
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        if line in HEADS and below == "-" * len(line):
            head = line
            out[head] = []
        elif not (head and not out[head] and set(line) == {"-"}):
            out[head].append(line)
    return out


def names_in(lines: list[str]) -> list[str]:
    """The names that a section of parameters describes: `a, b : int`, `**options`."""
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def fields_with_a_string(kind: type) -> set[str]:
    """The fields of a dataclass, its own and inherited ones, below which a string stands."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("unseam")]
    bodies = [ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body for base in ours]  # type: ignore[attr-defined]
    return {
        first.target.id
        for body in bodies
        for first, second in pairwise(body)
        if isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)
        and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant)
    }  # fmt: skip


def takes_of(thing: Any) -> list[str]:
    """The parameters of its signature; none of an exception, or of a class that takes what torch's Module takes."""
    if inspect.isclass(thing) and (issubclass(thing, Exception) or thing.__init__ is Module.__init__):
        return []
    return list(inspect.signature(thing).parameters)


def test_the_surface_is_walked() -> None:
    """The tests below look at something, of every kind."""
    assert {"unseam.fit", "unseam.find", "unseam.estimators.VAE", "unseam.metrics.mig"} <= set(PUBLIC)
    assert {"unseam.run.Run", "unseam.runs.export.export"} <= set(PUBLIC)
    assert {"unseam.objectives.elbo.BetaVAE", "unseam.data.sets.sprites.Sprites", "unseam.geometry.dto"} <= set(PUBLIC)
    assert len(PUBLIC) > 180


def test_sections_are_read() -> None:
    doc = "One.\n\nParameters\n----------\na, b : int\n    Two numbers.\n**more\n    Others.\n\nReturns\n-------\nint"
    found = sections(doc)
    assert names_in(found["Parameters"]) == ["a", "b", "more"]
    assert found["Returns"] == ["int"]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_described_and_no_other(name: str) -> None:
    thing = PUBLIC[name]
    found = sections(thing.__doc__ or "")
    assert found[""][0].strip(), "a first line that says what it is or does"
    takes = takes_of(thing)
    described = names_in(found.get("Parameters", []))
    if inspect.isclass(thing) and dataclasses.is_dataclass(thing) and not described:
        described = names_in(found.get("Attributes", [])) or [f for f in takes if f in fields_with_a_string(thing)]
    assert sorted(described) == sorted(takes)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_comes_back_is_described_with_an_example(name: str) -> None:
    thing = PUBLIC[name]
    found = sections(thing.__doc__ or "")
    if not inspect.isclass(thing) and inspect.signature(thing).return_annotation not in (None, "None"):
        assert found.get("Returns"), "Returns"
    assert name in NO_EXAMPLE or any(line.startswith(">>> ") for line in found.get("Examples", [])), "Examples"


def documented_methods() -> list[tuple[str, Callable[..., Any]]]:
    kinds = {name: kind for name, kind in PUBLIC.items() if inspect.isclass(kind)}
    return [
        (f"{name}.{method}", getattr(kind, method))
        for name, kind in kinds.items()
        for method in vars(kind)
        if not method.startswith("_") and callable(getattr(kind, method))
    ]


@pytest.mark.parametrize(("name", "method"), documented_methods())
def test_every_public_method_says_what_it_does(name: str, method: Callable[..., Any]) -> None:
    assert (inspect.getdoc(method) or "").strip(), name  # its own, or that of the method it implements
