"""The house as DESIGN.md draws it: rooms import only from rooms before them, nothing goes in a circle, what is imported
is declared, and CONTRIBUTING's lists name the files that the last example of each kind really touched."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
PACKAGES = ("unseam", "unseam_papers")
ROOMS = (
    ("axes", "errors", "lazy", "rng", "progress", "atomic", "device", "from_json", "processes"),
    ("readers",), ("stats",), ("data",), ("models",), ("linear",), ("geometry",), ("objectives",), ("run",), ("train",),
    ("metrics",), ("runs",), ("matching",), ("perturb",), ("study",), ("finding",), ("sklearn_api", "estimators"),
    ("show",), ("unseam_papers",), ("cli", "__main__"),
)  # fmt: skip
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
FILES, LINES = 350, 420  # of `unseam`: how many at most; of each: how long
# imports inside functions that go from a lower room to a higher one, and why
LAZY: dict[tuple[str, str], str] = {}


class Edge(NamedTuple):
    """`source` imports `target` (names of modules); how: at once, when a function is called, or only for types."""

    source: str
    target: str
    how: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} ({self.how})"


@cache
def modules() -> dict[str, Path]:
    paths = [path for package in PACKAGES for path in (SRC / package).rglob("*.py")]
    return {".".join(p.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): p for p in paths}


def imports(tree: ast.AST, how: str = "at once") -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, how
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(node, "types")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imports(node, "lazy")
        else:
            yield from imports(node, how)


def named(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Every name that an import may mean; `from a import b` is a.b when that is a module, else a."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    joined = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name if name in modules() else str(node.module) for name in joined]


@cache
def edges() -> tuple[Edge, ...]:
    found = {
        Edge(source, target, how)
        for source, path in modules().items()
        for node, how in imports(ast.parse(path.read_text()))
        for target in named(node)
        if target in modules() and target != source
    }
    return tuple(sorted(found))


def room(module: str) -> str:
    package, _, rest = module.partition(".")
    return "unseam_papers" if package == "unseam_papers" else rest.partition(".")[0]


def test_the_graph_is_drawn() -> None:
    """The tests below look at something: known edges of each kind are found."""
    assert Edge("unseam.train.loop", "unseam.train.stack", "at once") in edges()
    assert Edge("unseam.axes", "unseam.models.posterior", "types") in edges()
    assert Edge("unseam.cli.reproduce", "unseam_papers", "lazy") in edges()
    assert len(edges()) > 500


def test_no_module_shadows_the_standard_library() -> None:
    """Python started inside a folder of ours must still find its own `types`, `statistics`, `trace`, ..."""
    stems = {path.parent.name if path.stem == "__init__" else path.stem for path in modules().values()}
    assert stems & sys.stdlib_module_names == set()


def test_files_are_few_and_short() -> None:
    """At most so many files, and none that cannot be read in one sitting; what a verb runs through: test_walks.py."""
    lines = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert len([name for name in lines if not name.startswith("unseam_papers")]) <= FILES
    assert {name: count for name, count in lines.items() if count > LINES} == {}


def test_nothing_imitates_a_class() -> None:
    """A row that another part reads is of a class with fields: a renamed field is found by mypy, not at run time."""
    users = [name for name, path in modules().items() if "SimpleNamespace" in path.read_text()]
    assert users == []


def test_every_room_is_in_the_plan() -> None:
    assert {room(module) for module in modules()} - {""} <= set(FLOOR)


def test_contributing_draws_every_room_in_order() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text().split("```")[1]
    drawn = [word.strip("/") for line in tree.splitlines() if line.startswith("  ") for word in line[:37].split()]
    assert set(drawn) == set(FLOOR) - {"unseam_papers", "__main__"}
    assert [FLOOR[room] for room in drawn] == sorted(FLOOR[room] for room in drawn)


def test_rooms_import_only_from_rooms_before_them() -> None:
    def wrong(edge: Edge) -> bool:
        source, target = room(edge.source), room(edge.target)
        if "" in (source, target) or edge.how == "types":  # the root holds names and the version only
            return False
        return FLOOR[target] > FLOOR[source] and not (edge.how == "lazy" and (edge.source, edge.target) in LAZY)

    assert [str(edge) for edge in edges() if wrong(edge)] == []


def test_listed_exceptions_still_exist() -> None:
    assert [pair for pair in LAZY if Edge(*pair, "lazy") not in edges()] == []


def test_nothing_imports_in_a_circle() -> None:
    """Depth first over imports made at once; a way back to a module still being looked at is a circle."""
    after = {module: [e.target for e in edges() if e.source == module and e.how == "at once"] for module in modules()}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way[way.index(module) :], module))
        if module not in done:
            for target in after[module]:
                visit(target, (*way, module))
            done.add(module)

    for module in modules():
        visit(module, ())


def test_papers_are_imported_by_their_verb_alone() -> None:
    doors = {e.source for e in edges() if room(e.target) == "unseam_papers" and room(e.source) != "unseam_papers"}
    assert doors == {"unseam.cli.reproduce"}


NAMES = {
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "dask_jobqueue": "dask-jobqueue",
    "huggingface_hub": "huggingface-hub",
}  # where the import is called otherwise than the distribution


def test_what_is_imported_is_declared() -> None:
    """Every import of src is Python's own, ours, a dependency, or (inside a function or a try) an extra's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines]
    declared = {re.split(r"[<>=\[]", line)[0] for line in (*project["dependencies"], *extras)}
    missing = {
        f"{module} imports {name}"
        for module, path in modules().items()
        for node, _ in imports(ast.parse(path.read_text()))
        for name in {full.partition(".")[0] for full in named(node)}
        if name not in sys.stdlib_module_names and name not in PACKAGES and NAMES.get(name, name) not in declared
    }
    assert missing == set()


