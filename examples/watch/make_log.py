"""Makes data/access.log: a small web server on loopback and five kinds of visitors.

Usage: python make_log.py. It takes about five seconds; see data/SOURCE.md for who does what.
"""

from __future__ import annotations

import base64
import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOG = Path(__file__).with_name("data") / "access.log"
PAGES = ("/", "/news", "/shop", "/about")
PROBES = (
    "/wp-login.php",
    "/.env",
    "/.git/config",
    "/phpmyadmin/",
    "/backup.zip",
    "/server-status",
    "/cgi-bin/test",
    "/config.json",
    "/old/",
    "/admin.php",
    "/shell.php",
    "/api/v1/users",
)
PASSWORD = "violin"
GUESSES = [f"guess-{number}" for number in range(24)]


class Site(BaseHTTPRequestHandler):
    """Four pages, and one behind a password."""

    server_version = "site"

    def do_GET(self) -> None:
        """Answer 200, 401 or 404."""
        status = 200
        if self.path == "/admin":
            wanted = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
            status = 200 if self.headers["Authorization"] == f"Basic {wanted}" else 401
        elif self.path not in PAGES:
            status = 404
        self.send_response(status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Write the library's own log line into the file, in UTC."""
        stamp = time.strftime("%d/%b/%Y %H:%M:%S", time.gmtime())
        with LOG.open("a", encoding="utf-8") as file:
            file.write(f"{self.client_address[0]} - - [{stamp}] {format % args}\n")


def visit(port: int, host: str, paths: list[tuple[str, str]], every_s: float) -> None:
    """Ask for pages from one loopback address, one after the other."""
    for path, password in paths:
        client = http.client.HTTPConnection("127.0.0.1", port, source_address=(host, 0))
        token = base64.b64encode(f"admin:{password}".encode()).decode()
        client.request("GET", path, headers={"Authorization": f"Basic {token}"} if password else {})
        client.getresponse().read()
        client.close()
        time.sleep(every_s)


def main() -> None:
    """Run the server and its visitors."""
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("", encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = [(page, "") for page in PAGES]
    visitors = [
        ("127.0.0.11", pages * 3, 0.35),
        ("127.0.0.12", [*pages, ("/nwes", ""), *pages], 0.45),
        ("127.0.0.20", [("/admin", "voilin"), ("/admin", PASSWORD), ("/shop", "")], 0.8),
        ("127.0.0.66", [("/admin", guess) for guess in [*GUESSES, PASSWORD]], 0.12),
        ("127.0.0.99", [(probe, "") for probe in PROBES], 0.25),
    ]
    threads = [threading.Thread(target=visit, args=(server.server_port, *v)) for v in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.shutdown()


if __name__ == "__main__":
    main()
