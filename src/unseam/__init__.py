"""unseam: which independent factors is this data made of, and does a latent space really separate them?

The public names, loaded when first used (so that `import unseam.metrics` does not import torch).
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

PUBLIC = {
    "BadInput": "unseam.errors",
    "Factor": "unseam.types",
    "FactorSpace": "unseam.types",
    "load_data": "unseam.data",
    "fit": "unseam.train",
    "resume": "unseam.train",
    "load_run": "unseam.train",
    "score": "unseam.metrics",
    "diagnose": "unseam.geometry",
    "align": "unseam.geometry",
    "load_alignment": "unseam.runs.align",
    "demo": "unseam.show",
    "report": "unseam.show",
}
__all__ = sorted([*PUBLIC, "__version__"])


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(import_module(PUBLIC[name]), name)
    raise AttributeError(f"module 'unseam' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
