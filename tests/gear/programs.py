"""The services that tests and the demo start, from what ``deploy/`` ships."""

from __future__ import annotations

import asyncio
import base64
import shutil
import signal
import socket
import struct
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.gear.fetch import JAEGER, KAFKA, Service, Unavailable
from tests.gear.process import Process, free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def program(service: Service) -> Path:
    """Return a service's program.

    Raises:
        Unavailable: It is not on this machine; the message says how to have it.
    """
    runtime = "java" if service is KAFKA else None
    if runtime and shutil.which(runtime) is None:
        raise Unavailable(f"{service.name} needs {runtime!r}, which is not on PATH")
    found = service.find()
    if found is None:
        raise Unavailable(f"{service.name} is not on this machine; 'make services' fetches it")
    return found


class Kafka:
    """A broker of one node, started from ``deploy/kafka``.

    Args:
        folder: Its own folder, for its data too.
        listeners: Further listeners: name to protocol, for example ``{"USERS": "SASL_SSL"}``.
        settings: Broker settings beside the shipped ones, or in their place.
        ports: Port by listener, such as ``{"PLAINTEXT": 9092}``; free ones where none is given.
    """

    def __init__(
        self,
        folder: Path,
        *,
        listeners: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        ports: Mapping[str, int] | None = None,
    ) -> None:
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **(listeners or {})}
        given = ports or {}
        self._addresses = {n: f"127.0.0.1:{given.get(n) or free_port()}" for n in protocols}
        places = {
            "log.dirs": str(folder / "data"),
            "listeners": self._listed("{}://{}", self._addresses),
            "advertised.listeners": self._listed(
                "{}://{}", {n: at for n, at in self._addresses.items() if n != "CONTROLLER"}
            ),
            "listener.security.protocol.map": self._listed("{}:{}", protocols),
            "controller.quorum.voters": f"1@{self._addresses['CONTROLLER']}",
        }
        shipped = (DEPLOY / "kafka/server.properties").read_text()
        changed = {**places, **(settings or {})}
        kept = [line for line in shipped.splitlines() if line.partition("=")[0] not in changed]
        self._properties = folder / "server.properties"
        self._properties.write_text(
            "\n".join([*kept, *(f"{name}={value}" for name, value in changed.items()), ""])
        )
        self._java = [
            "java",
            "-Xmx512m",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={DEPLOY / 'kafka/log4j2.yaml'}",
            "-cp",
            str(program(KAFKA) / "*"),
        ]
        self.process = Process(
            "kafka",
            [*self._java, "kafka.Kafka", self._properties],
            folder=folder,
            answers=lambda: kafka_answers(self.address),
        )

    @staticmethod
    def _listed(form: str, pairs: Mapping[str, str]) -> str:
        return ",".join(form.format(*pair) for pair in pairs.items())

    @property
    def address(self) -> str:
        """Where it is reached without a password."""
        return self._addresses["PLAINTEXT"]

    def address_of(self, listener: str) -> str:
        """Where one of the further listeners is reached."""
        return self._addresses[listener]

    def format(self, *arguments: str) -> None:
        """Prepare its folder for data, once."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", cluster]
        done = subprocess.run(
            [*command, "-c", str(self._properties), *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    async def start(self) -> None:
        """Start it, again too: on the same ports, with the same data."""
        self.process.spawn()  # by this thread: it dies with the thread that spawned it
        await asyncio.to_thread(self.process.wait_until_ready)

    async def stop(self) -> None:
        """End it and wait until it is gone."""
        await asyncio.to_thread(self.process.stop)

    def freeze(self) -> None:
        """Stop the program where it is: connections stay open and nothing answers."""
        self.process.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.signal(signal.SIGCONT)


def kafka_answers(address: str, *, timeout_s: float = 5.0) -> bool:
    """Whether a broker answers: asked for the versions it speaks, the first of all requests."""
    host, _, port = address.rpartition(":")
    request = struct.pack(">hhih", 18, 0, 1, -1)
    try:
        with socket.create_connection((host, int(port)), timeout=timeout_s) as broker:
            broker.sendall(struct.pack(">i", len(request)) + request)
            return len(broker.recv(8)) == 8
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class JaegerAt:
    """Where a Jaeger is.

    Attributes:
        query: URL under which traces are read.
        otlp: URL under which spans are taken, OTLP over HTTP.
    """

    query: str
    otlp: str


class Jaeger:
    """A Jaeger with its traces on disk, started from ``deploy/jaeger``.

    Args:
        folder: Its own folder, for its data too.
        ports: Port by name, such as ``{"QUERY": 16686}``; free ones where none is given.
    """

    def __init__(self, folder: Path, *, ports: Mapping[str, int] | None = None) -> None:
        names = ("HEALTH", "QUERY", "QUERY_GRPC", "OTLP_HTTP", "OTLP_GRPC")
        places = {name: str((ports or {}).get(name) or free_port()) for name in names}
        local = "http://127.0.0.1:"
        self.at = JaegerAt(local + places["QUERY"], local + places["OTLP_HTTP"])
        self.process = Process(
            "jaeger",
            [program(JAEGER), "--config", DEPLOY / "jaeger/jaeger.yaml"],
            folder=folder,
            answers=lambda: http_answers(f"{local}{places['HEALTH']}/status"),
            environment={
                "JAEGER_FOLDER": str(folder / "data"),
                **{f"JAEGER_{name}_PORT": port for name, port in places.items()},
            },
        )


def http_answers(url: str) -> bool:
    """Whether a GET succeeds."""
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
