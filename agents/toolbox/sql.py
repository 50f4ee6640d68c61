"""The SQL tool: questions to CSV files or one SQLite file, which it cannot change."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from agents.errors import ToolDefinitionError
from agents.tool_decorator import tool
from agents.toolbox.tables import load_csvs, quoted
from agents.tools import Tool

QUERY_TIMEOUT_S = 5.0
LONGEST_VALUE = 1_000_000
MOST_TABLES_SHOWN = 40

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
# The second name gives access to memory through the address of a tokenizer.
_DENIED_FUNCTIONS = {"load_extension", "fts3_tokenizer"}


def sql(
    path: Path | list[Path],
    *,
    name: str = "sql",
    max_rows: int = 200,
    encoding: str = "utf-8-sig",
    max_bytes: int = 50_000_000,
    reads: Literal["trusted", "untrusted"] = "untrusted",
) -> tuple[Tool, ...]:
    """Return a tool that answers SQL queries.

    Args:
        path: One SQLite file, or CSV files, each a table named like its file. CSV files are read
            once, now.
        name: Tool name, for pipelines with several databases.
        max_rows: Rows of a result above which it is cut.
        encoding: Of the CSV files.
        max_bytes: Upper bound of a CSV file's size.
        reads: ``trusted`` when nobody else writes in the files.

    Raises:
        ToolDefinitionError: A file is missing or is neither CSV nor SQLite.
    """
    paths = path if isinstance(path, list) else [path]
    connect = _connector(paths, encoding, max_bytes)
    with closing(connect()) as connection:
        tables = _describe(connection)

    def query(query: str) -> dict[str, Any]:
        with closing(connect()) as connection:
            return _run(connection, query, max_rows, tables)

    query.__doc__ = f"""Ask a database with one SQLite SELECT statement; it cannot be changed.

    Tables: {tables}

    Args:
        query: One SELECT or WITH statement. Quote odd names with double quotes.
    """
    return (tool(name=name, reads=reads, timeout_s=QUERY_TIMEOUT_S * 3)(query),)


def _connector(
    paths: Sequence[Path], encoding: str, max_bytes: int
) -> Callable[[], sqlite3.Connection]:
    for path in paths:
        if not path.is_file():
            raise ToolDefinitionError(f"there is no file {str(path)!r}: create it or correct it")
    kinds = [_is_sqlite(path) for path in paths]
    if not any(kinds) and paths:
        image = load_csvs(paths, encoding=encoding, max_bytes=max_bytes)
        return lambda: _from_image(image)
    if len(paths) != 1:
        raise ToolDefinitionError("sql takes CSV files or one SQLite file: use a tool for each")
    return lambda: _from_file(paths[0])


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _from_image(image: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(image)
    return connection


def _from_file(path: Path) -> sqlite3.Connection:
    wal = path.with_name(f"{path.name}-wal")
    # An immutable file is read without its write-ahead log, so only one that has none is.
    immutable = "" if wal.exists() and wal.stat().st_size else "&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro{immutable}", uri=True)


def _describe(connection: sqlite3.Connection) -> str:
    try:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite_%' ORDER BY name"
            )
        ]
        shown = []
        for name in names[:MOST_TABLES_SHOWN]:
            info = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
            columns = ", ".join(f"{column[1]} {column[2]}".strip() for column in info)
            shown.append(f"{name}({columns})")
    except sqlite3.DatabaseError as exc:
        raise ToolDefinitionError(f"the SQLite file cannot be read: {exc}") from exc
    more = len(names) - len(shown)
    text = "; ".join(shown) + (f"; and {more} more in sqlite_master" if more else "")
    return " ".join(text.split())


def _authorize(
    action: int, _first: str | None, second: str | None, _database: str | None, _by: str | None
) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _DENIED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _run(connection: sqlite3.Connection, query: str, max_rows: int, tables: str) -> dict[str, Any]:
    end = time.monotonic() + QUERY_TIMEOUT_S
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    try:
        cursor = connection.execute(query)
        rows = cursor.fetchmany(max_rows + 1)
    except sqlite3.Error as exc:
        raise ValueError(f"{_explain(exc)}. Tables: {tables}") from exc
    if cursor.description is None:
        raise ValueError(f"the statement asks nothing: write a SELECT. Tables: {tables}")
    return {
        "columns": [column[0] for column in cursor.description],
        "rows": [[_plain(value) for value in row] for row in rows[:max_rows]],
        "truncated": len(rows) > max_rows,
    }


def _explain(exc: sqlite3.Error) -> str:
    message = str(exc)
    if message == "interrupted":
        return f"the query took longer than {QUERY_TIMEOUT_S:g} s and was stopped"
    if "authoriz" in message or "prohibited" in message:
        return f"only reading is allowed, by one SELECT statement ({message})"
    return message


def _plain(value: Any) -> Any:
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value
