"""Canonical ledgers hide when and how often, and show what happened."""

from __future__ import annotations

from dataclasses import replace

from agents.assignment import Answer
from agents.outcome import ChildRequest, InputRequest
from orchestrator.canonical import canonical, canonical_hash
from orchestrator.facts import Answered
from orchestrator.state import Event
from tests.unit.rules.ledger import FLAKY, Ledger, done, planned, shape

DIAMOND = shape(
    planned("x"), planned("y", "x"), planned("v", "x"), planned("z", "y", "v"), reacts={"b": ("k",)}
)


def plain() -> Ledger:
    run = Ledger(DIAMOND)
    run.end("x", done("k"))
    for name in ("y", "v", "x/b.0", "z"):
        run.end(name)
    return run


def test_causes_come_first_and_then_ids_in_order() -> None:
    assert [item["id"] for item in canonical(plain().events)] == ["x", "v", "x/b.0", "y", "z"]


def test_what_a_subtask_caused_and_how_it_ended_is_shown() -> None:
    first = canonical(plain().events)[0]
    assert first["spawned"] == ["x/b.0"]
    assert (first["terminal"], first["output_hash"]) == ("completed", "output of x")


def test_order_attempts_and_expiries_are_not_shown() -> None:
    run = Ledger(DIAMOND)
    run.time = 77.0
    run.end("x", FLAKY)
    run.retry("x")
    run.begin("x")
    run.expire("x")
    run.end("x", done("k"))
    for name in ("x/b.0", "v", "y", "z"):
        run.end(name)
    assert canonical(run.events) == canonical(plain().events)
    assert canonical_hash(run.events) == canonical_hash(plain().events)


def test_answers_of_people_are_not_part_of_the_input() -> None:
    hashes = set()
    for value in ("yes", "no"):
        run = Ledger(shape(planned("x")))
        run.park("x", inputs=(InputRequest("q", "question", "?"),))
        run.answer(Answered(0.0, "q", Answer(value=value)))
        run.end("x")
        hashes.add(canonical_hash(run.events))
    assert len(hashes) == 1


def test_other_outputs_change_the_inputs_of_those_who_used_them() -> None:
    run = plain()
    other = [
        replace(e, data={**e.data, "output_hash": "another"})
        if e.type == "subtask.completed" and e.data["subtask"] == "x"
        else e
        for e in run.events
    ]
    before, after = canonical(run.events), canonical(other)
    differ = [a["id"] for a, b in zip(before, after, strict=True) if a != b]
    assert differ == ["x", "v", "y"]


def test_a_second_end_a_second_spawn_and_a_missing_end_show() -> None:
    events = plain().events

    def with_again(kind: str, subtask: str) -> list[Event]:
        extra = [e for e in events if e.type == kind and e.data["subtask"] == subtask]
        return [*events, *extra]

    ended_twice = {i["id"]: i for i in canonical(with_again("subtask.completed", "y"))}
    assert ended_twice["y"]["terminal"] == "completed+completed"
    spawned_twice = {i["id"]: i for i in canonical(with_again("subtask.spawned", "x/b.0"))}
    assert spawned_twice["x"]["spawned"] == ["x/b.0", "x/b.0"]
    cut = {i["id"]: i for i in canonical(events[:-2])}
    assert cut["z"]["terminal"] == ""


def test_a_second_spawn_of_a_subtask_without_a_cause_shows() -> None:
    events = plain().events
    again = [
        *events,
        *(e for e in events if e.type == "subtask.spawned" and e.data["subtask"] == "x"),
    ]
    assert canonical(again) != canonical(events)


def test_children_and_the_synthesizer_have_their_place() -> None:
    run = Ledger(shape(planned("x"), synthesizer=True))
    run.park("x", children=(ChildRequest("b", "help", "ask", 0),))
    run.end("x/b-0")
    run.end("x")
    run.end("synthesis")
    assert [item["id"] for item in canonical(run.events)] == ["x", "synthesis", "x/b-0"]


def test_an_event_of_an_unknown_type_changes_nothing() -> None:
    events = plain().events
    assert canonical([*events, Event("something.new", {})]) == canonical(events)
