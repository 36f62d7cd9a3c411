"""A pytest plugin: tests in another order, by the number in UNSEAM_SHUFFLE (`-p shuffle`).

Files change places, and tests inside a file; those of one file stay together, or fixtures of a file would be made anew
for every test.
"""

import os
import random
from itertools import groupby

import pytest


def shuffled(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    rng = random.Random(seed)
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    rng.shuffle(files)
    for file in files:
        rng.shuffle(file)
    return [item for file in files for item in file]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = shuffled(items, os.environ.get("UNSEAM_SHUFFLE", "0"))