_EXHIBIT = "the protocol of an exhibit: `unseam_papers.frame.exhibit` reads it from each exhibit's module"
_ADAPTER = "the protocol of an adapter: `unseam.models.adapters` asks each module in turn"
_LEVELS = "the same question, first of arrays, then of a trained run and of anybody's model"
SHARED = {  # public names that more than one module defines, and why
    **dict.fromkeys(["ID", "TITLE", "CLAIM", "SOURCE", "PAPER", "CHOICES", "SCALES", "Settings"], _EXHIBIT),
    **dict.fromkeys(["compute", "judge", "draw", "conclude"], _EXHIBIT),
    "PUBLISHED": "what the source of an exhibit or analysis prints, beside ours",
    "RULES": "what the rows of an exhibit test, fixed before its run",
    "NEEDS": "the columns that an analysis of a study needs; `unseam.study.analyse` reads it",
    "Command": "the protocol of a verb: `unseam.cli` reads it from each verb's module",
    "adapt": _ADAPTER,
    "matches": _ADAPTER,
    "diagnose": _LEVELS,
    "align": _LEVELS,
    "PPCA": "the closed form, and the scikit-learn estimator that wraps it",
    "LinearVAE": "the closed form, and the scikit-learn estimator that wraps it",
    "VAE": "the objective, and the scikit-learn estimator that trains it",
    "entanglement_cost": "the definition, and its closed form for the linear VAE that tests compare it with",
    "partition_information": "the metric, and the formula of samples that it calls",
    "fit": "`unseam.fit`, and `ppca.fit` of a closed form, which is used with its module's name",
}


