"""`unseam bench [NAME ...]`: ratios against references, measured in the same run."""

from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import tyro

import unseam
from unseam.cli.common import AsJson, emit
from unseam.errors import BadInput, unknown

HERE = Path(unseam.__file__).parent


def folder() -> Path:
    """benchmarks/ beside the package (installed) or beside src/ (a checkout)."""
    for place in (HERE / "benchmarks", HERE.parents[1] / "benchmarks"):
        if place.is_dir():
            return place
    raise BadInput("the benchmarks folder is missing; run from a source checkout or reinstall unseam")


def _names(long: bool = True) -> list[str]:
    """All benchmarks, or (`long=False`) those that do not take hours. `find_calibration.py` is find-calibration."""
    sources = {p.stem.replace("_", "-"): p.read_text() for p in folder().glob("[!_]*.py")}
    return sorted(n for n, text in sources.items() if "\ndef run(" in text and (long or "\nLONG = True" not in text))


def run_benchmark(name: str, **options: Any) -> dict[str, Any]:
    """A whole benchmark (`cohort`, `find-calibration`) or a part of one (`cohort-conv`)."""
    whole, _, part = (name, "", "") if name in _names() else name.partition("-")
    if whole not in _names():
        raise unknown("benchmark", name, _names())
    module = _load(whole.replace("-", "_"))
    if getattr(module, "LONG", False):
        with_options: dict[str, Any] = module.run(**options)
        return with_options
    parts = getattr(module, "PARTS", ())
    if part and part not in parts:
        raise unknown("benchmark", name, [whole, *(f"{whole}-{p}" for p in parts)])
    found: dict[str, Any] = module.run((part,)) if part else module.run()
    return found


def _load(name: str) -> ModuleType:
    path = folder() / f"{name}.py"
    spec = spec_from_file_location(f"unseam_benchmark_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Command:
    """Measure speed and quality as ratios to references in the same run.

    Example: unseam bench cohort --json
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Which benchmarks, or parts of them (cohort-conv, metrics-suite); all when none is named, except those that take
    hours: find-calibration (how often `find` is wrong on simulated tables) and find-real-tables."""
    kinds: str = ""
    """find-calibration: kinds of tables, separated by commas (null, answer, linear and curved stand for groups);
    find-real-tables: names of tables. All when empty."""
    tables: int = 20
    """find-calibration: simulated tables of each kind."""
    workers: int = 1
    """find-calibration: processes."""
    out: Path | None = None
    """find-calibration, find-real-tables: folder of the results. The same command continues where it stopped."""
    json: AsJson = False

    def run(self) -> None:
        options = {"kinds": self.kinds, "tables": self.tables, "workers": self.workers, "out": self.out}
        results = {name: run_benchmark(name, **options) for name in self.names or _names(long=False)}
        ratios = {key: value for result in results.values() for key, value in result["ratios"].items()}
        how = "\n".join(f"{name}: {result['how']}" for name, result in results.items())
        if self.json:
            emit({"ratios": ratios, "how": how, "detail": results})
            return
        for name, result in results.items():
            print(f"{name}: {result['how']}")
            print(result["text"]) if "text" in result else None
            for key, value in result["ratios"].items():
                turns = result.get(key.partition("-")[2], {})
                spread = f"   ({turns['smallest']:.2f} to {turns['largest']:.2f})" if "smallest" in turns else ""
                print(f"  {key:<40} {value:8.2f}x{spread}")
