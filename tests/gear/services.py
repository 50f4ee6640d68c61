"""Real services for tests, as fixtures: started from what ``deploy/`` ships, or found by address.

A fixture takes, in this order, the address that the environment gives, the program that the
machine has, and what ``make services`` has fetched. Without any of them the test is skipped with
the reason; with ``CI=true`` it fails.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

import pytest

from tests.gear.fetch import JAEGER, KAFKA, Service, Unavailable
from tests.gear.process import Process
from tests.gear.programs import Jaeger, JaegerAt, Kafka, http_answers, kafka_answers, program


def required(service: Service) -> None:
    """Skip a test without a service, or fail it in CI."""
    try:
        program(service)
    except Unavailable as exc:
        _give_up(str(exc))


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


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
                note.unlink(missing_ok=True)
                service.process.stop()
                shutil.rmtree(folder, ignore_errors=True)

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
