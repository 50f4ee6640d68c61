"""Makes the logs in data/ by running a small order service into a real failure.

Usage: python make_logs.py. It takes about ten seconds; see data/SOURCE.md for what happens.
"""

from __future__ import annotations

import http.client
import logging
import multiprocessing
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DATA = Path(__file__).with_name("data")
RUN_S = 10.0
BUSY_TIMEOUT_S = 0.25
RESTOCK_S = 3.5


def log_to(name: str) -> logging.Logger:
    """Return a logger that writes data/NAME.log with UTC times in milliseconds."""
    log = logging.getLogger(name)
    handler = logging.FileHandler(DATA / f"{name}.log", encoding="utf-8")
    line = "%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s"
    formatter = logging.Formatter(line, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    return log


class Orders(BaseHTTPRequestHandler):
    """Saves an order for each POST and counts them for each GET."""

    database = ""
    app = logging.getLogger("app")
    access = logging.getLogger("access")

    def do_POST(self) -> None:
        self._answer(self._save)

    def do_GET(self) -> None:
        self._answer(self._count)

    def _save(self) -> str:
        with closing(sqlite3.connect(self.database, timeout=BUSY_TIMEOUT_S)) as connection:
            with connection:
                added = connection.execute("INSERT INTO orders (sku) VALUES ('A1')")
            return f"order {added.lastrowid}"

    def _count(self) -> str:
        with closing(sqlite3.connect(self.database, timeout=BUSY_TIMEOUT_S)) as connection:
            return str(connection.execute("SELECT count(*) FROM orders").fetchone()[0])

    def _answer(self, work: Callable[[], str]) -> None:
        began = time.monotonic()
        status, body = 200, ""
        try:
            body = work()
        except sqlite3.OperationalError as exc:
            status = 503
            self.app.error("%s %s failed: OperationalError: %s", self.command, self.path, exc)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())
        took_ms = (time.monotonic() - began) * 1000
        self.access.info("%s %s %d %.0f ms", self.command, self.path, status, took_ms)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Write nothing on standard error."""


def restock(database: str) -> None:
    """Hold a write transaction for as long as a slow supplier takes to answer."""
    log = log_to("jobs")
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        log.info("job=restock pid=%d begins: write transaction opened", os.getpid())
        began = time.monotonic()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE stock SET amount = amount + 100")
        time.sleep(RESTOCK_S)
        connection.execute("COMMIT")
        took_s = time.monotonic() - began
        log.info("job=restock pid=%d ends: committed after %.2f s", os.getpid(), took_s)


def summary(database: str) -> None:
    """Read everything; in write-ahead mode this disturbs nobody."""
    log = log_to("jobs")
    with closing(sqlite3.connect(database)) as connection:
        log.info("job=summary pid=%d begins: read only", os.getpid())
        sold = connection.execute("SELECT sku, count(*) FROM orders GROUP BY sku").fetchall()
        log.info("job=summary pid=%d ends: %s", os.getpid(), dict(sold))


def load(port: int, method: str, every_s: float, ends: float) -> None:
    """Send requests one after the other."""
    while time.monotonic() < ends:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        client.request(method, "/orders")
        client.getresponse().read()
        client.close()
        time.sleep(every_s)


def main() -> None:
    """Run service, load and jobs, and leave three logs."""
    DATA.mkdir(exist_ok=True)
    for old in DATA.glob("*.log"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "shop.db")
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, sku TEXT)")
            connection.execute("CREATE TABLE stock (sku TEXT, amount INTEGER)")
            connection.execute("INSERT INTO stock VALUES ('A1', 0)")
            connection.commit()
        app, _ = log_to("app"), log_to("access")
        Orders.database = database
        server = ThreadingHTTPServer(("127.0.0.1", 0), Orders)
        app.info("order service started, busy timeout %g s", BUSY_TIMEOUT_S)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ends = time.monotonic() + RUN_S
        clients = [
            threading.Thread(target=load, args=(server.server_port, method, every_s, ends))
            for method, every_s in (("POST", 0.15), ("GET", 0.4))
        ]
        for client in clients:
            client.start()
        spawn = multiprocessing.get_context("spawn")
        for job, pause_s in ((summary, 1.5), (restock, 1.0), (summary, 0.5)):
            time.sleep(pause_s)
            process = spawn.Process(target=job, args=(database,))
            process.start()
            process.join()
        for client in clients:
            client.join()
        server.shutdown()
        app.info("order service stopped")


if __name__ == "__main__":
    main()
