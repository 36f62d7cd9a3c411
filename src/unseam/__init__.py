"""unseam: which independent factors is this data made of, and does a latent space really separate them?

The public names, loaded when first used (so that `import unseam.metrics` does not import torch).
"""

from typing import TYPE_CHECKING

from unseam.lazy import lazy_names

if TYPE_CHECKING:  # so that type checkers and editors know them; a test compares both lists
    from unseam.axes import Factor, FactorSpace
    from unseam.data import load_data
    from unseam.errors import BadInput
    from unseam.finding import Findings, find
    from unseam.matching import match
    from unseam.metrics import score
    from unseam.run import load_run
    from unseam.runs.align import load_alignment
    from unseam.runs.any_model import align, diagnose, theorems
    from unseam.show.any_model import explore, traverse
    from unseam.show.demo import demo
    from unseam.show.plot import plot
    from unseam.show.report import report
    from unseam.show.report.write import figures
    from unseam.train import fit, resume

__version__ = "0.1.0"

PUBLIC = {
    "BadInput": "unseam.errors",
    "Factor": "unseam.axes",
    "FactorSpace": "unseam.axes",
    "load_data": "unseam.data",
    "fit": "unseam.train",
    "resume": "unseam.train",
    "load_run": "unseam.run",
    "find": "unseam.finding",
    "Findings": "unseam.finding",
    "score": "unseam.metrics",
    "match": "unseam.matching",
    "diagnose": "unseam.runs.any_model",
    "align": "unseam.runs.any_model",
    "theorems": "unseam.runs.any_model",
    "load_alignment": "unseam.runs.align",
    "explore": "unseam.show.any_model",
    "traverse": "unseam.show.any_model",
    "demo": "unseam.show.demo",
    "plot": "unseam.show.plot",
    "report": "unseam.show.report",
    "figures": "unseam.show.report.write",
}
__all__ = [
    "BadInput", "Factor", "FactorSpace", "Findings", "__version__", "align", "demo", "diagnose", "explore", "figures",
    "find", "fit", "load_alignment", "load_data", "load_run", "match", "plot", "report", "resume", "score", "theorems",
    "traverse",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, PUBLIC)


def __dir__() -> list[str]:
    return __all__
