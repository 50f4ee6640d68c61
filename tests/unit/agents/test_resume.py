"""A new attempt resumes inside the loop: whatever the crash point, nothing is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from agents.assignment import Answer, Assignment, Input
from agents.context import RunContext
from agents.errors import Cancelled, Fenced
from agents.limits import Limits
from agents.models.base import ModelRequest
from agents.outcome import Completed, Outcome, Parked
from agents.react import ReActAgent
from agents.tool_decorator import tool
from agents.usage import Usage
from tests.unit.agents.kit import (
    Died,
    MortalJournal,
    StrictModel,
    asks,
    attempt,
    call,
    carry_on,
    job,
    react,
)

TEXT_SCRIPT: list[Any] = [
    asks(call("get_weather", city="Paris")),
    asks(call("send_email", to="a@b", body="hi")),
    asks(call("report_finding", kind="mail", data={"sent": 1})),
    asks(call("wipe", path="/x")),
    asks(call("ask_agent", agent="writer", task="write")),
    asks(call("ask_human", question="Sure?")),
    "Final Answer: It is 12C.",
]
SCRIPT: list[Any] = [
    asks(call("get_weather", city="Paris"), call("get_weather", city="Oslo")),
    asks(call("send_email", to="a@b", body="hi"), call("get_weather", city="Rome")),
    asks(call("report_finding", kind="mail", data={"sent": 1}), call("nope")),
    asks(call("wipe", path="/x"), call("ask_agent", agent="writer", task="write")),
    asks(call("ask_human", question="Sure?")),
    "It is 12C.",
]
TEAM = {"writer": "writes"}


class World:
    """What the tools did, outside of any process."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()

    def agent(self, model: StrictModel) -> ReActAgent:
        return react(
            model,
            tools=[get_weather, send_email, wipe],
            reports=("mail",),
            can_ask=TEAM,
            can_ask_human=True,
            limits=Limits(max_iterations=10),
            resources={"world": self},
        )


@tool
async def get_weather(city: str) -> str:
    return f"{city}: 12C"


@tool
async def slow() -> str:
    return "at last"


@tool(effect="guarded")
async def send_email(to: str, body: str, ctx: RunContext) -> str:
    ctx.resources["world"].effects[ctx.idempotency_key] += 1
    return "sent"


@tool(effect="guarded", needs_approval=True)
async def wipe(path: str, ctx: RunContext) -> str:
    ctx.resources["world"].effects[ctx.idempotency_key] += 1
    return "wiped"


def answer(world: World, request: Any) -> Answer:
    match request.kind:
        case "question":
            return Answer(value="yes")
        case "effect_unknown":
            # The person looks whether it did happen.
            if world.effects[request.data["idempotency_key"]]:
                return Answer(approved=False, value="sent")
            return Answer(approved=True)
        case _:
            return Answer(approved=True)


def same(a: Outcome, b: Outcome) -> bool:
    return replace(a, usage=Usage()) == replace(b, usage=Usage())


async def full_run(script: list[Any], dialect: str) -> tuple[Completed, int]:
    world, journal = World(), MortalJournal()
    model = StrictModel(script, dialect=dialect)
    outcome, _ = await carry_on(
        lambda: world.agent(model), journal, job(team=TEAM), partial(answer, world)
    )
    return outcome, journal.records


@pytest.mark.parametrize("after_writing", [False, True])
@pytest.mark.parametrize(("dialect", "script"), [("native", SCRIPT), ("text", TEXT_SCRIPT)])
async def test_a_crash_at_any_record_repeats_no_recorded_call_and_no_effect(
    dialect: str, script: list[Any], after_writing: bool
) -> None:
    expected, records = await full_run(script, dialect)
    assert expected.output == "It is 12C."
    assert [f.kind for f in expected.findings] == ["mail"]
    assert records > 10
    for k in range(1, records + 1):
        await crash_at(k, after_writing, expected, script, dialect)


