"""The Python reference: one page per topic, generated from the docstrings of every public name."""

import ast
import importlib
import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# page -> (title, what is on it, modules whose public names it lists)
TOPICS = {
    "unseam": ("unseam", "The names that most users need.", ["unseam"]),
    "estimators": ("Estimators for scikit-learn", "See [how to use them](../estimators.md).", ["unseam.estimators"]),
    "finding": ("Finding factors", "What `unseam.find` is made of.", ["unseam.finding"]),
    "models": ("Models and training", "Objects that `unseam.fit` takes and returns.", ["unseam.models", "unseam.run"]),
    "objectives": ("Objectives", "One class each; [what they minimise](../objectives.md).", ["unseam.objectives"]),
    "data": ("Data sets", "One class each; [what they show](../data.md).", ["unseam.data"]),
    "metrics": ("Metrics", "Functions of arrays; [which to choose](../metrics/index.md).", ["unseam.metrics"]),
    "geometry": ("Geometry of decoders", "The parts of `diagnose` and `align`.", ["unseam.geometry"]),
    "linear": ("Closed forms", "Linear models whose answers are exact.", ["unseam.linear"]),
}


def imported(module: str) -> list[str]:
    """The names that a package imports for others, in the order in which it does: without importing anything."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    found = [
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("unseam.")
        and node.module != "unseam.lazy"
        for alias in node.names
    ]
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


def public(module: str) -> dict[str, Any]:
    """Functions and classes of a package by name."""
    package = importlib.import_module(module)
    names = getattr(package, "__all__", None) or imported(module)
    things = {name: getattr(package, name) for name in names}
    return {name: thing for name, thing in things.items() if callable(thing) and not name.startswith("_")}


def listed() -> dict[str, dict[str, Any]]:
    """Every public name by its address, page by page; each thing once."""
    from unseam.data import DATASETS
    from unseam.objectives import OBJECTIVES

    found: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for page, (_, _, modules) in TOPICS.items():
        things = {f"{module}.{name}": thing for module in modules for name, thing in public(module).items()}
        classes = {"objectives": OBJECTIVES, "data": DATASETS}.get(page, {}).values()
        things |= {f"{kind.__module__}.{kind.__qualname__}": kind for kind in classes}
        found[page] = {address: thing for address, thing in things.items() if id(thing) not in seen}
        seen |= {id(thing) for thing in things.values()}
    return found


def entry(address: str, thing: Any) -> str:
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    return f".. {kind}:: {address}\n"


def pages() -> dict[str, str]:
    """One page per topic and the page that lists them."""
    made = {}
    for page, things in listed().items():
        title, words, _ = TOPICS[page]
        short = [".. autosummary::", "   :nosignatures:", "", *(f"   {address}" for address in things), ""]
        entries = [entry(address, thing) for address, thing in things.items()]
        body = "\n".join([*short, *entries])
        made[f"api/{page}.md"] = f"# {title}\n\n{words}\n\n```{{eval-rst}}\n{body}\n```\n"
    return made
