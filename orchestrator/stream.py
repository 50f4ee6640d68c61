"""The ``stream`` topic: what agents tell while they work, for whoever watches from elsewhere.

Best effort: nothing here is a record, and a watcher that comes late reads the ledger.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import count

from agents.events import AgentEvent
from bus.base import Bus, Delivery, Route, Subscription
from bus.envelope import MAX_PAYLOAD_BYTES, Envelope
from bus.errors import BusError
from bus.topics import Topics
from orchestrator.codec import canonical_json

log = logging.getLogger("cadenza.stream")
_TELL = "cadenza.agent_event"
_LONGEST = 1_000  # events that wait for the broker; what comes beyond them is left out
_PAUSE_S = 0.05


class Stream:
    """One process's side of the topic.

    Args:
        bus: Carries it.
        topics: Topic names of the pipeline.
        source: Who we are; what we told is not told to us.
        store: UUID of the run store.
    """

    def __init__(self, bus: Bus, topics: Topics, *, source: str, store: str) -> None:
        self._bus = bus
        self._topic = topics.stream
        self._source = source
        self._store = store
        self._queue: deque[AgentEvent] = deque()
        self._news = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._numbers = count()

    def tell(self, event: AgentEvent) -> None:
        """Send an event soon; deltas of one text that meet here travel as one."""
        last = self._queue[-1] if self._queue else None
        if last is not None and event.type == "text_delta" and _continues(last, event):
            text = last.data["text"] + event.data["text"]
            self._queue[-1] = replace(last, data={**last.data, "text": text})
        elif len(self._queue) < _LONGEST:
            self._queue.append(event)
        self._news.set()
        if self._sender is None:
            self._sender = asyncio.create_task(self._send(), name="stream")

    async def _send(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._queue:
                await self._publish(self._queue.popleft())
            await asyncio.sleep(_PAUSE_S)  # meanwhile deltas gather

    async def _publish(self, event: AgentEvent) -> None:
        data = canonical_json(event.to_json())
        if len(data) > MAX_PAYLOAD_BYTES:
            return
        envelope = Envelope(
            id=f"{self._source}/{next(self._numbers)}",
            type=_TELL,
            source=self._source,
            subject=event.subtask,
            data=data,
            run=event.run,
            attempt=event.attempt,
            store=self._store,
        )
        try:
            await self._bus.publish(self._topic, envelope, key=event.run)
        except BusError as exc:
            log.info("watchers miss an event of %s: %s", event.run, exc)

    async def listen(self, told: Callable[[AgentEvent], None]) -> Subscription:
        """Have told what other processes tell from now on.

        Raises:
            BusError: The topic cannot be heard.
        """

        async def hear(delivery: Delivery) -> None:
            envelope = delivery.envelope
            ours = (envelope.type, envelope.store) == (_TELL, self._store)
            if ours and envelope.source != self._source:
                told(agent_event(envelope))
            await delivery.acknowledge()

        return await self._bus.subscribe([Route(self._topic, hear)], group=None)

    async def close(self) -> None:
        """Send what is waiting no longer."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait({self._sender})


def _continues(last: AgentEvent, event: AgentEvent) -> bool:
    one, other = replace(last, data={}), replace(event, data={})
    return one == other and last.data.get("iteration") == event.data.get("iteration")


def agent_event(envelope: Envelope) -> AgentEvent:
    """Read an agent event from an envelope.

    Raises:
        ValueError: The payload is none.
    """
    try:
        return AgentEvent.from_json(json.loads(envelope.data))
    except TypeError as exc:
        raise ValueError(f"message {envelope.id!r} is not an agent event: {exc}") from exc
