"""Which messages of a shared broker are a process's own."""

from __future__ import annotations

import asyncio

from bus.base import Delivery, Handler
from orchestrator.errors import OtherStore


class Intake:
    """Passes on what is of one pipeline, mode and run store.

    Args:
        pin: See ``Scope.pin``.
        store: UUID of the run store.

    Attributes:
        refused: Set once a message spoke of another run store: this process is set up wrong.
        refusal: Which message, and what to do.
    """

    def __init__(self, pin: str, store: str) -> None:
        self._pin = pin
        self._store = store
        self.refused = asyncio.Event()
        self.refusal = ""

    def ours(self, handle: Handler) -> Handler:
        """Return a handler that leaves others' messages to their own groups."""

        async def ours(delivery: Delivery) -> None:
            envelope = delivery.envelope
            if envelope.extra.get("pin", self._pin) != self._pin:
                await delivery.acknowledge()
                return
            if envelope.store != self._store:
                self.refusal = (
                    f"message {envelope.id!r} speaks of run store {envelope.store!r}, this process"
                    f" has {self._store!r}; start it with that store"
                )
                self.refused.set()
                raise OtherStore(self.refusal)
            await handle(delivery)

        return ours
