"""Independent fits side by side: a few threads, one BLAS/OpenMP thread each (the fits release the GIL)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import ThreadpoolController

from unseam.atomic import cores

if TYPE_CHECKING:
    from unseam.metrics.inputs import Inputs

S = TypeVar("S")
_T = TypeVar("_T")


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS and OpenMP with one thread in this block.

    A small problem gains nothing by a second thread, and where the cores are taken each call waits for it.
    """
    return _controller(len(sys.modules)).limit(limits=1)


@lru_cache(1)
def _controller(modules: int) -> ThreadpoolController:
    """The libraries that are loaded: to look for them takes milliseconds, and only an import brings new ones."""
    return ThreadpoolController()


def side_by_side(function: Callable[[S], _T], items: Iterable[S], workers: int | None = None) -> list[_T]:
    """[function(item) for item in items], on `workers` threads (all cores when None), in the order of items.

    >>> side_by_side(lambda x: x * x, [1, 2, 3], workers=2)
    [1, 4, 9]
    """
    with one_blas_thread(), ThreadPoolExecutor(workers or cores()) as pool:
        return list(pool.map(function, items))


def factor_by_factor(function: Callable[[int], _T], inputs: Inputs) -> list[_T]:
    """[function(f) for every factor f], side by side, the factor with the most classes first."""
    longest_first = sorted(range(len(inputs.classes)), key=lambda f: -inputs.classes[f])
    found = dict(zip(longest_first, side_by_side(function, longest_first, inputs.workers), strict=True))
    return [found[f] for f in range(len(inputs.classes))]
