"""Whoever follows a run in this process: told what happens here, and what others tell."""

from __future__ import annotations

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
        self._subscription: Subscription | None = None

    def add(self, run: str, watcher: Watcher) -> Callable[[], None]:
        """Tell a watcher of a run; returns how to stop."""
        self._of.setdefault(run, []).append(watcher)

        def stop() -> None:
            watchers = self._of.get(run, [])
            if watcher in watchers:
                watchers.remove(watcher)
            if not watchers:
                self._of.pop(run, None)

        return stop

    async def listen(self) -> None:
        """Be told from now on what agents of other processes tell."""
        if self._stream is not None:
            try:
                self._subscription = await self._stream.listen(self._hear)
            except BusError as exc:
                log.warning("what agents do elsewhere is not shown: %s", exc)

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
        if self._subscription is not None:
            await self._subscription.close()
        if self._stream is not None:
            await self._stream.close()
