"""What the rules need to know of a pipeline, pinned by the run's first event."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agents.outcome import PlannedSubtask


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep a run finite.

    Attributes:
        attempts: Failures of a subtask before it is exhausted.
        expiries: Lost leases of a subtask before it fails as ``lost_worker``.
        replans: Replans a run.
        hops: Length of a chain of reactions and children.
        retry_base_s: Seconds before the first retry; doubles with each failure.
        wall_s: Seconds of wall time a run may take.
        lease_s: Seconds a claim lasts without a heartbeat.
        grace_s: Seconds before an agent that no live worker serves is unroutable.
    """

    attempts: int = 3
    expiries: int = 20
    replans: int = 2
    hops: int = 16
    retry_base_s: float = 0.5
    wall_s: float = 3_600.0
    lease_s: float = 30.0
    grace_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RunShape:
    """The pipeline as the rules see it.

    Attributes:
        agents: Agent name to the finding kinds it reacts to.
        planner: Name of the agent that plans, or None.
        plan: The static plan; empty when there is none.
        synthesizer: Name of the agent that writes the answer, or None.
        limits: Bounds.
    """

    agents: dict[str, tuple[str, ...]]
    planner: str | None = None
    plan: tuple[PlannedSubtask, ...] = ()
    synthesizer: str | None = None
    limits: Limits = Limits()

    def to_json(self) -> dict[str, Any]:
        """Return the plain-JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RunShape:
        """Read the plain-JSON form."""
        return cls(
            agents={name: tuple(kinds) for name, kinds in data["agents"].items()},
            planner=data["planner"],
            plan=tuple(planned_from_json(item) for item in data["plan"]),
            synthesizer=data["synthesizer"],
            limits=Limits(**data["limits"]),
        )


def planned_from_json(item: dict[str, Any]) -> PlannedSubtask:
    """Read a planned subtask from its plain-JSON form."""
    return PlannedSubtask(**{**item, "after": tuple(item["after"])})
