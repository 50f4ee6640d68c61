"""The SQL tool: what it answers, and that nothing else can be done with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agents.errors import ToolDefinitionError
from agents.tool_decorator import FunctionTool
from agents.toolbox import sql as sql_module
from agents.toolbox.sql import sql
from agents.tools import Tool

STOCK = 'sku,品名,pieces,price,code\na1,ねじ,12,1.50,007\nb2,"板\n(厚い)",,2,012\n'


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "stock.csv"
    path.write_bytes(b"\xef\xbb\xbf" + STOCK.encode())
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop's 100%.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT, photo BLOB)")
        connection.execute("INSERT INTO orders VALUES (1, 'ねじ', x'00ff'), (2, NULL, NULL)")
        connection.execute("CREATE VIEW big AS SELECT * FROM orders")
    return path


def ask(made: tuple[Tool, ...], query: str) -> Any:
    (only,) = made
    assert isinstance(only, FunctionTool)
    return only(**only.validate({"query": query}))


def write(folder: Path, text: str, name: str = "t.csv", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding=encoding, newline="")
    return path


def test_a_csv_file_is_a_table_with_guessed_types(csv: Path) -> None:
    made = sql(csv)
    assert made[0].description.startswith("Ask a database with one SQLite SELECT statement")
    assert (
        "stock(sku TEXT, 品名 TEXT, pieces INTEGER, price REAL, code TEXT)" in made[0].description
    )
    assert ask(made, "SELECT * FROM stock ORDER BY sku") == {
        "columns": ["sku", "品名", "pieces", "price", "code"],
        "rows": [["a1", "ねじ", 12, 1.5, "007"], ["b2", "板\n(厚い)", None, 2.0, "012"]],
        "truncated": False,
    }
    assert ask(made, "SELECT sum(pieces) AS n FROM stock WHERE 品名 LIKE 'ね%'")["rows"] == [[12]]


def test_several_csv_files_can_be_joined(csv: Path, tmp_path: Path) -> None:
    orders = write(tmp_path, "sku;wanted\na1;20\n", "new orders-2026.csv")
    made = sql([csv, orders])
    query = "SELECT wanted - pieces FROM stock JOIN new_orders_2026 USING (sku)"
    assert ask(made, query)["rows"] == [[8]]


@pytest.mark.parametrize(
    ("text", "described"),
    [
        ("a,A,a_2,\n1,2,3,4\n", "t(a INTEGER, A_2 INTEGER, a_2_2 INTEGER, column_4 INTEGER)"),
        ("a\tb c\n1\t-2.5e3\n", "t(a INTEGER, b_c REAL)"),
        ("a, b\n1, x\n\n", "t(a INTEGER, b TEXT)"),
        ("a,b,\n1,2,\n", "t(a INTEGER, b INTEGER, column_3 TEXT)"),
        ("id\n12345678901234567890\n", "t(id TEXT)"),
        ("n\n1\n2.5\nnan\n", "t(n TEXT)"),
        ("n\n１２\n", "t(n TEXT)"),
        ('2nd,"sel""ect; --"\n1,2\n', "t(_2nd INTEGER, sel_ect INTEGER)"),
        ("only,header\n", "t(only TEXT, header TEXT)"),
        ("a,b\r\n1\r\n", "t(a INTEGER, b TEXT)"),
    ],
)
def test_headers_separators_and_types_of_all_kinds(
    tmp_path: Path, text: str, described: str
) -> None:
    made = sql(write(tmp_path, text))
    assert described in made[0].description
    assert ask(made, "SELECT count(*) FROM t")["columns"] == ["count(*)"]


def test_a_file_in_another_encoding_is_read_when_told(tmp_path: Path) -> None:
    path = write(tmp_path, "品名\nねじ\n", encoding="cp932")
    with pytest.raises(ToolDefinitionError, match="is not utf-8-sig text: set encoding"):
        sql(path)
    assert ask(sql(path, encoding="cp932"), "SELECT 品名 FROM t")["rows"] == [["ねじ"]]


def test_files_that_cannot_be_tables_are_definition_errors(csv: Path, database: Path) -> None:
    folder = csv.parent
    (folder / "sub").mkdir()
    for paths, told in (
        (folder / "nowhere.csv", "there is no file"),
        ([], "CSV files or one SQLite file"),
        ([csv, database], "CSV files or one SQLite file"),
        ([csv, write(folder / "sub", "a\n1\n", "Stock.csv")], "would both be table 'Stock'"),
        (write(folder, "", "empty.csv"), "is empty"),
        (write(folder, "a,b\n1,2,3\n", "wide.csv"), "row 2: 3 fields, but the header has 2"),
        (write(folder, 'a\n"x', "open.csv"), r"open.csv', line \d"),
    ):
        with pytest.raises(ToolDefinitionError, match=told):
            sql(paths)
    with pytest.raises(ToolDefinitionError, match="more than 10 bytes"):
        sql(csv, max_bytes=10)
    broken = folder / "broken.db"
    broken.write_bytes(b"SQLite format 3\0" + b"x" * 200)
    with pytest.raises(ToolDefinitionError, match="cannot be read"):
        sql(broken)


def test_a_sqlite_file_is_read_and_never_written(database: Path) -> None:
    before = database.read_bytes()
    made = sql(database, name="orders")
    assert made[0].name == "orders"
    assert "big(id INTEGER, what TEXT, photo BLOB); orders(id" in made[0].description
    assert ask(made, "SELECT what, photo FROM big ORDER BY id")["rows"] == [
        ["ねじ", "x'00ff'"],
        [None, None],
    ]
    with pytest.raises(ValueError, match="only reading is allowed"):
        ask(made, "DELETE FROM orders")
    assert database.read_bytes() == before
    assert [p.name for p in database.parent.iterdir()] == [database.name]


def test_a_database_in_use_shows_what_is_still_in_its_log(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (n)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        assert ask(sql(path), "SELECT n FROM t")["rows"] == [[1]]


@pytest.mark.parametrize(
    "query",
    [
        "INSERT INTO stock VALUES (1, 2, 3, 4, 5)",
        "UPDATE stock SET pieces = 0",
        "DROP TABLE stock",
        "CREATE TEMP TABLE t (n)",
        "ATTACH '/etc/passwd' AS p",
        "DETACH main",
        "PRAGMA table_info(stock)",
        "PRAGMA trusted_schema = ON",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('evil.so')",
        "SELECT fts3_tokenizer('simple')",
        "VACUUM INTO '/tmp/copy.db'",
        "BEGIN",
        "WITH x AS (SELECT 1) DELETE FROM stock",
        "EXPLAIN DELETE FROM stock",
    ],
)
def test_anything_but_reading_is_refused(csv: Path, query: str) -> None:
    with pytest.raises(ValueError, match="only reading is allowed"):
        ask(sql(csv), query)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT amount FROM stock", r"no such column: amount. Tables: stock\(sku TEXT"),
        ("SELECT * FROM stocks", r"no such table: stocks. Tables: stock\("),
        ("SELECT 1; DROP TABLE stock", "one statement at a time"),
        ("SELEC 1", "syntax error"),
        ("", "asks nothing"),
        ("-- nothing", "asks nothing"),
        ("SELECT ?", "binding"),
        ("SELECT 'a\0b'", "null character|unrecognized token|nul"),
        ("SELECT zeroblob(500000000)", "too big"),
        ("SELECT 'a\ud83d'", "surrogates"),
    ],
)
def test_a_wrong_query_is_an_error_that_helps(csv: Path, query: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ask(sql(csv), query)


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n WHERE i > 1",
    ],
)
def test_a_query_that_never_ends_is_stopped(
    csv: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_module, "QUERY_TIMEOUT_S", 0.1)
    with pytest.raises(ValueError, match=r"took longer than 0\.1 s and was stopped"):
        ask(sql(csv), query)


def test_a_long_result_is_cut_and_says_so(csv: Path) -> None:
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    result = ask(sql(csv, max_rows=3), query)
    assert result == {"columns": ["i"], "rows": [[1], [2], [3]], "truncated": True}
