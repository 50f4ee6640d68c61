"""The state of a run, folded from its ledger: ``evolve(state, event)``.

The state holds hashes of outputs, not outputs. ``RunState.draft`` gives a copy-on-write view, so
that deciding costs by what changes and not by the size of the run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from orchestrator.shape import RunShape

V = TypeVar("V")
Status = Literal[
    "pending",  # waits for dependencies
    "ready",  # may be dispatched
    "open",  # an attempt is dispatched
    "waiting",  # for its retry
    "parked",  # for people, children or time
    "completed",
    "failed",
    "cancelled",
    "superseded",
]
TERMINAL = frozenset({"completed", "failed", "cancelled", "superseded"})
FINAL_EVENTS = frozenset(
    {"run.completed", "run.failed", "run.cancelled", "run.stalled", "run.over_budget"}
)


@dataclass(frozen=True, slots=True)
class Event:
    """A fact, or its consequence, that the ledger accepted.

    Attributes:
        type: Past tense of what happened, for example ``subtask.completed``.
        data: JSON object.
        seq: Position in the run's ledger, from 1; 0 before it is appended.
        time: Store time, seconds since the epoch.
    """

    type: str
    data: dict[str, Any]
    seq: int = 0
    time: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the plain-JSON form."""
        return {"seq": self.seq, "time": self.time, "type": self.type, "data": self.data}


@dataclass(slots=True)
class Subtask:
    """One subtask, as the rules see it."""

    id: str
    kind: str
    agent: str
    parent: str | None = None
    wait_mode: str | None = None  # ask or hand_off, when the parent waits for it
    after: tuple[str, ...] = ()
    join: str = "all"
    trigger: str | None = None  # the subtask whose finding it reacts to
    hop: int = 0
    quiet: bool = False  # the synthesizer and what descends from it
    status: Status = "pending"
    attempt: int = 0
    failures: int = 0
    expiries: int = 0
    generation: int = 0
    cancelling: bool = False
    deadline: bool = False
    inputs: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    until: bool = False
    hand_off: bool = False
    dependents: tuple[str, ...] = ()
    reactions: tuple[str, ...] = ()
    spawned: tuple[str, ...] = ()
    used: tuple[str, ...] | None = None  # dependencies it started with
    output_hash: str | None = None
    error_class: str | None = None


class Subtasks(dict[str, Subtask]):
    """Subtasks by id."""

    def own(self, subtask_id: str) -> Subtask:
        """Return a subtask that may be changed."""
        return self[subtask_id]


class DraftSubtasks(Subtasks):
    """A copy-on-write view of subtasks."""

    def __init__(self, base: Subtasks) -> None:
        super().__init__()
        self._base = base

    def __missing__(self, subtask_id: str) -> Subtask:
        return self._base[subtask_id]

    def __contains__(self, subtask_id: object) -> bool:
        return super().__contains__(subtask_id) or subtask_id in self._base

    def own(self, subtask_id: str) -> Subtask:
        """Return a subtask that may be changed, copied on the first call."""
        if not super().__contains__(subtask_id):
            self[subtask_id] = copy.copy(self._base[subtask_id])
        return self[subtask_id]

    def get(self, subtask_id: str, default: Any = None) -> Any:
        """Return a subtask or the default."""
        try:
            return self[subtask_id]
        except KeyError:
            return default

    def values(self) -> Iterator[Subtask]:  # type: ignore[override]  # a view costs a class more
        """Yield every subtask."""
        return (self[subtask_id] for subtask_id in self)

    def __iter__(self) -> Iterator[str]:
        yield from self._base
        yield from (key for key in super().__iter__() if key not in self._base)


class Overlay(MutableMapping[str, V], Generic[V]):
    """A copy-on-write view of a mapping."""

    def __init__(self, base: Mapping[str, V]) -> None:
        self._base = base
        self._new: dict[str, V] = {}
        self._gone: set[str] = set()

    def __getitem__(self, key: str) -> V:
        if key in self._gone:
            raise KeyError(key)
        return self._new[key] if key in self._new else self._base[key]

    def __setitem__(self, key: str, value: V) -> None:
        self._new[key] = value
        self._gone.discard(key)

    def __delitem__(self, key: str) -> None:
        self._new.pop(key, None)
        self._gone.add(key)

    def __iter__(self) -> Iterator[str]:
        yield from self._new
        yield from (k for k in self._base if k not in self._new and k not in self._gone)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(slots=True)
class RunState:
    """A run, folded up to ``seq``."""

    run: str = ""
    seq: int = 0
    shape: RunShape | None = None
    subtasks: Subtasks = field(default_factory=Subtasks)
    ready: MutableMapping[str, None] = field(default_factory=dict)  # a set, but ordered
    outstanding: int = 0
    ending: str | None = None  # failed, cancelled or over_budget
    ending_data: dict[str, Any] = field(default_factory=dict)
    replans: int = 0
    replan_open: str | None = None
    replan_queue: tuple[str, ...] = ()
    synthesis: str | None = None
    final: str | None = None
    inputs: MutableMapping[str, tuple[str, int]] = field(default_factory=dict)  # still open

    def draft(self) -> RunState:
        """Return a view that may be evolved without changing this state."""
        view = copy.copy(self)
        view.subtasks = DraftSubtasks(self.subtasks)
        view.ready = Overlay(self.ready)
        view.inputs = Overlay(self.inputs)
        return view

    def sort_of(self) -> RunShape:
        """Return the shape of a submitted run.

        Raises:
            ValueError: The run was not submitted yet.
        """
        if self.shape is None:
            raise ValueError(f"run {self.run!r} has no run.submitted event")
        return self.shape


