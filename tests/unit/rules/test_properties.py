"""What holds for every state and every fact: pure, total, deterministic, and cheap."""

from __future__ import annotations

import copy
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from agents.assignment import Answer
from agents.outcome import (
    AttemptCancelled,
    ChildRequest,
    Completed,
    InputRequest,
    Outcome,
    Parked,
    PlannedSubtask,
)
from orchestrator import rules
from orchestrator.decision import Decision
from orchestrator.facts import (
    Answered,
    CancelAsked,
    Dispatched,
    Ended,
    Expired,
    Fact,
    Revoked,
    Submitted,
    TimerFired,
    TimerKind,
    Unroutable,
)
from orchestrator.rules import decide
from orchestrator.state import Event, RunState, evolve
from tests.simulation.scenario import AGENTS, random_plan, scenario
from tests.simulation.world import World
from tests.unit.rules.ledger import BROKEN, FLAKY, done, planned, shape

SIZES = (50, 500, 2_000)


def any_outcome(rng: random.Random) -> Outcome:
    """Return a random outcome, sensible or not."""
    children = tuple(
        ChildRequest(rng.choice((*AGENTS, "nobody")), "help", rng.choice(("ask", "hand_off")), k)
        for k in range(rng.randint(0, 2))
    )
    inputs = tuple(InputRequest(f"q{i}", "question", "?") for i in range(rng.randint(0, 1)))
    broken_plan = (PlannedSubtask("x", "nobody", "", ("x", "x", "y")),)
    return rng.choice(
        (
            done("k0", "k1", "task"),
            Completed(None, spawns=random_plan(rng, free=True)),
            Completed(None, spawns=broken_plan),
            BROKEN,
            FLAKY,
            AttemptCancelled(),
            Parked(inputs, children, rng.choice((None, 1.0))),
        )
    )


def any_fact(rng: random.Random, state: RunState) -> Fact:
    """Return a random fact about subtasks that exist, or do not."""
    subtask = rng.choice((*state.subtasks, "nothing"))
    sub = state.subtasks.get(subtask)
    attempt = rng.randint(0, 3) if sub is None or rng.random() < 0.3 else sub.attempt
    kinds: tuple[TimerKind, ...] = (
        "retry",
        "join",
        "until",
        "retry",
        "join",
        "until",
        "input",
        "wall",
    )
    kind = rng.choice(kinds)
    return rng.choice(
        (
            Submitted(9.0, "again", scenario(rng.randint(0, 9)).shape, "t", {}),
            Dispatched(9.0, subtask, attempt + rng.randint(0, 1)),
            Ended(9.0, subtask, attempt, any_outcome(rng), "hash", "w"),
            Ended(9.0, subtask, attempt, any_outcome(rng), None, "w"),
            Expired(9.0, subtask, attempt),
            Revoked(9.0, subtask, attempt),
            Unroutable(9.0, subtask, attempt + rng.randint(0, 1), "a"),
            TimerFired(9.0, kind, rng.choice((subtask, "q0", *state.inputs)), attempt),
            Answered(9.0, rng.choice(("q0", "nothing", *state.inputs)), Answer(True)),
            rng.choice((CancelAsked(9.0, "enough"), Dispatched(9.0, subtask, attempt + 1))),
        )
    )


def random_walk(seed: int, length: int = 60) -> Iterator[tuple[RunState, Fact]]:
    """Yield states with facts, each state made by the facts before."""
    rng = random.Random(seed)
    state = RunState()
    fact: Fact = Submitted(0.0, "r", scenario(seed).shape, "task", {})
    for _ in range(length):
        yield state, fact
        for event in decide(state, fact):
            evolve(state, Event(event.type, event.data, state.seq + 1, event.time))
        fact = any_fact(rng, state)


@pytest.mark.parametrize("seed", range(60))
def test_any_fact_in_any_state_is_decided_purely_and_the_same_each_time(seed: int) -> None:
    for state, fact in random_walk(seed):
        before = copy.deepcopy(state)
        events = decide(state, fact)
        assert state == before
        assert decide(before, fact) == events


@pytest.mark.parametrize("seed", range(60, 100))
def test_the_ledger_folded_is_the_state_that_was_decided_on(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts: list[RunState] = []

    def noted(state: RunState, time: float) -> Decision:
        drafts.append(state)
        return Decision(state, time)

    monkeypatch.setattr(rules, "Decision", noted)
    for state, fact in random_walk(seed):
        drafts.clear()
        folded = copy.deepcopy(state)
        for event in decide(state, fact):
            evolve(folded, event)
        if drafts:
            draft = drafts[0]
            assert {sub.id: sub for sub in draft.subtasks.values()} == folded.subtasks
            draft.subtasks = folded.subtasks
            assert draft == folded


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_ledger_read_back_in_pieces_gives_the_same_run(seed: int) -> None:
    world = World(scenario(seed), "choreography")
    world.play()
    for cut in (1, len(world.store.events) // 2):
        state = RunState(run=world.run)
        for event in world.store.events[:cut]:
            evolve(state, event)
        state = copy.deepcopy(state)
        for event in world.store.events[cut:]:
            evolve(state, event)
        assert state == world.checker.state


def chains(size: int, *, begun: bool) -> RunState:
    """Return a run of many chains of five, whose first subtasks are ready or open."""
    plan = [
        planned(f"s{i}", *([f"s{i - 1}"] if i % 5 else []), agent="a" if i % 2 else "b")
        for i in range(size)
    ]
    state = RunState()
    facts: list[Fact] = [Submitted(0.0, "r", shape(*plan, planner=True), "task", {})]
    facts += [Dispatched(0.0, f"s{i}", 1) for i in range(0, size if begun else 5, 5)]
    for fact in facts:
        for event in decide(state, fact):
            evolve(state, event)
    return state


FACTS: dict[str, tuple[bool, Fact]] = {
    "dispatched": (False, Dispatched(1.0, "s5", 1)),
    "completed": (True, Ended(1.0, "s0", 1, done("k"), "h", "w")),
    "completed among ready ones": (False, Ended(1.0, "s0", 1, done("k"), "h", "w")),
    "retried": (True, Ended(1.0, "s0", 1, FLAKY, None, "w")),
    "replanned": (True, Ended(1.0, "s0", 1, BROKEN, None, "w")),
    "parked": (
        True,
        Ended(1.0, "s0", 1, Parked((), (ChildRequest("b", "help", "ask", 0),), 1.0), None, "w"),
    ),
    "expired": (True, Expired(1.0, "s0", 1)),
}


def calls(act: Callable[[], Any]) -> int:
    """Return how many functions, Python's and C's, are called."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def peak(act: Callable[[], Any]) -> int:
    """Return how many bytes are held at most."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", FACTS)
def test_a_decision_costs_the_same_in_a_long_run_as_in_a_short_one(name: str) -> None:
    begun, fact = FACTS[name]
    small, middle, large = (chains(size, begun=begun) for size in SIZES)
    assert decide(small, fact)
    work = [calls(partial(decide, state, fact)) for state in (small, middle, large)]
    assert work[2] <= work[0] * 1.1, work
    memory = [peak(partial(decide, state, fact)) for state in (small, middle, large)]
    assert memory[2] <= memory[0] * 1.5, memory
