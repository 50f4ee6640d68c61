"""Starts Kafka and Jaeger on their usual ports until Ctrl-C: ``make up``.

For whoever has no containers; their data stays in the cache folder, beside the programs.
"""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.gear.fetch import Unavailable, cache
from tests.gear.programs import Jaeger, Kafka, http_answers, kafka_answers

KAFKA_PORTS = {"PLAINTEXT": 9092, "CONTROLLER": 9093}
JAEGER_PORTS = {"QUERY": 16686, "QUERY_GRPC": 16685, "OTLP_HTTP": 4318, "OTLP_GRPC": 4317}


def main() -> int:
    """Start what is not there, and wait."""
    data = cache() / "data"
    with ExitStack() as stack:
        try:
            kafka = _kafka(stack, data / "kafka")
            jaeger = _jaeger(stack, data / "jaeger")
        except (Unavailable, AssertionError) as exc:
            print(exc, file=sys.stderr)
            return 1
        print(f"Kafka   {kafka}")
        print(f"Jaeger  {jaeger}")
        print("Ctrl-C ends them.", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def _kafka(stack: ExitStack, folder: Path) -> str:
    address = f"127.0.0.1:{KAFKA_PORTS['PLAINTEXT']}"
    if kafka_answers(address):
        return f"{address}, which was there"
    folder.mkdir(parents=True, exist_ok=True)
    kafka = Kafka(folder, ports=KAFKA_PORTS)
    if not (folder / "data").exists():
        kafka.format()
    stack.callback(kafka.process.stop)
    kafka.process.start()
    return address


def _jaeger(stack: ExitStack, folder: Path) -> str:
    query = f"http://127.0.0.1:{JAEGER_PORTS['QUERY']}"
    told = f"{query}, takes traces at http://127.0.0.1:{JAEGER_PORTS['OTLP_HTTP']}"
    if http_answers(f"{query}/api/v3/services"):
        return f"{told}, which was there"
    folder.mkdir(parents=True, exist_ok=True)
    jaeger = Jaeger(folder, ports=JAEGER_PORTS)
    stack.callback(jaeger.process.stop)
    jaeger.process.start()
    return told


if __name__ == "__main__":
    sys.exit(main())
