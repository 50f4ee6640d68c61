"""Cases whose siblings are cancelled at racing moments: invariants hold, ledgers may differ."""

from __future__ import annotations

import asyncio
from typing import Any

from agents.function import agent
from orchestrator.run import Run
from orchestrator.state import Event
from tests.conformance.cases import broken, call, check, double, stock
from tests.conformance.gear import Case


@agent
async def forever(task: str) -> str:
    """Works until it is told to stop."""
    await asyncio.Event().wait()
    return "never"


def _any() -> dict[str, Any]:
    return {
        "agents": {"double": double, "check": check, "forever": forever},
        "plan": [
            {"id": "fast", "agent": "double"},
            {"id": "slow", "agent": "forever"},
            {"id": "other", "agent": "check"},
            {"id": "end", "agent": "check", "after": ["fast", "slow", "other"], "join": "any"},
        ],
    }


def _deadline() -> dict[str, Any]:
    return {
        "agents": {"double": double, "check": check, "forever": forever},
        "plan": [
            {"id": "fast", "agent": "double"},
            {"id": "slow", "agent": "forever"},
            {"id": "end", "agent": "check", "after": ["fast", "slow"], "deadline_s": 1.0},
        ],
    }


def _failing() -> dict[str, Any]:
    return {
        "agents": {"broken": broken, "forever": forever, "check": check},
        "plan": [
            {"id": "a", "agent": "broken"},
            {"id": "b", "agent": "forever"},
            {"id": "c", "agent": "check"},
            {"id": "d", "agent": "check", "after": ["a", "b", "c"]},
        ],
    }


def _poor() -> dict[str, Any]:
    return {
        "agents": {"analyst": {"tools": [stock]}, "check": check},
        "plan": [
            {"id": "z", "agent": "check"},
            *({"id": f"s{i}", "agent": "analyst"} for i in range(4)),
        ],
        "budget": {"llm_calls": 5},
    }


def _endless() -> dict[str, Any]:
    return {
        "agents": {"double": double, "forever": forever, "check": check},
        "plan": [
            {"id": "a", "agent": "double"},
            {"id": "b", "agent": "forever"},
            {"id": "c", "agent": "check", "after": ["a", "b"]},
        ],
    }


async def _cancel_after_a(run: Run, event: Event) -> bool:
    if event.type != "subtask.completed":
        return False
    await run.cancel("seen enough")
    return True


# Name to case and possible statuses.
RACING = {
    "any": (Case(_any), {"completed"}),
    # Failed where faults keep the fast one from completing before the deadline.
    "join deadline": (Case(_deadline), {"completed", "failed"}),
    "permanent failure": (Case(_failing), {"failed"}),
    "cancel": (Case(_endless, act=_cancel_after_a), {"cancelled"}),
    "budget stop": (
        Case(
            _poor,
            lambda: [
                {"agent": "analyst", "call": i, "tool_calls": [call("stock", sku=f"A{i}")]}
                for i in range(4)
            ],
        ),
        {"over_budget"},
    ),
}
