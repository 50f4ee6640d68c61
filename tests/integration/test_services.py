"""Each service answers, and the fixtures keep what they promise."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.gear import fetch
from tests.gear.process import Process, free_port
from tests.gear.programs import DEPLOY, JaegerAt, Kafka, kafka_answers
from tests.gear.services import required
from tests.house.source import ROOT

PATIENCE_S = 20.0


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.01)


def sleeper(folder: Path, *, answers: bool = True) -> Process:
    return Process("sleep", ["sleep", "600"], folder=folder, answers=lambda: answers)


async def create(address: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1)])
    await admin.close()


async def send_and_read(address: str) -> list[bytes]:
    topic = f"test-{secrets.token_hex(6)}"
    await create(address, topic)
    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait(topic, b"said")
    return await read(address, topic)


async def read(address: str, topic: str) -> list[bytes]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    async with consumer, asyncio.timeout(PATIENCE_S):
        return [(await consumer.getone()).value]


async def test_kafka_takes_a_message_and_gives_it_back(kafka_address: str) -> None:
    assert await send_and_read(kafka_address) == [b"said"]


async def test_a_broker_that_was_stopped_comes_back_with_its_data(own_kafka: Kafka) -> None:
    await create(own_kafka.address, "kept")
    async with AIOKafkaProducer(bootstrap_servers=own_kafka.address, acks="all") as producer:
        await producer.send_and_wait("kept", b"kept")
    await own_kafka.stop()
    assert not kafka_answers(own_kafka.address)
    await own_kafka.start()
    assert await read(own_kafka.address, "kept") == [b"kept"]
    own_kafka.freeze()
    assert not await asyncio.to_thread(kafka_answers, own_kafka.address, timeout_s=0.5)
    own_kafka.thaw()
    assert await asyncio.to_thread(kafka_answers, own_kafka.address)


def test_jaeger_takes_a_span_and_gives_it_back(jaeger: JaegerAt) -> None:
    trace, now = secrets.token_hex(16), time.time_ns()
    span = {
        "traceId": trace,
        "spanId": secrets.token_hex(8),
        "name": "said",
        "startTimeUnixNano": str(now),
        "endTimeUnixNano": str(now + 1000),
    }
    name = {"key": "service.name", "value": {"stringValue": "test"}}
    spans = {"resource": {"attributes": [name]}, "scopeSpans": [{"spans": [span]}]}
    body = json.dumps({"resourceSpans": [spans]}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{jaeger.otlp}/v1/traces", body, headers), timeout=10) as answer:
        assert answer.status == 200

    def found() -> bool:
        try:
            with urlopen(f"{jaeger.query}/api/v3/traces/{trace}", timeout=10) as answer:
                return '"said"' in answer.read().decode()
        except HTTPError as exc:
            exc.close()
            if exc.code != 404:
                raise
            return False

    until(found)


def test_a_program_dies_with_whoever_started_it(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time; from tests.integration.test_services import sleeper\n"
        "process = sleeper(pathlib.Path(sys.argv[1])); process.start()\n"
        "print(process.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        until(lambda: "sleep" in Path(f"/proc/{pid}/cmdline").read_text())
        starter.kill()
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_program_that_hears_nothing_is_ended_by_force(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    process.start()
    process.signal(signal.SIGSTOP)
    process.stop()
    assert not process.alive
    process.start()
    process.signal(signal.SIGKILL)
    until(lambda: not process.alive)
    process.start()
    process.kill()
    assert not process.alive


def test_a_program_that_does_not_answer_is_not_left_running(tmp_path: Path) -> None:
    process = sleeper(tmp_path, answers=False)
    process.spawn()
    with pytest.raises(AssertionError, match="does not answer"):
        process.wait_until_ready(0.2)
    assert not process.alive


def test_a_program_that_dies_at_its_start_says_why(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no configuration; exit 3"]
    with pytest.raises(AssertionError, match="no configuration"):
        Process("sh", command, folder=tmp_path, answers=lambda: False).start()


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
@pytest.mark.parametrize("service", fetch.SERVICES, ids=lambda service: service.name)
def test_a_missing_service_skips_its_tests_and_fails_them_in_ci(
    service: fetch.Service,
    ci: str,
    outcome: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    with pytest.raises(outcome, match=service.name):
        required(service)


def test_fetching_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    assert fetch.main([]) == 1
    told = capsys.readouterr().err
    assert "install Go" in told
    assert "Java runtime" in told
    assert fetch.main(["--where-possible"]) == 0


def test_what_was_interrupted_is_fetched_again_and_what_is_whole_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make(folder: Path, version: str) -> None:
        (folder / "program").touch()
        made.append(version)
        if len(made) == 1:
            raise KeyboardInterrupt

    toy = fetch.Service("toy", "1", "program", {}, "no time", make, lambda: None)
    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(toy)
    assert toy.find() is None
    fetch.fetch(toy)
    fetch.fetch(toy)
    assert made == ["1", "1"]
    assert sorted(p.name for p in (tmp_path / "cadenza").iterdir()) == ["toy-1", "toy.lock"]


def test_free_ports_are_none_that_the_kernel_gives_to_clients() -> None:
    told = Path("/proc/sys/net/ipv4/ip_local_port_range")
    lowest = int(told.read_text().split()[0]) if told.exists() else 32_768
    assert free_port() < lowest


def test_containers_run_the_versions_and_files_that_the_tests_run() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert services["kafka"]["image"].endswith(f":{fetch.KAFKA.version}")
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        mounted = [v.split(":")[0] for v in service["volumes"] if v.startswith("./")]
        assert mounted
        assert all((DEPLOY / folder).is_dir() for folder in mounted)
    variables = set(re.findall(r"\$\{env:(\w+)", (DEPLOY / "jaeger/jaeger.yaml").read_text()))
    assert set(services["jaeger"]["environment"]) <= variables


def test_the_shipped_broker_binds_loopback_only() -> None:
    text = (DEPLOY / "kafka/server.properties").read_text()
    listeners = next(line for line in text.splitlines() if line.startswith("listeners="))
    assert all("://127.0.0.1:" in each for each in listeners.split("=")[1].split(","))
