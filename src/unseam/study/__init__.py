"""Grids of runs: the 12,600-model study of Locatello et al. (2019) and its smaller relatives, resumable, anywhere."""

from unseam.study.engine import study
from unseam.study.grid import Grid, load_grid
from unseam.study.table import Study, load

__all__ = ["Grid", "Study", "load", "load_grid", "study"]
