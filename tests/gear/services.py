"""Real services for tests, as fixtures: started from what ``deploy/`` ships, or found by address.

A fixture takes, in this order, the address that the environment gives, the program that the
machine has, and what ``make services`` has fetched. Without any of them the test is skipped with
the reason; with ``CI=true`` it fails.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.gear.fetch import JAEGER, KAFKA, Service
from tests.gear.process import Process, free_port

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def required(service: Service) -> Path:
    """Return a service's program; without it the test is skipped, or fails in CI."""
    runtime = "java" if service is KAFKA else None
    if runtime and shutil.which(runtime) is None:
        _give_up(f"{service.name} needs {runtime!r}, which is not on PATH")
    found = service.find()
    if found is None:
        _give_up(f"{service.name} is not on this machine; 'make services' fetches it")
    return found


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


class Kafka:
    """A broker of one node, started from ``deploy/kafka``.

    Args:
        folder: Its own folder, for its data too.
        listeners: Further listeners: name to protocol, for example ``{"USERS": "SASL_SSL"}``.
        settings: Broker settings beside the shipped ones, or in their place.
    """

    def __init__(
        self,
        folder: Path,
        *,
        listeners: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **(listeners or {})}
        self._addresses = {name: f"127.0.0.1:{free_port()}" for name in protocols}
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
            str(required(KAFKA) / "*"),
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
    """A Jaeger with its traces on disk, started from ``deploy/jaeger``."""

    def __init__(self, folder: Path) -> None:
        names = ("HEALTH", "QUERY", "QUERY_GRPC", "OTLP_HTTP", "OTLP_GRPC")
        ports = {name: str(free_port()) for name in names}
        local = "http://127.0.0.1:"
        self.at = JaegerAt(local + ports["QUERY"], local + ports["OTLP_HTTP"])
        self.process = Process(
            "jaeger",
            [required(JAEGER), "--config", DEPLOY / "jaeger/jaeger.yaml"],
            folder=folder,
            answers=lambda: http_answers(f"{local}{ports['HEALTH']}/status"),
            environment={
                "JAEGER_FOLDER": str(folder / "data"),
                **{f"JAEGER_{name}_PORT": port for name, port in ports.items()},
            },
        )


def http_answers(url: str) -> bool:
    """Whether a GET succeeds."""
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


class _Started(Protocol):
    process: Process


S = TypeVar("S", bound=_Started)


class _SharedServices:
    """One service of a kind for all workers of a test run."""

    def __init__(self, config: pytest.Config, factory: pytest.TempPathFactory) -> None:
        self._config = config
        base = factory.getbasetemp()
        self._folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def address(
        self,
        name: str,
        start: Callable[[Path], S],
        *,
        told: Callable[[S], dict[str, str]],
        answers: Callable[[dict[str, str]], bool],
    ) -> dict[str, str]:
        """Return where the service is, started now unless another worker has done so.

        Whoever started it ends it, after the last worker that uses it: when the session is over,
        not within a fixture, where the time limit of the last test would count.
        """
        note = self._folder / f"{name}.json"
        users = (self._folder / f"{name}.users").open("w")  # locked as long as this process uses it
        self._config.add_cleanup(users.close)
        with (self._folder / f"{name}.lock").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)
            if note.exists():
                noted: dict[str, str] = json.loads(note.read_text())
                if answers(noted):
                    return noted
            folder = self._folder / f"{name}-{uuid.uuid4().hex[:8]}"
            folder.mkdir()
            service = start(folder)

            def end() -> None:
                fcntl.flock(users, fcntl.LOCK_EX)
                note.unlink()
                service.process.stop()
                shutil.rmtree(folder)

            self._config.add_cleanup(end)
            note.write_text(json.dumps(told(service)))
            return told(service)


@pytest.fixture(scope="session")
def shared_services(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> _SharedServices:
    return _SharedServices(pytestconfig, tmp_path_factory)


def _start_kafka(folder: Path) -> Kafka:
    kafka = Kafka(folder)
    kafka.format()
    kafka.process.start()
    return kafka


def _start_jaeger(folder: Path) -> Jaeger:
    jaeger = Jaeger(folder)
    jaeger.process.start()
    return jaeger


@pytest.fixture(scope="session")
def kafka_address(shared_services: _SharedServices) -> str:
    """``host:port`` of a broker that all tests share: use topics and groups of your own."""
    if given := os.environ.get("CADENZA_TEST_KAFKA"):
        return given
    required(KAFKA)
    return shared_services.address(
        "kafka",
        _start_kafka,
        told=lambda kafka: {"address": kafka.address},
        answers=lambda noted: kafka_answers(noted["address"]),
    )["address"]


@pytest.fixture(scope="session")
def jaeger(shared_services: _SharedServices) -> JaegerAt:
    """Where a Jaeger is that all tests share: look for your own trace ids."""
    if query := os.environ.get("CADENZA_TEST_JAEGER"):
        return JaegerAt(query, os.environ["CADENZA_TEST_JAEGER_OTLP"])
    required(JAEGER)
    noted = shared_services.address(
        "jaeger",
        _start_jaeger,
        told=lambda jaeger: asdict(jaeger.at),
        answers=lambda noted: http_answers(f"{noted['query']}/api/v3/services"),
    )
    return JaegerAt(**noted)


@pytest.fixture
async def own_kafka(tmp_path: Path) -> AsyncIterator[Kafka]:
    """A running broker of the test's own, which it may stop, start again and freeze."""
    required(KAFKA)
    folder = tmp_path / "kafka"
    folder.mkdir()
    kafka = Kafka(folder)
    await asyncio.to_thread(kafka.format)
    await kafka.start()
    yield kafka
    kafka.process.kill()
    shutil.rmtree(folder)