def evolve(state: RunState, event: Event) -> None:
    """Fold one event into the state, in place.

    Events of an unknown type change nothing but ``seq``: they are news for people.
    """
    if event.seq:
        state.seq = event.seq
    handler = _HANDLERS.get(event.type)
    if handler is not None:
        handler(state, event.data)
    elif event.type in FINAL_EVENTS:
        state.final = event.type.removeprefix("run.")


def _submitted(state: RunState, data: dict[str, Any]) -> None:
    state.run = data["run"]
    state.shape = RunShape.from_json(data["shape"])


def _spawned(state: RunState, data: dict[str, Any]) -> None:
    sub = Subtask(
        id=data["subtask"],
        kind=data["kind"],
        agent=data["agent"],
        parent=data.get("parent"),
        wait_mode=data.get("wait_mode"),
        after=tuple(data.get("after", ())),
        join=data.get("join", "all"),
        trigger=data.get("trigger"),
        hop=data.get("hop", 0),
        quiet=data.get("quiet", False),
        deadline=data.get("deadline_at") is not None,
    )
    state.subtasks[sub.id] = sub
    state.outstanding += 1
    for dep in sub.after:
        state.subtasks.own(dep).dependents += (sub.id,)
    if sub.trigger in state.subtasks:
        state.subtasks.own(str(sub.trigger)).reactions += (sub.id,)
    if sub.parent is not None:
        state.subtasks.own(sub.parent).spawned += (sub.id,)
    if sub.kind == "synthesize" and sub.parent is None:
        state.synthesis = sub.id
    if data.get("replan_of"):
        state.replans += 1
        state.replan_open = sub.id
        state.replan_queue = tuple(s for s in state.replan_queue if s != data["replan_of"])


def _own(state: RunState, data: dict[str, Any]) -> Subtask:
    return state.subtasks.own(data["subtask"])


def _ready(state: RunState, data: dict[str, Any]) -> None:
    sub = _own(state, data)
    sub.status = "ready"
    sub.inputs = sub.children = frozenset()
    sub.until = False
    if "used" in data:
        sub.used = tuple(data["used"])
    state.ready[sub.id] = None


def _dispatched(state: RunState, data: dict[str, Any]) -> None:
    sub = _own(state, data)
    sub.status = "open"
    sub.attempt = data["attempt"]
    state.ready.pop(sub.id, None)


def _closed(status: Status) -> Callable[[RunState, dict[str, Any]], None]:
    def close(state: RunState, data: dict[str, Any]) -> None:
        sub = _own(state, data)
        sub.status = status
        sub.output_hash = data.get("output_hash")
        sub.error_class = data.get("error_class")
        sub.inputs = sub.children = frozenset()
        state.ready.pop(sub.id, None)
        state.outstanding -= 1
        if state.replan_open == sub.id:
            state.replan_open = None

    return close


def _retry(state: RunState, data: dict[str, Any]) -> None:
    sub = _own(state, data)
    sub.status = "waiting"
    sub.failures += 1
    sub.generation += bool(data["new_generation"])


def _expired(state: RunState, data: dict[str, Any]) -> None:
    _own(state, data).expiries += 1


def _parked(state: RunState, data: dict[str, Any]) -> None:
    sub = _own(state, data)
    sub.status = "parked"
    sub.inputs = frozenset(data["inputs"])
    sub.children = frozenset(data["subtasks"])
    sub.until = data.get("until_at") is not None
    sub.hand_off = data.get("hand_off", False)


def _input_requested(state: RunState, data: dict[str, Any]) -> None:
    state.inputs[data["input"]] = (data["subtask"], data["attempt"])


def _input_provided(state: RunState, data: dict[str, Any]) -> None:
    state.inputs.pop(data["input"], None)
    sub = _own(state, data)
    sub.inputs -= {data["input"]}


def _child_met(state: RunState, data: dict[str, Any]) -> None:
    sub = _own(state, data)
    sub.children -= {data["child"]}


def _until_passed(state: RunState, data: dict[str, Any]) -> None:
    _own(state, data).until = False


def _cancel_requested(state: RunState, data: dict[str, Any]) -> None:
    _own(state, data).cancelling = True


def _replan_queued(state: RunState, data: dict[str, Any]) -> None:
    state.replan_queue += (data["subtask"],)


def _ending(state: RunState, data: dict[str, Any]) -> None:
    state.ending = data["kind"]
    state.ending_data = data


_HANDLERS: dict[str, Callable[[RunState, dict[str, Any]], None]] = {
    "run.submitted": _submitted,
    "run.ending": _ending,
    "subtask.spawned": _spawned,
    "subtask.ready": _ready,
    "subtask.dispatched": _dispatched,
    "subtask.completed": _closed("completed"),
    "subtask.failed": _closed("failed"),
    "subtask.cancelled": _closed("cancelled"),
    "subtask.superseded": _closed("superseded"),
    "subtask.retry_scheduled": _retry,
    "subtask.parked": _parked,
    "subtask.child_ended": _child_met,
    "subtask.pause_ended": _until_passed,
    "subtask.cancel_requested": _cancel_requested,
    "attempt.expired": _expired,
    "attempt.given_back": _expired,
    "input.requested": _input_requested,
    "input.provided": _input_provided,
    "replan.queued": _replan_queued,
}
