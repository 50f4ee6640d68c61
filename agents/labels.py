"""Labels on data: where it came from and whether it can be trusted.

Labels only ever get worse: joining is monotone, so text from outside cannot wash itself clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Integrity = Literal["trusted", "untrusted"]


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a piece of data.

    Attributes:
        integrity: ``untrusted`` once anything untrusted took part.
        sources: Names of tools and entry points that took part.
    """

    integrity: Integrity = "trusted"
    sources: frozenset[str] = frozenset()

    def join(self, other: Label) -> Label:
        """Return the label of data made from both."""
        untrusted = "untrusted" in (self.integrity, other.integrity)
        return Label("untrusted" if untrusted else "trusted", self.sources | other.sources)

    def to_json(self) -> dict[str, Any]:
        """Return the plain-JSON form."""
        return {"integrity": self.integrity, "sources": sorted(self.sources)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Label:
        """Read the plain-JSON form."""
        return cls(data["integrity"], frozenset(data["sources"]))
