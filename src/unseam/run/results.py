"""Results are rows: `results.sqlite` of a run folder. Writing a row again replaces it, so a resumed run repeats none.

Every column is defined in docs/rows.md.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unseam.atomic import check_guard
from unseam.errors import BadInput, is_damage, lookup

if TYPE_CHECKING:
    import pandas as pd

# table -> its key, and its other columns with their types; a column missing in an older file reads as null
KEYS = {"runs": ("member",), "log": ("member", "step", "name"), "latents": ("member", "step", "latent"),
        "scores": ("member", "name")}  # fmt: skip
TABLE_COLUMNS: dict[str, dict[str, str]] = {
    "runs": {"member": "integer", "seed": "integer", "hyper": "text", "status": "text", "step": "integer",
             "loss": "real", "reconstruction": "real", "kl": "real", "active": "integer", "seconds": "real",
             "note": "text", "engine": "text"},
    "log": {"member": "integer", "step": "integer", "name": "text", "value": "real"},
    "latents": {"member": "integer", "step": "integer", "latent": "integer", "kl": "real", "mu_std": "real",
                "mu2": "real", "sigma2": "real", "log_sigma2": "real"},
    "scores": {"member": "integer", "name": "text", "value": "real", "detail": "text"},
}  # fmt: skip


_SHARED: ContextVar[tuple[dict[tuple[Path, bool], sqlite3.Connection], ExitStack] | None] = ContextVar(
    "shared", default=None
)  # (path, read_only) -> connection, inside `shared_connections`


@contextmanager
def shared_connections() -> Iterator[None]:
    """Inside this block a file is opened once to read and once to write, however many tables are read.

    Other threads open their own. Connections are closed when the outermost block ends.
    """
    if _SHARED.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _SHARED.set(({}, stack))
        try:
            yield
        finally:
            _SHARED.reset(token)


class Results:
    """The tables of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.sqlite"

    def create(self) -> None:
        """Every table and column that is not there yet; nothing else makes the file."""
        try:
            with closing(self.open(create=True)) as connection, connection:
                connection.execute("pragma journal_mode=wal")
                for table, columns in TABLE_COLUMNS.items():
                    _complete(connection, table, columns)
        except sqlite3.OperationalError:  # the machine's fault: a full disk, a lock
            raise
        except sqlite3.DatabaseError as error:
            raise self.damage(error) from None

    def damage(self, what: object) -> BadInput:
        """The error for a file that does not hold what training wrote."""
        remedy = f"delete it, then `unseam train --resume {self.path.parent}` writes it again, without its scores"
        return BadInput(
            f"{self.path} is damaged, or does not fit config.json beside it ({what}); put a copy back, or {remedy}"
        )

    def check(self, members: int, latents: int) -> None:
        """Refuse a file that training did not write; checked once, when a run is opened.

        Tables only, with their columns and types, one row per member in `runs`, and every latent of a member at every
        step that has one. A run that has not begun has no file, one that is still training has fewer rows.
        """
        if not self.path.exists():
            return
        try:
            with self.connection(read_only=True) as connection:
                (state,) = connection.execute("pragma quick_check(1)").fetchone()
                found = None if state == "ok" else state
                found = found or next(_complaints(connection, members, latents), None)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            found = str(error)
        if found:
            raise self.damage(found)

    def write(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows by the names of their columns; a row of the same key is replaced, a column not named is null."""
        known, rows = lookup(TABLE_COLUMNS, table, "table"), list(rows)
        names = list(dict.fromkeys(name for row in rows for name in row))
        if strange := [name for name in names if name not in known]:
            raise BadInput(f"{strange[0]!r} is not a column of {table}; it has {', '.join(known)}")
        if rows:
            marks = ", ".join(f":{name}" for name in names)
            check_guard()
            insert = f"insert or replace into {table} ({', '.join(names)}) values ({marks})"
            with self.connection() as connection, connection:
                connection.executemany(insert, [dict.fromkeys(names) | dict(row) for row in rows])

    def read(self, table: str) -> pd.DataFrame:
        """A whole table; a folder that cannot be written can be read."""
        import pandas as pd  # half a second that training need not pay

        columns = lookup(TABLE_COLUMNS, table, "table")
        try:
            with self.connection(read_only=True) as connection:
                frame = pd.read_sql_query(f"select * from {table}", connection)
            frame = frame.reindex(columns=[*columns, *(name for name in frame if name not in columns)])
            return frame.astype({name: float for name, kind in columns.items() if kind == "real"})  # all null is nan
        except (sqlite3.DatabaseError, pd.errors.DatabaseError, ValueError, TypeError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            if not self.path.exists():
                again = f"`unseam train --resume {self.path.parent}` writes it"
                raise BadInput(f"{self.path} is missing, and with it the results of this run; {again}") from None
            if isinstance(error, sqlite3.OperationalError) and not is_damage(
                error
            ):  # the machine's fault: a lock, a full disk
                raise
            raise self.damage(reason) from None

    def write_scores(self, member: int, scores: Mapping[str, tuple[float, Mapping[str, Any]]]) -> None:
        rows = scores.items()
        self.write("scores", [{"member": member, "name": n, "value": v, "detail": json.dumps(d)} for n, (v, d) in rows])

    def reopen(self, step: int) -> None:
        """Delete the final numbers of a run that continues from this step, and the scores of its old weights."""
        with self.connection() as connection, connection:
            connection.execute("delete from latents where step >= ?", (step,))
            connection.execute("delete from scores")
            connection.execute("delete from runs")

    def first(self, name: str) -> dict[int, float]:
        """member -> what was logged under this name at its first step."""
        query = "select member, value from log where name = ? and step = 0"
        with self.connection(read_only=True) as connection:
            return {
                int(member): float(value) for member, value in connection.execute(query, (name,)) if value is not None
            }

    @contextmanager
    def connection(self, read_only: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for this block: its own, or the one of the surrounding `shared_connections`."""
        if (shared := _SHARED.get()) is None:
            with closing(self.open(read_only)) as connection:
                yield connection
            return
        connections, stack = shared
        key = (self.path, read_only)
        if key not in connections:
            connections[key] = stack.enter_context(closing(self.open(read_only)))
        yield connections[key]

    def open(self, read_only: bool = False, create: bool = False) -> sqlite3.Connection:
        """A connection; for reading also in a folder that cannot be written. Only `create` makes a file."""
        if not read_only:
            mode = "rwc" if create else "rw"
            connection = _checked(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode={mode}", uri=True, timeout=60))
            connection.execute("pragma synchronous=normal")
            return connection
        place, wal = self.path.resolve().as_uri(), self.path.with_name(f"{self.path.name}-wal")
        try:
            return _checked(sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=60))
        except sqlite3.OperationalError:  # in a folder that cannot be written, only a file declared immutable opens
            if wal.exists() and wal.stat().st_size:  # it would be read without its last rows
                raise
            return _checked(sqlite3.connect(f"{place}?mode=ro&immutable=1", uri=True))


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, if the file holds plain tables only.

    A view, a trigger, a virtual table or a generated column is a program: reading it may take all memory.
    """
    connection.execute("pragma trusted_schema=off")
    named = "select type, name, sql from sqlite_master where type not in ('table', 'index') or sql like '%virtual%'"
    for kind, name, sql in connection.execute(named):
        if kind != "table" or " ".join(sql.lower().split()).startswith("create virtual"):
            connection.close()
            what = "virtual table" if kind == "table" else kind
            raise sqlite3.DatabaseError(f"it holds a {what} {name!r}, and only tables are read")
    for table in TABLE_COLUMNS:
        if any(row[6] for row in connection.execute(f"pragma table_xinfo({table})")):
            connection.close()
            raise sqlite3.DatabaseError(f"table {table!r} computes columns, and only stored ones are read")
    return connection


STORED = {"integer": "('integer', 'null')", "real": "('real', 'integer', 'null')", "text": "('text', 'null')"}


def _complaints(connection: sqlite3.Connection, members: int, latents: int) -> Iterator[str]:
    """Descriptions of rows that training would not have written; the first is enough."""
    for table, columns in TABLE_COLUMNS.items():
        known = _columns(connection, table)
        if missing := [name for name in KEYS[table] if name not in known]:
            yield f"no table {table!r}" if not known else f"table {table!r} has no column {missing[0]!r}"
        for name in columns.keys() & known:
            kinds = STORED[columns[name]].replace(", 'null'", "" if name in KEYS[table] else ", 'null'")
            if connection.execute(f"select 1 from {table} where typeof({name}) not in {kinds} limit 1").fetchone():
                yield f"column {name!r} of table {table!r} holds something else than {columns[name]} values"
        key = ", ".join(KEYS[table])
        if connection.execute(f"select 1 from {table} group by {key} having count(*) > 1 limit 1").fetchone():
            yield f"table {table!r} has two rows of the same {key}"
        if connection.execute(f"select 1 from {table} where member not between 0 and {members - 1}").fetchone():
            yield f"table {table!r} has a row of a member that is not one of the {members} of config.json"
    partial = f"""select member, step from latents group by member, step having count(*) != {latents}
        or min(latent) != 0 or max(latent) != {latents - 1} limit 1"""
    for member, step in connection.execute(partial):
        yield f"table 'latents' does not hold the {latents} latents of member {member} at step {step}"
    lost = "select member from runs where not exists (select 1 from latents where latents.member = runs.member) limit 1"
    for (member,) in connection.execute(lost):
        yield f"table 'latents' has no row of member {member}"


def _complete(connection: sqlite3.Connection, table: str, columns: Mapping[str, str]) -> None:
    described = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    key = ", ".join(KEYS[table])
    connection.execute(f"create table if not exists {table} ({described}, primary key ({key})) without rowid")
    for name in columns.keys() - _columns(connection, table):
        connection.execute(f"alter table {table} add column {name} {columns[name]}")


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"pragma table_info({table})")}
