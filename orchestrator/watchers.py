"""Whoever follows a run in this process: told what happens here, and what others tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from agents.events import AgentEvent
from bus.base import Subscription
from bus.errors import BusError
from orchestrator.state import Event
from orchestrator.stream import Stream

log = logging.getLogger("cadenza.runtime")
Watcher = Callable[[AgentEvent | Event], None]


class Watchers:
    """Watchers by run.

    Args:
        stream: Carries agent events between processes, or None when there is one process.
    """

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream
        self._of: dict[str, list[Watcher]] = {}
        self._listening: asyncio.Task[Subscription | None] | None = None

    def add(self, run: str, watcher: Watcher) -> Callable[[], None]:
        """Tell a watcher of a run; returns how to stop."""
        self._of.setdefault(run, []).append(watcher)
        if self._stream is not None and self._listening is None:
            self._listening = asyncio.create_task(self._listen(self._stream), name="listen")

        def stop() -> None:
            watchers = self._of.get(run, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._of.pop(run, None)

        return stop

    async def _listen(self, stream: Stream) -> Subscription | None:
        try:
            return await stream.listen(self._hear)
        except BusError as exc:
            log.warning("what agents do elsewhere is not shown: %s", exc)
            return None

    def _hear(self, event: AgentEvent) -> None:
        self.tell(event.run, [event])

    def told(self, event: AgentEvent) -> None:
        """Take what an agent of this process tells."""
        self.tell(event.run, [event])
        if self._stream is not None:
            self._stream.tell(event)

    def tell(self, run: str, events: Iterable[AgentEvent | Event]) -> None:
        """Tell the watchers of a run."""
        for event in events:
            for watcher in tuple(self._of.get(run, ())):
                watcher(event)

    async def close(self) -> None:
        """Listen and tell no more."""
        if self._listening is not None:
            subscription = await self._listening
            if subscription is not None:
                await subscription.close()
        if self._stream is not None:
            await self._stream.close()
