"""The last part of the tour: one pipeline by several processes over Kafka, its trace in Jaeger.

It uses what it finds: addresses in the environment, a broker and a Jaeger on their usual ports,
or the programs that ``make services`` has fetched. Without them it says how to have them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.gear.fetch import Unavailable
from tests.gear.programs import Jaeger, JaegerAt, Kafka, http_answers, kafka_answers

Say = Callable[..., None]
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Services:
    """What this part of the tour runs on.

    Attributes:
        kafka: ``host:port``.
        jaeger: Where Jaeger is, or None.
    """

    kafka: str
    jaeger: JaegerAt | None

    def environment(self, mode: str) -> dict[str, str]:
        """Return the settings of a process: one line of a pipeline file each."""
        settings = {
            "CADENZA_MODE": mode,
            "CADENZA_BUS__KIND": "kafka",
            "CADENZA_BUS__URL": self.kafka,
            "CADENZA_BUS__NAMESPACE": f"demo-{uuid.uuid4().hex[:8]}",
        }
        if self.jaeger is not None:
            settings["OTEL_EXPORTER_OTLP_ENDPOINT"] = self.jaeger.otlp
        return settings


@contextmanager
def services(say: Say) -> Iterator[Services | None]:
    """Find or start a broker and a Jaeger; yield None when no broker can be had."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cadenza-demo-")))
        try:
            kafka = _kafka(stack, folder, say)
        except Unavailable as exc:
            say(f"Not shown here: {exc}")
            say("`make services` fetches Kafka (Java 17 and Maven needed) and Jaeger (Go needed).")
            yield None
            return
        jaeger = None
        try:
            jaeger = _jaeger(stack, folder, say)
        except Unavailable as exc:
            say(f"Jaeger     none, the trace goes to a file: {exc}")
        yield Services(kafka, jaeger)


def _kafka(stack: ExitStack, folder: Path, say: Say) -> str:
    for address in (os.environ.get("CADENZA_TEST_KAFKA"), "127.0.0.1:9092"):
        if address and kafka_answers(address):
            say(f"Kafka      {address}, which was there")
            return address
    broker = Kafka(_folder(folder, "kafka"))
    broker.format()
    stack.callback(broker.process.stop)
    broker.process.start()
    say(f"Kafka      {broker.address}, started for this tour from deploy/kafka")
    return broker.address


def _jaeger(stack: ExitStack, folder: Path, say: Say) -> JaegerAt:
    usual = JaegerAt("http://127.0.0.1:16686", "http://127.0.0.1:4318")
    if http_answers(f"{usual.query}/api/v3/services"):
        say(f"Jaeger     {usual.query}, which was there")
        return usual
    started = Jaeger(_folder(folder, "jaeger"))
    stack.callback(started.process.stop)
    started.process.start()
    say(f"Jaeger     {started.at.query}, started for this tour from deploy/jaeger")
    return started.at


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


@contextmanager
def serving(
    commands: Sequence[Sequence[str]], *, folder: Path, environment: dict[str, str], say: Say
) -> Iterator[None]:
    """Start processes that serve a pipeline, wait until they do, and drain them at the end."""
    with ExitStack() as stack:
        started = []
        for command in commands:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.callback(_drain, process)
            started.append(process)
        for process in started:
            assert process.stderr is not None
            say(_ready(process.stderr))
            threading.Thread(target=_read_on, args=(process.stderr,)).start()
        yield


def _ready(lines: IO[str]) -> str:
    told = []
    for line in lines:
        told.append(line.rstrip())
        if line.split()[:1] == ["ready"]:
            return told[-1]
    return "\n".join(told)


def _read_on(lines: IO[str]) -> None:
    """Read what is told later: it is not shown, but unread, it would make the process wait."""
    with lines:
        lines.read()


def _drain(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
