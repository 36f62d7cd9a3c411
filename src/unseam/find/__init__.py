"""Unlabelled data -> findings: which independent factors is it made of, and how sure is that?

    found = unseam.find("wine.csv")
    print(found)                      # two sentences, then a line a factor
    found.transform(new_rows)

The package itself can be called, because `unseam.find` is both the function and the room it lives in.
"""

import sys
from types import ModuleType
from typing import Any

from unseam.find.findings import Findings, FoundFactor
from unseam.find.search import find

__all__ = ["Findings", "FoundFactor", "find"]


class _Callable(ModuleType):
    def __call__(self, data: Any, **options: Any) -> Findings:
        return find(data, **options)


sys.modules[__name__].__class__ = _Callable
