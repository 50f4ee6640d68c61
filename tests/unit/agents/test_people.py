"""Approvals, questions and effects in doubt: parking and resuming."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.assignment import Answer, Input
from agents.context import RunContext
from agents.outcome import ChildRequest, Completed, Parked
from agents.tool_decorator import tool
from tests.unit.agents.kit import (
    MortalJournal,
    StrictModel,
    asks,
    attempt,
    call,
    carry_on,
    job,
    react,
)

DONE: list[str] = []

TEAM = ("writer", "analyst")


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DONE.clear()


@tool(effect="guarded", needs_approval=True)
async def wipe(path: str) -> str:
    DONE.append(path)
    return f"wiped {path}"


@tool(effect="guarded")
async def send(to: str) -> str:
    DONE.append(to)
    return "sent"


@tool(effect="idempotent")
async def put(key: str, ctx: RunContext) -> str:
    DONE.append(ctx.idempotency_key)
    return "put"


async def happened(arguments: dict[str, Any], ctx: RunContext) -> str | None:
    return "sent before" if ctx.idempotency_key in ctx.resources["outbox"] else None


@tool(effect="reconcilable", reconcile=happened)
async def order(sku: str, ctx: RunContext) -> str:
    DONE.append(sku)
    ctx.resources["outbox"].add(ctx.idempotency_key)
    return "ordered"


def last_words(model: StrictModel) -> str:
    return str(model.requests[-1].messages[-1])


async def test_several_approvals_of_one_message_are_one_set() -> None:
    model = StrictModel([asks(call("wipe", path="/a"), call("wipe", path="/b")), "Done."])
    journal = MortalJournal()
    outcome = await attempt(react(model, tools=[wipe]), journal)
    assert isinstance(outcome, Parked)
    assert [r.data for r in outcome.inputs] == [
        {"tool": "wipe", "arguments": {"path": "/a"}},
        {"tool": "wipe", "arguments": {"path": "/b"}},
    ]
    assert len({r.id for r in outcome.inputs}) == 2
    assert DONE == []
    again = await attempt(react(StrictModel([]), tools=[wipe]), journal, job(attempt=2))
    assert isinstance(again, Parked)
    assert again.inputs == outcome.inputs
    answers = {
        outcome.inputs[0].id: Answer(approved=True),
        outcome.inputs[1].id: Answer(approved=False, reason="not that one"),
    }
    done = await attempt(react(model, tools=[wipe]), journal, job(attempt=3, answers=answers))
    assert isinstance(done, Completed)
    assert DONE == ["/a"]
    assert "[DENIED]" in last_words(model)
    assert "not that one" in last_words(model)


async def test_a_person_may_edit_the_arguments_and_the_model_is_told() -> None:
    model = StrictModel([asks(call("wipe", path="/")), "Done."])
    answer = Answer(approved=True, value={"path": "/tmp"})
    await carry_on(lambda: react(model, tools=[wipe]), MortalJournal(), job(), lambda r: answer)
    assert DONE == ["/tmp"]
    assert "changed the arguments" in last_words(model)


async def test_edited_arguments_that_do_not_fit_run_nothing() -> None:
    model = StrictModel([asks(call("wipe", path="/")), "Done."])
    answer = Answer(approved=True, value={"nonsense": 1})
    await carry_on(lambda: react(model, tools=[wipe]), MortalJournal(), job(), lambda r: answer)
    assert DONE == []
    assert "[ERROR]" in last_words(model)


async def test_nobody_answering_denies() -> None:
    model = StrictModel([asks(call("wipe", path="/")), "Done."])
    answer = Answer(approved=False, expired=True)
    await carry_on(lambda: react(model, tools=[wipe]), MortalJournal(), job(), lambda r: answer)
    assert DONE == []
    assert "nobody answered" in last_words(model)


async def test_the_model_may_ask_a_person() -> None:
    model = StrictModel([asks(call("ask_human", question="Which?")), "Done."])
    questions: list[Any] = []

    def answer(request: Any) -> Answer:
        questions.append((request.kind, request.rendered))
        return Answer(value="the red one")

    journal = MortalJournal()
    await carry_on(lambda: react(model, can_ask_human=True), journal, job(), answer)
    assert questions == [("question", "Which?")]
    assert "the red one" in last_words(model)
    assert [d["kind"] for d in journal.told("input_provided")] == ["question"]


async def killed_inside(tool_: Any, script: list[Any], resources: dict[str, Any]) -> MortalJournal:
    """Run until the tool has done its work, and die before its result is seen."""
    journal, worked = MortalJournal(), asyncio.Event()

    async def work_and_hang(arguments: dict[str, Any], ctx: RunContext) -> Any:
        await tool_.call(arguments, ctx)
        worked.set()
        await asyncio.Event().wait()

    hung = tool_.with_options(call=work_and_hang)
    agent = react(StrictModel(script), tools=[hung], resources=resources)
    task = asyncio.create_task(attempt(agent, journal))
    await worked.wait()
    journal.dies_at = 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    journal.revive()
    return journal


async def test_a_guarded_effect_in_doubt_is_never_repeated_without_a_person() -> None:
    script: list[Any] = [asks(call("send", to="a")), "Done."]
    journal = await killed_inside(send, script, {})
    model = StrictModel(script)
    outcome = await attempt(react(model, tools=[send]), journal, job(attempt=2))
    assert isinstance(outcome, Parked)
    assert outcome.inputs[0].kind == "effect_unknown"
    assert DONE == ["a"]
    denied = {outcome.inputs[0].id: Answer(approved=False, reason="it arrived")}
    assert next(iter(journal.marks.values())).state == "unknown"
    done = await attempt(react(model, tools=[send]), journal, job(attempt=3, answers=denied))
    assert isinstance(done, Completed)
    assert DONE == ["a"]
    assert "it arrived" in last_words(model)


async def test_approving_an_effect_in_doubt_repeats_it() -> None:
    script: list[Any] = [asks(call("send", to="a")), "Done."]
    journal = await killed_inside(send, script, {})
    model = StrictModel(script)
    await carry_on(lambda: react(model, tools=[send]), journal, job(attempt=2))
    assert DONE == ["a", "a"]


async def test_an_idempotent_effect_in_doubt_is_repeated_under_the_same_key() -> None:
    script: list[Any] = [asks(call("put", key="a")), "Done."]
    journal = await killed_inside(put, script, {})
    await attempt(react(StrictModel(script), tools=[put]), journal, job(attempt=2))
    assert len(DONE) == 2
    assert len(set(DONE)) == 1


@pytest.mark.parametrize("really", [True, False])
async def test_a_reconcilable_effect_in_doubt_is_looked_up(really: bool) -> None:
    script: list[Any] = [asks(call("order", sku="a")), "Done."]
    outbox: set[str] = set()
    journal = await killed_inside(order, script, {"outbox": outbox})
    if not really:
        outbox.clear()
    model = StrictModel(script)
    agent = react(model, tools=[order], resources={"outbox": outbox})
    outcome = await attempt(agent, journal, job(attempt=2))
    assert isinstance(outcome, Completed)
    assert (["a"] if really else ["a", "a"]) == DONE
    assert ("sent before" in last_words(model)) is really


async def test_an_effect_done_in_an_earlier_generation_is_reused() -> None:
    script: list[Any] = [asks(call("send", to="a")), asks(call("send", to="a")), "Done."]
    first = MortalJournal()
    await attempt(react(StrictModel(script), tools=[send]), first)
    assert DONE == ["a", "a"]
    second = MortalJournal()
    second.marks = dict(first.marks)
    outcome = await attempt(react(StrictModel(script), tools=[send]), second, job(generation=1))
    assert isinstance(outcome, Completed)
    assert DONE == ["a", "a"]


async def test_a_guarded_tool_that_timed_out_is_in_doubt() -> None:
    async def hang(arguments: dict[str, Any], ctx: RunContext) -> Any:
        await asyncio.Event().wait()

    slow = send.with_options(call=hang, timeout_s=0.01)
    journal = MortalJournal()
    await attempt(react(StrictModel([asks(call("send", to="a")), "x"]), tools=[slow]), journal)
    assert [m.state for m in journal.marks.values()] == ["unknown"]


async def test_an_agent_asks_another_and_sees_its_result() -> None:
    ask = asks(call("ask_agent", agent="writer", task="write"))
    model = StrictModel([ask, ask, "Done."])
    team = {"writer": "writes", "analyst": "itself"}
    agent = react(model, can_ask=TEAM)
    journal = MortalJournal()
    parked = await attempt(agent, journal, job(team=team))
    assert isinstance(parked, Parked)
    assert parked.children == (ChildRequest("writer", "write", "ask", 0),)
    failed = Input("plan/a/writer-0", "writer", "failed", error="no ink")
    children = {failed.subtask: failed}
    parked = await attempt(agent, journal, job(attempt=2, team=team, children=children))
    assert isinstance(parked, Parked)
    assert parked.children == (ChildRequest("writer", "write", "ask", 1),)
    assert "no ink" in last_words(model)
    done = Input("plan/a/writer-1", "writer", "completed", output={"text": "hi"})
    children[done.subtask] = done
    outcome = await attempt(agent, journal, job(attempt=3, team=team, children=children))
    assert isinstance(outcome, Completed)
    assert '{"text": "hi"}' in last_words(model)


async def test_a_new_generation_does_not_take_the_numbers_of_old_children() -> None:
    agent = react(StrictModel([asks(call("ask_agent", agent="writer", task="b"))]), can_ask=TEAM)
    old = Input("plan/a/writer-0", "writer", "completed", output="about a")
    work = job(team={"writer": ""}, children={old.subtask: old}, generation=1)
    parked = await attempt(agent, MortalJournal(), work)
    assert isinstance(parked, Parked)
    assert parked.children[0].k == 1


async def test_handing_off_parks_and_is_offered_only_where_allowed() -> None:
    script = [asks(call("hand_off", agent="writer", task="all"))]
    team = {"writer": ""}
    agent = react(StrictModel(script), can_hand_off=TEAM, can_ask=TEAM)
    parked = await attempt(agent, MortalJournal(), job(team=team))
    assert isinstance(parked, Parked)
    assert parked.children[0].mode == "hand_off"
    names = [t.name for t in agent.tools_for(job(team=team, may_hand_off=False))]
    assert names == ["ask_agent"]
    assert agent.tools_for(job()) == ()


async def test_hand_off_must_stand_alone() -> None:
    both = asks(
        call("hand_off", agent="writer", task="all"), call("ask_agent", agent="writer", task="x")
    )
    model = StrictModel([both, "Done."])
    agent = react(model, can_hand_off=TEAM, can_ask=TEAM)
    parked = await attempt(agent, MortalJournal(), job(team={"writer": ""}))
    assert isinstance(parked, Parked)
    assert [c.mode for c in parked.children] == ["ask"]
