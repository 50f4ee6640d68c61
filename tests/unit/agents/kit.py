"""What the tests of the loop share: a journal that dies, a strict model, tools that count."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agents.assignment import Answer, Assignment, Input
from agents.dialects.base import Dialect
from agents.dialects.native import NativeDialect
from agents.dialects.prompts import load_prompts
from agents.dialects.text import TextDialect
from agents.events import AgentEvent
from agents.journal import EffectMark, Entry, Reserve, Verdict, VolatileJournal
from agents.messages import AssistantMessage, Message, ToolMessage
from agents.models.base import CallKey, ModelReply, ModelRequest, OnDelta
from agents.models.scripted import ScriptedModel
from agents.outcome import Completed, Outcome, Parked
from agents.react import ReActAgent
from agents.usage import Usage

PROMPTS = load_prompts()


class Died(RuntimeError):
    """The process is gone."""


class MortalJournal(VolatileJournal):
    """A journal on disk whose process dies at the k-th record, before or after writing it."""

    def __init__(self) -> None:
        super().__init__()
        self.records = 0
        self.dies_at: int | None = None
        self.after_writing = False
        self.settled = Usage()
        self.reserved: list[Reserve] = []
        self.result_written = asyncio.Event()
        self.refuses: Callable[[Reserve], Verdict] | None = None

    async def record(
        self,
        entries: Sequence[Entry],
        *,
        settle: Usage | None = None,
        reserve: Reserve | None = None,
        effects: Sequence[EffectMark] = (),
    ) -> Verdict:
        """Write, or die, or refuse."""
        self.records += 1
        dies = self.dies_at is not None and self.records >= self.dies_at
        if dies and (self.records > (self.dies_at or 0) or not self.after_writing):
            raise Died
        verdict = self.refuses(reserve) if self.refuses and reserve else self.verdict
        if verdict in ("ok", "over_budget"):
            self.lines.extend(entries)
            self.marks.update((m.key, m) for m in effects)
            self.settled += settle or Usage()
            if reserve is not None:
                self.reserved.append(reserve)
        if any(e.kind == "tool_result" for e in self.lines):
            self.result_written.set()
        if dies:
            raise Died
        return verdict

    def revive(self) -> None:
        """Start a new process on the same disk."""
        self.dies_at = None

    def replies(self) -> list[int]:
        """Return the turns whose replies are on disk."""
        return [e.data["turn"] for e in self.lines if e.kind == "model_reply"]

    def told(self, kind: str) -> list[dict[str, Any]]:
        """Return the data of stored events of a type."""
        return [e.data["data"] for e in self.lines if e.kind == "event" and e.data["type"] == kind]


class StrictModel:
    """A scripted model that, as real servers do, refuses calls without answers."""

    structured = True
    media_types: tuple[str, ...] = ()

    def __init__(self, replies: Any, *, dialect: Any = "native") -> None:
        self._inner = ScriptedModel(replies, dialect=dialect)
        self.name = "scripted/strict"
        self.dialect = dialect
        self.asked: Counter[CallKey] = Counter()
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Check the pairing of calls and answers, count, and answer."""
        check_pairs(request.messages)
        self.asked[request.key] += 1
        self.requests.append(request)
        reply = await self._inner.complete(request, on_delta)
        return replace(reply, usage=Usage(1, 0, 10, 2, 0, 0.01))

    async def aclose(self) -> None:
        """Hold nothing."""


def check_pairs(messages: Sequence[Message]) -> None:
    """Fail unless each call is answered at once and each answer has its call."""
    due: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.call_id in due, f"an answer without a call: {message}"
            due.remove(message.call_id)
            continue
        assert not due, f"calls without answers: {due}"
        if isinstance(message, AssistantMessage):
            due = [c.id for c in message.tool_calls]
            assert len(set(due) | seen) == len(due) + len(seen), "an id is used twice"
            seen |= set(due)
    assert not due, f"calls without answers: {due}"


def dialect_of(name: str) -> Dialect:
    return TextDialect(PROMPTS) if name == "text" else NativeDialect(PROMPTS)


def react(model: Any, **options: Any) -> ReActAgent:
    """Return an agent on the model's dialect."""
    return ReActAgent("analyst", model, dialect=dialect_of(model.dialect), **options)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def asks(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a scripted reply with tool calls."""
    return {"tool_calls": list(calls), **more}


def job(**options: Any) -> Assignment:
    defaults: dict[str, Any] = {
        "run": "r1",
        "subtask": "plan/a",
        "attempt": 1,
        "kind": "act",
        "agent": "analyst",
        "task": "Find out.",
        "run_task": "Find out.",
    }
    return Assignment(**{**defaults, **options})


async def attempt(
    agent: Any,
    journal: VolatileJournal | None = None,
    assignment: Assignment | None = None,
    events: list[AgentEvent] | None = None,
) -> Outcome:
    seen = [] if events is None else events
    outcome: Outcome = await agent.attempt(
        assignment or job(), journal or MortalJournal(), seen.append
    )
    return outcome


async def carry_on(
    make: Callable[[], ReActAgent],
    journal: VolatileJournal,
    assignment: Assignment,
    answer: Callable[[Any], Answer] | None = None,
) -> tuple[Completed, Assignment]:
    """Run attempts until completed; whatever is waited for is answered as a worker would."""
    for _ in range(10):
        outcome = await attempt(make(), journal, assignment)
        if isinstance(outcome, Completed):
            return outcome, assignment
        assert isinstance(outcome, Parked), outcome
        answers = dict(assignment.answers)
        for request in outcome.inputs:
            answers[request.id] = answer(request) if answer else Answer(approved=True)
        children = dict(assignment.children)
        for child in outcome.children:
            child_id = f"{assignment.subtask}/{child.agent}-{child.k}"
            result = Input(child_id, child.agent, "completed", output=f"{child.task} done")
            children[child_id] = result
        assignment = replace(
            assignment, attempt=assignment.attempt + 1, answers=answers, children=children
        )
    raise AssertionError("the attempt never completes")
