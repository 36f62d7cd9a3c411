"""Results are rows: `results.sqlite` of a run folder. Writing a row again replaces it, so a resumed run repeats none.

Every logged name is defined in docs/rows.md.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

SCHEMA = """
create table if not exists runs (member integer primary key, seed integer, hyper text, status text, step integer,
    loss real, reconstruction real, kl real, active integer, seconds real, note text);
create table if not exists log (member integer, step integer, name text, value real, primary key (member, step, name))
    without rowid;
create table if not exists latents (member integer, step integer, latent integer, kl real, mu_std real, mu2 real,
    sigma2 real, log_sigma2 real, primary key (member, step, latent)) without rowid;
create table if not exists scores (member integer, name text, value real, detail text, primary key (member, name))
    without rowid;
"""
COLUMNS = {
    "runs": 11,
    "log": 4,
    "latents": 8,
    "scores": 4,
}


class Rows:
    """The tables of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.sqlite"

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60)
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=normal")
        return connection

    def create(self) -> None:
        with closing(self._open()) as connection, connection:
            connection.executescript(SCHEMA)

    def write(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        marks = ",".join("?" * COLUMNS[table])
        with closing(self._open()) as connection, connection:
            connection.executemany(f"insert or replace into {table} values ({marks})", rows)

    def read(self, table: str) -> pd.DataFrame:
        with closing(self._open()) as connection:
            return pd.read_sql_query(f"select * from {table}", connection)

    def write_scores(self, member: int, scores: Mapping[str, tuple[float, Mapping[str, Any]]]) -> None:
        self.write("scores", [(member, name, value, json.dumps(detail)) for name, (value, detail) in scores.items()])
