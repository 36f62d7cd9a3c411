"""Results are rows: `results.sqlite` of a run folder. Writing a row again replaces it, so a resumed run repeats none.

Every column is defined in docs/rows.md.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseam.errors import BadInput, lookup

if TYPE_CHECKING:
    import pandas as pd

# table -> its key, and its other columns with their types; a column missing in an older file reads as null
KEYS = {"runs": ("member",), "log": ("member", "step", "name"), "latents": ("member", "step", "latent"),
        "scores": ("member", "name")}  # fmt: skip
TABLES: dict[str, dict[str, str]] = {
    "runs": {"member": "integer", "seed": "integer", "hyper": "text", "status": "text", "step": "integer",
             "loss": "real", "reconstruction": "real", "kl": "real", "active": "integer", "seconds": "real",
             "note": "text"},
    "log": {"member": "integer", "step": "integer", "name": "text", "value": "real"},
    "latents": {"member": "integer", "step": "integer", "latent": "integer", "kl": "real", "mu_std": "real",
                "mu2": "real", "sigma2": "real", "log_sigma2": "real"},
    "scores": {"member": "integer", "name": "text", "value": "real", "detail": "text"},
}  # fmt: skip


class Results:
    """The tables of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.sqlite"

    def create(self) -> None:
        """Every table and column that is not there yet."""
        try:
            with closing(self.open()) as connection, connection:
                connection.execute("pragma journal_mode=wal")
                for table, columns in TABLES.items():
                    _complete(connection, table, columns)
        except sqlite3.OperationalError:  # the machine's: a full disk, a lock
            raise
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{self.path} is damaged ({error}); delete it, then --resume makes it again") from None

    def write(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows by the names of their columns; a row of the same key is replaced, a column not named is null."""
        known, rows = lookup(TABLES, table, "table"), list(rows)
        names = list(dict.fromkeys(name for row in rows for name in row))
        if strange := [name for name in names if name not in known]:
            raise BadInput(f"{strange[0]!r} is no column of {table}; it has {', '.join(known)}")
        if rows:
            marks = ", ".join(f":{name}" for name in names)
            insert = f"insert or replace into {table} ({', '.join(names)}) values ({marks})"
            with closing(self.open()) as connection, connection:
                connection.executemany(insert, [dict.fromkeys(names) | dict(row) for row in rows])

    def read(self, table: str) -> pd.DataFrame:
        """A whole table; a folder that cannot be written can be read."""
        import pandas as pd  # half a second that training need not pay

        columns = lookup(TABLES, table, "table")
        try:
            with closing(self.open(read_only=True)) as connection:
                frame = pd.read_sql_query(f"select * from {table}", connection)
            frame = frame.reindex(columns=[*columns, *(name for name in frame if name not in columns)])
            return frame.astype({name: float for name, kind in columns.items() if kind == "real"})  # all null is nan
        except (sqlite3.DatabaseError, pd.errors.DatabaseError, ValueError, TypeError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise BadInput(f"{self.path} cannot be read ({reason}); `unseam train --resume` makes what is missing, "
                           "a damaged file must be deleted first") from None  # fmt: skip

    def write_scores(self, member: int, scores: Mapping[str, tuple[float, Mapping[str, Any]]]) -> None:
        rows = scores.items()
        self.write("scores", [{"member": member, "name": n, "value": v, "detail": json.dumps(d)} for n, (v, d) in rows])

    def reopen(self, step: int) -> None:
        """Forget the final numbers of a run that goes on from this step, and scores of the weights it had."""
        with closing(self.open()) as connection, connection:
            connection.execute("delete from latents where step >= ?", (step,))
            connection.execute("delete from scores")
            connection.execute("delete from runs")

    def first(self, name: str) -> dict[int, float]:
        """member -> what was logged under this name at its first step."""
        query = "select member, value from log where name = ? and step = 0"
        with closing(self.open(read_only=True)) as connection:
            return {
                int(member): float(value) for member, value in connection.execute(query, (name,)) if value is not None
            }

    def open(self, read_only: bool = False) -> sqlite3.Connection:
        """A connection; for reading also in a folder that cannot be written."""
        if not read_only:
            connection = sqlite3.connect(self.path, timeout=60)
            connection.execute("pragma synchronous=normal")
            return connection
        place, wal = self.path.resolve().as_uri(), self.path.with_name(f"{self.path.name}-wal")
        try:
            return _checked(sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=60))
        except sqlite3.OperationalError:  # in a folder that cannot be written, only a file said not to change opens
            if wal.exists() and wal.stat().st_size:  # it would be read without its last rows
                raise
            return _checked(sqlite3.connect(f"{place}?immutable=1", uri=True))


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("select count(*) from sqlite_master").fetchone()
    return connection


def _complete(connection: sqlite3.Connection, table: str, columns: Mapping[str, str]) -> None:
    described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    key = ", ".join(KEYS[table])
    connection.execute(f"create table if not exists {table} ({described}, primary key ({key})) without rowid")
    for name in columns.keys() - _columns(connection, table):
        connection.execute(f"alter table {table} add column {name} {columns[name]}")


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"pragma table_info({table})")}
