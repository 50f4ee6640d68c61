"""What made something happen, as messages carry it from one process to the next."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from bus.base import Delivery
from tracing import attributes as names

MAX_NESTED_HOPS = 15  # a longer chain would nest deeper than trace views show


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause, for the spans of what follows from it.

    Attributes:
        parent: ``traceparent`` that those spans hang from; empty for the run's.
        hop: How many messages came before.
        service: Who did it; empty for the run's own service.
        links: Other spans: what each is, and its ``traceparent``.
        topic: Where the message was heard, or empty when there was none.
        message: Its id.
        group: Who heard it.
        heard_s: When, in seconds since the epoch.
    """

    parent: str = ""
    hop: int = 0
    service: str = ""
    links: tuple[tuple[str, str], ...] = ()
    topic: str = ""
    message: str = ""
    group: str = ""
    heard_s: float = 0.0

    @classmethod
    def of(cls, delivery: Delivery, group: str = "") -> Cause:
        """Return what a message tells of its cause."""
        envelope = delivery.envelope
        pairs = (pair.partition("=") for pair in envelope.extra.get("links", "").split())
        return cls(
            envelope.traceparent,
            envelope.hop,
            links=tuple((what, place) for what, _, place in pairs),
            topic=delivery.topic,
            message=envelope.id,
            group=group,
            heard_s=time.time(),
        )

    def under(self, root: str, *, nested: bool) -> Cause:
        """Return the cause of a choreographed step.

        The producer is the parent, or else the run is, with a link to the producer.

        Args:
            root: ``traceparent`` of the run.
            nested: Whether steps hang from each other at all.
        """
        if nested and self.hop <= MAX_NESTED_HOPS:
            return self
        link = () if self.parent in ("", root) else ((names.PRODUCER, self.parent),)
        return replace(self, parent=root, links=(*self.links, *link))

    @property
    def header(self) -> dict[str, str]:
        """The links as an attribute of a message; none when there are none."""
        links = " ".join(f"{what}={place}" for what, place in self.links)
        return {"links": links} if links else {}
