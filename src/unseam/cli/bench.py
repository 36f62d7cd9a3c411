"""`unseam bench [NAME ...]`: ratios against references, measured in the same run."""

from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import tyro

import unseam
from unseam.cli.common import emit
from unseam.cli.options import AsJson
from unseam.errors import BadInput, unknown

HERE = Path(unseam.__file__).parent


def folder() -> Path:
    """benchmarks/ beside the package (installed) or beside src/ (a checkout)."""
    for place in (HERE / "benchmarks", HERE.parents[1] / "benchmarks"):
        if place.is_dir():
            return place
    raise BadInput("the benchmarks folder is missing; run from a source checkout or reinstall unseam")


def names() -> list[str]:
    return sorted(p.stem for p in folder().glob("[!_]*.py") if "\ndef run(" in p.read_text())


def measure(name: str) -> dict[str, Any]:
    """A whole benchmark (`cohort`) or a part of one (`cohort-conv`)."""
    whole, _, part = name.partition("-")
    if whole not in names():
        raise unknown("benchmark", name, names())
    module = load(whole)
    parts = getattr(module, "PARTS", ())
    if part and part not in parts:
        raise unknown("benchmark", name, [whole, *(f"{whole}-{p}" for p in parts)])
    found: dict[str, Any] = module.run((part,)) if part else module.run()
    return found


def load(name: str) -> ModuleType:
    path = folder() / f"{name}.py"
    spec = spec_from_file_location(f"unseam_benchmark_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Command:
    """Measure speed as ratios against references in the same run.

    Example: unseam bench cohort --json
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which benchmarks, or parts of them (cohort-conv, metrics-suite); all when none is named."""
    json: AsJson = False

    def run(self) -> None:
        results = {name: measure(name) for name in self.names or names()}
        ratios = {key: value for result in results.values() for key, value in result["ratios"].items()}
        how = "\n".join(f"{name}: {result['how']}" for name, result in results.items())
        if self.json:
            emit({"ratios": ratios, "how": how, "detail": results})
            return
        for name, result in results.items():
            print(f"{name}: {result['how']}")
            for key, value in result["ratios"].items():
                turns = result.get(key.partition("-")[2], {})
                spread = f"   ({turns['smallest']:.2f} to {turns['largest']:.2f})" if "smallest" in turns else ""
                print(f"  {key:<40} {value:8.2f}x{spread}")
