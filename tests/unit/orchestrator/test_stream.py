"""The stream: what agents tell reaches who watches elsewhere, deltas joined, nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.events import AgentEvent
from bus.envelope import Envelope
from bus.errors import PublishFailed
from bus.memory import MemoryBus
from bus.topics import Topics
from orchestrator.stream import Stream

TOPICS = Topics("shop")


def told(kind: Any, subtask: str = "s", **data: Any) -> AgentEvent:
    return AgentEvent(kind, "r1", subtask, 1, "clerk", data)


def delta(text: str, subtask: str = "s", iteration: int = 1) -> AgentEvent:
    return told("text_delta", subtask, iteration=iteration, text=text)


class Ear:
    """Collects what is heard."""

    def __init__(self) -> None:
        self.heard: list[AgentEvent] = []
        self._news = asyncio.Event()

    def hear(self, event: AgentEvent) -> None:
        self.heard.append(event)
        self._news.set()

    async def until(self, kind: str) -> None:
        async with asyncio.timeout(10):
            while not any(event.type == kind for event in self.heard):
                self._news.clear()
                await self._news.wait()


def stream(bus: MemoryBus, source: str, store: str = "one") -> Stream:
    return Stream(bus, TOPICS, source=source, store=store)


async def test_events_reach_other_processes_once_in_order_with_deltas_joined() -> None:
    ear, own = Ear(), Ear()
    async with MemoryBus() as bus:
        teller, watcher = stream(bus, "/a"), stream(bus, "/b")
        await watcher.listen(ear.hear)
        await teller.listen(own.hear)
        said = [delta("Hel"), delta("lo"), delta("x", "t"), delta("y", iteration=2)]
        for event in (*said, told("agent_end")):
            teller.tell(event)
        await ear.until("agent_end")
        await teller.close()
    expected = [delta("Hello"), delta("x", "t"), delta("y", iteration=2), told("agent_end")]
    assert ear.heard == expected
    assert own.heard == [], "what we told is not told to us"


async def test_what_speaks_of_another_store_is_not_heard() -> None:
    ear = Ear()
    async with MemoryBus() as bus:
        await stream(bus, "/b").listen(ear.hear)
        for teller in (stream(bus, "/a", store="other"), stream(bus, "/a")):
            teller.tell(told("agent_end" if teller._store == "one" else "agent_start"))
        await ear.until("agent_end")
    assert [event.type for event in ear.heard] == ["agent_end"]


async def test_a_broker_that_is_away_costs_the_event_and_nothing_else() -> None:
    class Away(MemoryBus):
        away = True

        async def publish(self, topic: str, envelope: Envelope, *, key: str) -> None:
            if self.away:
                self.away = False
                raise PublishFailed("not now")
            await super().publish(topic, envelope, key=key)

    ear = Ear()
    async with Away() as bus:
        await stream(bus, "/b").listen(ear.hear)
        teller = stream(bus, "/a")
        for kind in ("agent_start", "agent_end"):
            teller.tell(told(kind))
        await ear.until("agent_end")
        await teller.close()
    assert [event.type for event in ear.heard] == ["agent_end"]
