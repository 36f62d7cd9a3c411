"""The representations of known quality ship with the benchmarks; the tests measure on the same ones."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