async def crash_at(
    k: int, after_writing: bool, expected: Completed, script: list[Any], dialect: str
) -> None:
    world, journal, assignment = World(), MortalJournal(), job(team=TEAM)
    journal.dies_at, journal.after_writing = k, after_writing
    first = StrictModel(script, dialect=dialect)
    second = StrictModel(script, dialect=dialect)
    with suppress(Died):
        while (
            journal.records < k
        ):  # attempts go on as a worker would run them, until the process dies
            outcome = await attempt(world.agent(first), journal, assignment)
            assert isinstance(outcome, Parked)
            assignment = resumed(world, assignment, outcome)
    assert journal.records >= k
    on_disk = set(journal.replies())
    journal.revive()
    assignment = replace(assignment, attempt=assignment.attempt + 1)
    ask = partial(answer, world)
    done, _ = await carry_on(lambda: world.agent(second), journal, assignment, ask)
    assert same(done, expected), k
    assert not on_disk & {key.call for key in second.asked}, k
    assert set(second.asked.values()) <= {1}, k
    assert sorted(world.effects.values()) == [1, 1], (k, world.effects)
    assert Counter(journal.replies()) == Counter(range(len(script))), k
    # What is on disk was settled once; a call whose record was lost stays reserved.
    assert journal.settled.llm_calls == len(script), k
    for kind in ("iteration_start", "iteration_end", "tool_result", "tool_error"):
        told = [(d["iteration"], d.get("position")) for d in journal.told(kind)]
        assert len(told) == len(set(told)), (k, kind)


async def test_an_attempt_after_the_last_record_asks_nothing_and_costs_nothing() -> None:
    world, journal = World(), MortalJournal()
    model = StrictModel([asks(call("send_email", to="a", body="b")), "Done."])
    first = await attempt(world.agent(model), journal)
    again = StrictModel([])
    second = await attempt(world.agent(again), journal, job(attempt=2))
    assert same(first, second)
    assert first.usage == Usage(2, 1, 20, 4, 0, 0.02)
    assert second.usage == Usage()
    assert not again.asked
    assert sum(world.effects.values()) == 1


async def test_a_finished_sibling_survives_a_kill_during_a_slow_one() -> None:
    # Other frameworks keep the results of a message only when all of them are there.
    world, journal = World(), MortalJournal()
    script = [asks(call("send_email", to="a", body="b"), call("slow")), "Done."]
    started = asyncio.Event()

    async def wait(arguments: dict[str, Any], ctx: RunContext) -> Any:
        started.set()
        await asyncio.Event().wait()

    stuck = slow.with_options(call=wait)
    agent = react(StrictModel(script), tools=[send_email, stuck], resources={"world": world})
    task = asyncio.create_task(attempt(agent, journal))
    await started.wait()
    await journal.result_written.wait()
    journal.dies_at = 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    journal.revive()
    model = StrictModel(script)
    agent = react(model, tools=[send_email, slow], resources={"world": world})
    outcome = await attempt(agent, journal, job(attempt=2))
    assert isinstance(outcome, Completed)
    assert sum(world.effects.values()) == 1
    assert "sent" in str(model.requests[-1].messages)


async def test_cancelling_records_what_was_paid_for_and_is_raised_again() -> None:
    world, journal = World(), MortalJournal()
    started = asyncio.Event()

    async def reply(request: ModelRequest) -> Any:
        if request.key.call == 0:
            return asks(call("get_weather", city="Paris"))
        started.set()
        await asyncio.Event().wait()
        return "never"

    task = asyncio.create_task(attempt(world.agent(StrictModel(reply)), journal))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.replies() == [0]
    assert journal.settled.llm_calls == 1
    assert journal.told("iteration_start")[-1]["iteration"] == 2


@pytest.mark.parametrize(("verdict", "error"), [("fenced", Fenced), ("cancelled", Cancelled)])
async def test_the_gate_stops_an_attempt(verdict: Any, error: type[Exception]) -> None:
    journal = MortalJournal()
    journal.verdict = verdict
    model = StrictModel(["Done."])
    with pytest.raises(error):
        await attempt(World().agent(model), journal)
    assert not model.asked


def resumed(world: World, assignment: Assignment, outcome: Parked) -> Assignment:
    answers = {**assignment.answers, **{r.id: answer(world, r) for r in outcome.inputs}}
    children = dict(assignment.children)
    for child in outcome.children:
        name = f"{assignment.subtask}/{child.agent}-{child.k}"
        children[name] = Input(name, child.agent, "completed", output=f"{child.task} done")
    return replace(assignment, attempt=assignment.attempt + 1, answers=answers, children=children)
