"""A folder where processes of one run live and die, and what must be true of it afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.canonical import canonical
from orchestrator.state import Event
from orchestrator.store.sqlite import SqliteRunStore
from orchestrator.wholeness import expected
from tests.conformance.gear import left_open, until
from tests.conformance.invariants import broken_rules
from tracing.check import check
from tracing.reader import read_file

ROOT = Path(__file__).resolve().parents[2]
ANSWER = "Published: Report is out"
_LONGEST_S = 50.0


@dataclass
class Ground:
    """One run's folder.

    Attributes:
        folder: The folder.
        mode: orchestration or choreography.
    """

    folder: Path
    mode: str
    _started: list[Process] = field(default_factory=list)

    async def start(self, what: str, *words: str, hold: str = "") -> Process:
        """Start a driver process; see ``tests.faults.driver``."""
        return await self._start(
            "-m", "tests.faults.driver", what, str(self.folder), self.mode, *words, hold=hold
        )

    async def _start(self, *arguments: str, hold: str = "") -> Process:
        environment = {**os.environ, "FAULTS_FOLDER": str(self.folder), "FAULTS_HOLD": hold}
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, env=environment, stdout=PIPE, stderr=STDOUT
        )
        self._started.append(process)
        return process

    async def resume_by_command(self) -> str:
        """Go on with ``cadenza runs resume`` and return what it says."""
        run, _ = await self.ledger()
        words = ["-m", "orchestrator.cli.main", "runs", "resume", run]
        process = await self._start(*words, "--store", str(self.folder / "runs.db"))
        return await ended(process)

    async def there(self, name: str) -> None:
        """Wait for a file."""

        async def exists() -> bool:
            return await asyncio.to_thread((self.folder / name).exists)

        await until(exists, within_s=_LONGEST_S)

    async def close(self) -> None:
        """End what still runs."""
        for process in self._started:
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                await process.communicate()

    async def ledger(self) -> tuple[str, list[Event]]:
        """Return the run's id and its ledger."""
        async with SqliteRunStore(str(self.folder / "runs.db")) as store:
            (row,) = await store.runs()
            return row.run, await store.ledger(row.run)

    def noted(self, name: str) -> list[list[Any]]:
        """Return the lines of a file: process id and words each."""
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    async def results(self) -> list[dict[str, Any]]:
        """Return what the processes that came to an end say of the run."""

        def read() -> list[dict[str, Any]]:
            return [json.loads(p.read_text()) for p in self.folder.glob("result-*")]

        return await asyncio.to_thread(read)

    async def canonical(self) -> list[dict[str, Any]]:
        """Return the canonical ledger."""
        return canonical((await self.ledger())[1])

    async def faults(self, *, lost: int, frozen: int | None = None) -> list[str]:
        """Return what is wrong with the run.

        Args:
            lost: How many processes were lost.
            frozen: Process id of one that was frozen and revived. A call that the gate had let
                through before the freeze is made after it, at most one in each attempt; that is
                where "effectively once" ends.
        """
        run, ledger = await self.ledger()
        found = [*broken_rules(ledger), *await asyncio.to_thread(left_open, self._db, killed=True)]
        found += await asyncio.to_thread(self._noted_faults, lost, frozen)
        root = str(ledger[0].data["traceparent"]).split("-")[1]
        spans = await asyncio.to_thread(read_file, self.folder / "traces.jsonl", root)
        async with SqliteRunStore(str(self._db)) as store:
            wanted = await expected(store, await store.run(run))
        return [*found, *check(spans, wanted)]

    @property
    def _db(self) -> Path:
        return self.folder / "runs.db"

    def _noted_faults(self, lost: int, frozen: int | None) -> list[str]:
        again = Counter((pid, subtask) for pid, subtask, *_ in self.noted("asked again"))
        found = [
            f"asked again: {n} times by {pid} in {subtask}"
            for (pid, subtask), n in again.items()
            if n > (pid == frozen)
        ]
        asked = Counter(tuple(key) for _, *key in self.noted("asked"))
        found += [f"asked {n} times: {key}" for key, n in asked.items() if n > 1 + lost]
        found += [f"{sum(asked.values())} calls"] if len(asked) != 8 else []
        published = self.noted("published")
        if len(published) != 1:
            found.append(f"the guarded effect happened {len(published)} times")
        if len({key for _, key in self.noted("paged")}) != 1:
            found.append(f"the idempotent effect has several keys: {self.noted('paged')}")
        return found


async def ended(process: Process, *, code: int = 0) -> str:
    """Wait for a process, check how it ended, and return what it wrote."""
    async with asyncio.timeout(_LONGEST_S):
        output, _ = await process.communicate()
    text: str = output.decode()
    assert process.returncode == code, f"exit {process.returncode}\n{text}"
    return text


Grounds = Callable[[str], Ground]
