"""CSV files as SQLite tables, with types guessed from the values."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.errors import ToolDefinitionError

_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
_REAL = re.compile(r"[+-]?(?:0|[1-9][0-9]*|(?=\.))(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


def load_csvs(paths: Sequence[Path], *, encoding: str, max_bytes: int) -> bytes:
    """Return a SQLite database with one table for each file, named like the file.

    Values such as ``007`` stay text; an empty field is NULL; doubled column names get a number.

    Args:
        paths: CSV files; the separator is a comma, semicolon or tab, as the first line shows.
        encoding: Of the files; a byte order mark is dropped.
        max_bytes: Upper bound of a file's size.

    Raises:
        ToolDefinitionError: A file is missing, too large or no CSV, or two have the same name.
    """
    connection = sqlite3.connect(":memory:")
    try:
        taken: dict[str, Path] = {}
        for path in paths:
            name = _name(path.stem, "table")
            if name.casefold() in taken:
                raise ToolDefinitionError(
                    f"{str(taken[name.casefold()])!r} and {str(path)!r} would both be table "
                    f"{name!r}: rename one"
                )
            taken[name.casefold()] = path
            _load(connection, name, _rows(path, encoding, max_bytes))
        connection.commit()
        return connection.serialize()
    finally:
        connection.close()


def _rows(path: Path, encoding: str, max_bytes: int) -> list[list[str]]:
    if path.stat().st_size > max_bytes:
        raise ToolDefinitionError(
            f"{str(path)!r} has more than {max_bytes:,} bytes: put it into a SQLite file"
        )
    try:
        with path.open(encoding=encoding, newline="") as file:
            first = file.readline()
            separator = max(",;\t", key=first.count)
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
            rows = [row for row in reader if any(row)]
    except (UnicodeDecodeError, LookupError) as exc:
        raise ToolDefinitionError(
            f"{str(path)!r} is not {encoding} text: set encoding, for example cp932 ({exc})"
        ) from exc
    except csv.Error as exc:
        raise ToolDefinitionError(f"{str(path)!r}, line {reader.line_num}: {exc}") from exc
    if not rows:
        raise ToolDefinitionError(f"{str(path)!r} is empty: the first line names the columns")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if any(row[width:]):
            raise ToolDefinitionError(
                f"{str(path)!r}, row {number}: {len(row)} fields, but the header has {width}"
            )
    return rows


def _load(connection: sqlite3.Connection, table: str, rows: list[list[str]]) -> None:
    header, *body = rows
    width = len(header)
    columns = _unique(_name(title, f"column_{i}") for i, title in enumerate(header, 1))
    types = [_type(row[i] for row in body if i < len(row)) for i in range(width)]
    declared = ", ".join(f"{quoted(c)} {t}" for c, t in zip(columns, types, strict=True))
    connection.execute(f"CREATE TABLE {quoted(table)} ({declared})")
    marks = ", ".join("?" * width)
    connection.executemany(
        f"INSERT INTO {quoted(table)} VALUES ({marks})",
        ([field or None for field in row[:width]] + [None] * (width - len(row)) for row in body),
    )


def quoted(name: str) -> str:
    """Return a name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _name(text: str, fallback: str) -> str:
    name = re.sub(r"\W+", "_", text.strip()).strip("_")
    if not name:
        return fallback
    return f"_{name}" if name[0].isdigit() else name


def _unique(names: Iterable[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        candidate = name
        while candidate.casefold() in seen:  # SQLite's names ignore case
            seen[name.casefold()] += 1
            candidate = f"{name}_{seen[name.casefold()]}"
        seen[candidate.casefold()] = 1
        unique.append(candidate)
    return unique


def _type(values: Iterable[str]) -> str:
    found = "INTEGER"
    empty = True
    for value in filter(None, values):
        empty = False
        if found == "INTEGER" and not _INTEGER.fullmatch(value):
            found = "REAL"
        if found == "REAL" and not _is_real(value):
            return "TEXT"
    return "TEXT" if empty else found


def _is_real(value: str) -> bool:
    if _INTEGER.fullmatch(value):
        return True
    # Longer integers stay text: a float would lose their last digits.
    return _REAL.fullmatch(value) is not None and any(c in value for c in ".eE")
