"""Canonical ledgers: what a run did, without when, where, by whom and in how many attempts.

Two runs of a pipeline with the same agents have equal canonical ledgers whatever the mode, the
bus and the faults were, unless siblings were cancelled at racing moments.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Any

from orchestrator.codec import digest
from orchestrator.state import TERMINAL, Event

_ENDS = {f"subtask.{status}": status for status in TERMINAL}


def canonical(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return one object a subtask, topologically sorted: causes first, then by id.

    What must happen once and happened twice shows: a second end is added to ``terminal``
    (``completed+completed``), and what was spawned twice stands in the list twice.

    Args:
        events: A run's ledger, in order.

    Returns:
        Objects with ``id``, ``agent``, ``input_hash``, ``spawned`` (sorted ids of the subtasks
        that this one caused), ``terminal`` (empty when it never ended) and ``output_hash``.
    """
    spawned: dict[str, dict[str, Any]] = {}
    used: dict[str, list[str]] = {}
    ends: dict[str, list[str]] = {}
    outputs: dict[str, str | None] = {}
    caused: dict[str, list[str]] = {}
    times: Counter[str] = Counter()
    for event in events:
        subtask = event.data.get("subtask", "")
        if event.type == "subtask.spawned":
            spawned.setdefault(subtask, event.data)
            times[subtask] += 1
            caused.setdefault(_cause(event.data), []).append(subtask)
        elif event.type == "subtask.ready" and "used" in event.data:
            used[subtask] = event.data["used"]
        elif event.type in _ENDS:
            ends.setdefault(subtask, []).append(_ENDS[event.type])
            outputs[subtask] = event.data.get("output_hash")
    for subtask, data in spawned.items():
        used.setdefault(subtask, data.get("inputs", []))
    return [
        {
            "id": subtask,
            "agent": spawned[subtask]["agent"],
            "input_hash": _input_hash(spawned[subtask], [outputs.get(x) for x in used[subtask]]),
            "spawned": sorted(caused.get(subtask, ())),
            "terminal": "+".join(ends.get(subtask, ())),
            "output_hash": outputs.get(subtask),
        }
        for subtask in _sorted({name: _causes(spawned[name], used[name]) for name in spawned})
        for _ in range(times[subtask])
    ]


def canonical_hash(events: Iterable[Event]) -> str:
    """Return the SHA-256 of a canonical ledger."""
    return digest(canonical(events))


def _cause(data: dict[str, Any]) -> str:
    return data.get("parent") or data.get("trigger") or ""


def _causes(data: dict[str, Any], used: list[str]) -> set[str]:
    return {_cause(data), *data.get("after", ()), *used}


def _input_hash(data: dict[str, Any], outputs: list[str | None]) -> str:
    finding = data.get("finding")
    return digest(
        {
            "kind": data["kind"],
            "agent": data["agent"],
            "task": data["task"],
            "inputs": sorted(output or "" for output in outputs),
            "finding": None if finding is None else [finding["kind"], finding["data"]],
        }
    )


def _sorted(causes: dict[str, set[str]]) -> list[str]:
    effects: dict[str, list[str]] = {}
    left = {name: len(found & causes.keys()) for name, found in causes.items()}
    for name, found in causes.items():
        for cause in found & causes.keys():
            effects.setdefault(cause, []).append(name)
    free = [name for name, count in left.items() if not count]
    heapq.heapify(free)
    order = []
    while free:
        order.append(heapq.heappop(free))
        for name in effects.get(order[-1], ()):
            left[name] -= 1
            if not left[name]:
                heapq.heappush(free, name)
    return order
