"""Several processes of the command line that serve one pipeline, and what must be true of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
import uuid
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from orchestrator.canonical import canonical
from orchestrator.state import Event
from orchestrator.store.base import RunRow
from orchestrator.store.sqlite import SqliteRunStore
from orchestrator.wholeness import expected
from tests.conformance.gear import left_open, until
from tests.conformance.invariants import broken_rules
from tracing.check import check
from tracing.reader import read_file

ROOT = Path(__file__).resolve().parents[2]
SHOP = Path(__file__).with_name("shop") / "pipeline.yaml"
LEASE_S = 2.0
GRACE_S = 8.0
ANSWER = "The order is on its way."
_LONGEST_S = 60.0
_CALLS = 3  # different ones, in each run


@dataclass
class Member:
    """A process of a fleet."""

    name: str
    process: Process
    log: Path

    def told(self) -> str:
        """Return what it has told so far."""
        return self.log.read_text()

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        self.process.kill()

    async def ended(self, *, code: int | None = 0) -> str:
        """Wait for its end and return what it wrote on standard output."""
        async with asyncio.timeout(_LONGEST_S):
            out, _ = await self.process.communicate()
        told = await asyncio.to_thread(self.told)
        assert code is None or self.process.returncode == code, told
        assert "Traceback" not in told, told
        return out.decode().strip()


@dataclass
class Fleet:
    """Processes over one broker, one run store and one pipeline file.

    Attributes:
        folder: Where the run store and what the tools note lie.
        mode: orchestration or choreography.
        broker: ``host:port``.
        file: The pipeline file.
        settings: Further settings.
        environment: Further environment.
    """

    folder: Path
    mode: str
    broker: str
    file: Path = SHOP
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    namespace: str = field(default_factory=lambda: f"fleet-{uuid.uuid4().hex[:8]}")
    members: list[Member] = field(default_factory=list)
    runs: int = 0
    _numbers: Iterator[int] = field(default_factory=count)

    async def start(self, *words: str, **environment: str) -> Member:
        """Start a command of ``cadenza`` on this fleet's pipeline."""
        name = f"{next(self._numbers)}-{words[0]}"
        self.runs += words[0] == "run"
        log = self.folder / f"{name}.log"
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "FLEET_FOLDER": str(self.folder),
            "CADENZA_MODE": self.mode,
            "CADENZA_BUS__KIND": "kafka",
            "CADENZA_BUS__URL": self.broker,
            "CADENZA_BUS__NAMESPACE": self.namespace,
            "CADENZA_STORE__URL": str(self.folder / "runs.db"),
            "CADENZA_LIMITS__LEASE_S": str(LEASE_S),
            "CADENZA_LIMITS__GRACE_S": str(GRACE_S),
            **self.environment,
            **environment,
        }
        with log.open("w") as err:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "orchestrator.cli.main", *words),
                *(part for pair in self.settings.items() for part in ("--set", "=".join(pair))),
                cwd=self.folder,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=PIPE,
                stderr=err,
            )
        self.members.append(Member(name, process, log))
        return self.members[-1]

    async def worker(self, agent: str, *options: str, **environment: str) -> Member:
        """Start a worker and wait until it serves."""
        words = ["worker", str(self.file), "--agent", agent, *options]
        return await self._serving(*words, **environment)

    async def conductor(self) -> Member | None:
        """Start the orchestrator, where there is one, and wait until it serves."""
        if self.mode == "choreography":
            return None
        return await self._serving("orchestrator", str(self.file))

    async def _serving(self, *words: str, **environment: str) -> Member:
        member = await self.start(*words, **environment)

        async def ready() -> bool:
            told = await asyncio.to_thread(member.told)
            assert member.process.returncode is None, told
            return "ready" in told

        await until(ready, within_s=_LONGEST_S)
        return member

    async def submit(self, task: str = "Ship it.") -> str:
        """Submit a run and leave it to the others."""
        starter = await self.start("run", str(self.file), task, "--detach")
        return await starter.ended()

    async def noted(self, name: str, *, run: str | None = None) -> list[list[Any]]:
        """Return the lines of a file: process id and words each; of one run, if given."""

        def read() -> list[list[Any]]:
            path = self.folder / name
            lines = path.read_text().splitlines() if path.exists() else []
            return [json.loads(line) for line in lines]

        return [line for line in await asyncio.to_thread(read) if run in (None, line[1])]

    async def until_noted(self, name: str, *, times: int = 1) -> list[list[Any]]:
        """Wait until something was noted so often."""

        async def there() -> bool:
            return len(await self.noted(name)) >= times

        await until(there, within_s=_LONGEST_S)
        return await self.noted(name)

    async def finished(self, run: str, *, within_s: float = _LONGEST_S) -> RunRow:
        """Wait until a run has ended, is published, and its root is exported."""
        async with SqliteRunStore(str(self.folder / "runs.db")) as store:

            async def over() -> bool:
                row = await store.run(run)
                return row.ended is not None and await store.published(run) >= row.seq

            await until(over, within_s=within_s)
            return await store.run(run)

    async def ledger(self, run: str) -> list[Event]:
        """Return the ledger of a run."""
        async with SqliteRunStore(str(self.folder / "runs.db")) as store:
            return await store.ledger(run)

    async def canonical(self, run: str) -> list[dict[str, Any]]:
        """Return the canonical ledger of a run."""
        return canonical(await self.ledger(run))

    async def faults(self, run: str, *, lost: int = 0) -> list[str]:
        """Return what is wrong with a finished run of the shop.

        Args:
            run: Its id.
            lost: How many attempts were lost in the middle of a call.
        """
        ledger = await self.ledger(run)
        found = broken_rules(ledger)
        sent = await self.noted("sent", run=run)
        if len(sent) != 1:
            found.append(f"{len(sent)} parcels were sent")
        again = await self.noted("sent again", run=run)
        if len(again) > lost:
            found.append(f"the tool was called {len(again)} times more than once")
        asked = Counter((subtask, call) for _, subtask, call in await self.noted("asked"))
        found += [f"asked {n} times: {key}" for key, n in asked.items() if n > self.runs + lost]
        found += [f"{len(asked)} model calls"] if len(asked) != _CALLS else []
        return found

    async def trace_faults(self, run: str) -> list[str]:
        """Return what the trace file of a run lacks."""
        async with SqliteRunStore(str(self.folder / "runs.db")) as store:
            row = await store.run(run)
            wanted = await expected(store, row)
        spans = await asyncio.to_thread(
            read_file, self.folder / "traces.jsonl", row.trace.split("-")[1]
        )
        return check(spans, wanted)

    async def left(self) -> list[str]:
        """Return what is left open in the run store."""
        return await asyncio.to_thread(left_open, self.folder / "runs.db", killed=True)

    def stop(self, member: Member) -> None:
        """Freeze a process, outside the run store's transactions."""
        # Within one it would freeze the store's lock, and everybody with it.
        with closing(sqlite3.connect(self.folder / "runs.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            member.process.send_signal(signal.SIGSTOP)
            db.execute("ROLLBACK")

    async def close(self) -> None:
        """End what still runs: politely, and the frozen by force."""
        running = [m.process for m in self.members if m.process.returncode is None]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        end = time.monotonic() + 15
        for process in running:
            try:
                async with asyncio.timeout(max(0.1, end - time.monotonic())):
                    await process.communicate()
            except TimeoutError:
                process.kill()
                await process.communicate()