def public_names(tree: ast.Module) -> Iterator[str]:
    """Names without an underscore that a module defines at its top level."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        yield from (name for name in names if not name.startswith("_"))


def test_a_public_name_stands_in_one_module() -> None:
    """A search for a name finds one definition. A helper of one module starts with an underscore."""
    where: dict[str, set[str]] = {}
    for module, path in modules().items():
        for name in public_names(ast.parse(path.read_text())):
            where.setdefault(name, set()).add(module)
    twice = {name: sorted(places) for name, places in where.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in SHARED} == {}
    assert sorted(set(SHARED) - set(twice)) == [], "no longer shared: remove it from SHARED"
    assert len(SHARED) <= 40


def last_examples() -> dict[str, tuple[str, str | None]]:
    """Section of CONTRIBUTING -> the module of the last example of that kind, and its class where it has one."""
    from unseam.cli import VERBS
    from unseam.data import DATASETS
    from unseam.metrics import METRICS
    from unseam.models import posterior
    from unseam.objectives import OBJECTIVES
    from unseam_papers import EXHIBITS

    objective, data = list(OBJECTIVES.values())[-1], list(DATASETS.values())[-1]
    return {
        "An objective": (objective.__module__, objective.__name__),
        "A metric": (list(METRICS.values())[-1].compute.__module__, None),
        "A data set": (data.__module__, data.__name__),
        "A posterior family": (posterior.__name__, posterior.Quantised.__name__),
        "An exhibit": (list(EXHIBITS.values())[-1].compute.__module__, None),
        "A verb": (f"unseam.cli.{list(VERBS.values())[-1][0]}", None),
    }


def touched(module: str, name: str | None) -> set[str]:
    """The files of src that mention an example: where it stands, who imports it, who names it as a verb."""
    home, stem = modules()[module], module.rpartition(".")[2]
    sources = {module}
    for source, path in modules().items():
        for node, _ in imports(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names]
            if name in names if name else module in named(node):
                sources.add(source)
        if name and f'"{module}:{name}"' in path.read_text():  # a row of names.py
            sources.add(source)
        if home.parent.name == "cli" and f'"{stem}": ("{stem}"' in path.read_text():
            sources.add(source)
    return {str(modules()[source].relative_to(ROOT)) for source in sources}


@pytest.mark.parametrize(
    "section", ["An objective", "A metric", "A data set", "A posterior family", "An exhibit", "A verb"]
)
def test_contributing_names_the_files_to_touch(section: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    said = {path for path in re.findall(r"`(src/[\w/.]+\.py)`", part) if "mine.py" not in path}
    module, name = last_examples()[section]
    new = 1 if "mine.py`" in part else 0
    found = touched(module, name)
    assert said <= found, f"{section}: CONTRIBUTING names {said - found}, which {module} does not touch"
    assert len(found) == len(said) + new, f"{section}: {module} touches {sorted(found)}"


def test_every_mutant_still_has_its_line() -> None:
    """`tests/mutants.py` takes minutes; that its lines are there takes none, and they move when code does."""
    from mutants import EVERY

    assert [m.wrong for m in EVERY if (SRC / m.file).read_text().count(m.line) != 1] == []
    assert len({m.wrong for m in EVERY}) == len(EVERY)  # a log of results has them by this sentence


def catches_all(node: ast.AST) -> bool:
    """`except:`, `except Exception` or `suppress(Exception)`, alone or among others, and not raised again as it is."""
    if isinstance(node, ast.ExceptHandler):
        caught = node.type
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and node.args:
        caught = ast.Tuple(node.args)
    else:
        return False
    names = {"*"} if caught is None else {n.id for n in ast.walk(caught) if isinstance(n, ast.Name)}
    return bool(names & {"*", "Exception", "BaseException"})


def test_what_catches_every_error_says_why() -> None:
    """Such a place hides bugs: it needs a reason in a comment on its line, or a narrower class."""
    found, silent = 0, []
    for module, path in modules().items():
        lines = path.read_text("utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if catches_all(node):
                found += 1
                if not re.search(r"#\s+\w+ \w+", lines[node.lineno - 1].replace("# noqa", "")):
                    silent.append(f"{module}:{node.lineno}")
    assert found
    assert silent == []
