"""Who talks to whom, live: the runs of a pipeline, as their ledgers grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from orchestrator.app import Source, store_path
from orchestrator.cli.progress import line, short
from orchestrator.run import POLL_S
from orchestrator.state import Event
from orchestrator.store.sqlite import SqliteRunStore

_LOOK_BACK = 100  # runs at once that are followed


@dataclass(slots=True)
class _Followed:
    """A run that is followed.

    Attributes:
        seq: Last event seen.
        agents: Who does which subtask.
        asked: Who asked whom: child to parent.
    """

    seq: int = 0
    agents: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)


class Talk:
    """Follows all runs of a pipeline; an async context manager.

    Args:
        source: The pipeline.
        say: Takes one line.
    """

    def __init__(self, source: Source, say: Callable[[str], None]) -> None:
        self._source = source
        self._say = say
        self._giver = "orchestrator → " if source.settings.mode == "orchestration" else ""
        self._runs: dict[str, _Followed] = {}

    async def __aenter__(self) -> Self:
        self._store = SqliteRunStore(await asyncio.to_thread(store_path, self._source))
        await self._store.open()
        for row in await self._store.runs(limit=_LOOK_BACK):
            self._runs[row.run] = _Followed(row.seq)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._store.close()

    async def follow(self) -> None:
        """Say what happens, until cancelled."""
        name, mode = self._source.settings.name, self._source.settings.mode
        while True:
            for row in reversed(await self._store.runs(limit=_LOOK_BACK)):
                known = self._runs.setdefault(row.run, _Followed())
                if (row.pipeline, row.mode) == (name, mode) and row.seq > known.seq:
                    for event in await self._store.ledger(row.run, after=known.seq):
                        known.seq = event.seq
                        self._tell(row.run, known, event)
            await asyncio.sleep(POLL_S)

    def _tell(self, run: str, known: _Followed, event: Event) -> None:
        told = self._run(event) if event.type.startswith("run.") else self._step(known, event)
        if told is not None:
            self._say(line(run[-5:], told))

    def _run(self, event: Event) -> str | None:
        match event.type.removeprefix("run."):
            case "submitted":
                return f"task → {short(event.data['task'], 80)}"
            case "ending":
                return f"ends: {event.data['error_class']}"
            case kind:
                return f"run {kind}"

    def _step(self, known: _Followed, event: Event) -> str | None:
        data = event.data
        if event.type == "subtask.spawned":
            known.agents[data["subtask"]] = data["agent"]
            return self._spawned(known, data)
        if "subtask" not in data:
            return None
        agent = known.agents.get(data["subtask"], "?")
        match event.type:
            case "subtask.dispatched":
                again = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
                return f"{self._giver}{agent}: {data['subtask']}{again}"
            case "subtask.completed":
                asker = known.asked.get(data["subtask"])
                return f"{agent}{f' → {asker}' if asker else ''}: {data['subtask']} done"
            case "subtask.failed" | "subtask.retry_scheduled":
                return f"{agent} failed {data['subtask']}: {data['error_class']}"
            case "finding.reported":
                return f"{agent} finds {data['kind']}: {short(data['data'], 70)}"
            case "input.requested":
                return f"{agent} → a person: {short(data['rendered'], 70)}"
            case "attempt.expired" | "attempt.given_back":
                return f"{agent} lost {data['subtask']}; it goes on elsewhere"
        return None

    def _spawned(self, known: _Followed, data: dict[str, Any]) -> str | None:
        if data.get("wait_mode"):
            parent = known.agents.get(data["parent"], "?")
            known.asked[data["subtask"]] = parent
            return f"{parent} → {data['agent']}: {short(data['task'], 70)}"
        if data.get("finding") and data.get("trigger"):
            teller = known.agents.get(data["trigger"], "?")
            return f"{teller} → {data['agent']}: {data['finding']['kind']}"
        return None
