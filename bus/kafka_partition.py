"""What a group has done of one partition, in this process: which offsets are acknowledged.

Kafka keeps one number a partition and group, and after a rebalance begins there again. What is
held here, or was acknowledged beyond that number, is then delivered once more and must not run
once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bus.envelope import Envelope


@dataclass(slots=True, eq=False)
class Message:
    """One message that was taken from a partition."""

    partition: Partition
    offset: int
    envelope: Envelope
    deliveries: int = 0

    @property
    def held(self) -> bool:
        """Whether it is still in this process's hands and unacknowledged."""
        return self.partition.held.get(self.offset) is self

    def acknowledge(self) -> bool:
        """Note that its work is safe; return whether that is new."""
        return self.held and self.partition.held.pop(self.offset) is self

    def give_up(self) -> None:
        """Leave it, unless it is acknowledged, to whoever has the partition next."""
        if self.acknowledge():
            self.partition.lost.add(self.offset)


@dataclass(slots=True, eq=False)
class Partition:
    """The offsets of one partition.

    Attributes:
        owner: Who takes from it now, or None.
        known: Whether its owner has taken from it: before that, others may have got further.
        end: The offset after the last one taken.
        committed: The highest offset known to be committed.
        held: What is queued, handled or waiting to be handled again, unacknowledged.
        lost: Offsets that were given up and will come again, here or elsewhere.
    """

    owner: object = None
    known: bool = False
    end: int = 0
    committed: int = -1
    held: dict[int, Message] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)

    def own(self, owner: object) -> None:
        """Have a new owner, who begins where the group has committed."""
        self.owner, self.known = owner, False

    @property
    def to_commit(self) -> int | None:
        """The first offset that is not acknowledged, unless that is committed or not known."""
        first = min((*self.held, *self.lost), default=self.end)
        return first if self.known and first > self.committed else None

    def is_new(self, offset: int) -> bool:
        """Note that an offset was delivered; return whether it is to be handled."""
        if offset < self.committed:  # the topic was made anew
            self.held, self.lost, self.end, self.committed = {}, set(), offset, -1
        if not self.known:
            self.known, self.end = True, max(self.end, offset)
            self.lost = {each for each in self.lost if each >= offset}
        new = offset >= self.end or offset in self.lost
        self.lost.discard(offset)
        self.end = max(self.end, offset + 1)
        return new

    def take(self, offset: int, envelope: Envelope) -> Message:
        """Hold a message that is to be handled."""
        message = self.held[offset] = Message(self, offset, envelope)
        return message
