"""One round: all tool calls of one message, in parallel, journalled by position."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.assignment import Answer, Assignment, Input
from agents.children import ASK_AGENT, HAND_OFF, Children, child_result
from agents.context import RunContext
from agents.effects import Effects, read_result, write_result
from agents.emitter import Emitter
from agents.errors import OverBudget
from agents.journal import Reserve
from agents.limits import Spans
from agents.messages import ToolCall
from agents.outcome import ChildRequest, Finding, InputRequest
from agents.people import ASK_HUMAN, People, answered, denied
from agents.replay import Place, Tape
from agents.stops import canonical
from agents.tool_runner import ToolRunner
from agents.tools import Tool, ToolResult
from agents.usage import Usage

_ALONE = "hand_off gives the whole task away, so it must be the only call of a message."
_SHOWN = 2_000


@dataclass(slots=True)
class Slot:
    """One call of a round, on its way to a result, a wait, or a run."""

    place: Place
    call: ToolCall
    tool: Tool | None
    result: ToolResult | None = None
    findings: tuple[Finding, ...] = ()
    wait: InputRequest | ChildRequest | None = None
    copy_of: Slot | None = None
    key: str = ""
    edited: bool = False
    recorded: bool = False

    @property
    def runs(self) -> bool:
        """Whether the call must be made now."""
        return self.result is None and self.wait is None and self.copy_of is None


@dataclass(slots=True)
class Round:
    """What a round yielded: results of all calls, or what the attempt waits for."""

    slots: list[Slot]
    inputs: tuple[InputRequest, ...] = ()
    children: tuple[ChildRequest, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the attempt must park."""
        return bool(self.inputs or self.children)


@dataclass(slots=True)
class Rounds:
    """Runs the rounds of one attempt.

    Attributes:
        ends: Seconds since the epoch at which the attempt's time is up.
        findings: What the subtask has reported so far.
    """

    assignment: Assignment
    tape: Tape
    emitter: Emitter
    runner: ToolRunner
    people: People
    children: Children
    effects: Effects
    spans: Spans
    parallel: int
    ends: float
    resources: Mapping[str, Any]
    findings: list[Finding] = field(default_factory=list)
    _under_way: int = 0

    async def run(self, turn: int, calls: Sequence[ToolCall]) -> Round:
        """Bring every call to a result or a wait.

        Raises:
            Halt: The gate said stop.
        """
        slots = [Slot((turn, i), call, self.runner.find(call.name)) for i, call in enumerate(calls)]
        await self._decide_all(slots)
        await self._run_all([s for s in slots if s.runs])
        for slot in slots:
            self._finish(slot)
        waits = [s.wait for s in slots if s.wait is not None]
        return Round(
            slots,
            tuple(w for w in waits if isinstance(w, InputRequest)),
            tuple(w for w in waits if isinstance(w, ChildRequest)),
        )

    async def _decide_all(self, slots: list[Slot]) -> None:
        first: dict[str, Slot] = {}
        for slot in slots:
            same = canonical([slot.call.name, slot.call.arguments, slot.call.error])
            known = self.tape.results.get(slot.place)
            if known is not None:
                slot.recorded = True
                slot.result, slot.findings = read_result(known["result"])
                if known["ran"]:
                    self.tape.total += Usage(tool_calls=1, cost_usd=slot.result.cost_usd)
            elif same in first:
                slot.copy_of = first[same]
            else:
                await self._decide(slot, alone=len(slots) == 1)
            first.setdefault(same, slot)

    async def _decide(self, slot: Slot, *, alone: bool) -> None:
        tool, call = slot.tool, slot.call
        if tool is None:
            slot.result = self.runner.unknown(call.name)
        elif not _valid(tool, call):
            # The runner refuses it before the call, in words for the model.
            slot.result = await self.runner.run(tool, call, self._context(slot))
        elif tool.name in (ASK_AGENT, HAND_OFF):
            self._delegate(slot, alone=alone)
        elif tool.name == ASK_HUMAN:
            answer = self.people.question(slot.place, call)
            _put(slot, answered(answer) if isinstance(answer, Answer) else answer)
        else:
            if tool.needs_approval:
                await self._approve(slot, tool)
            if slot.runs:
                await self._effect(slot, tool)

    def _delegate(self, slot: Slot, *, alone: bool) -> None:
        if slot.call.name == HAND_OFF and not alone:
            slot.result = ToolResult("error", error=_ALONE)
            return
        child = self.children.wait(slot.place, slot.call)
        _put(slot, child_result(child) if isinstance(child, Input) else child)

    async def _approve(self, slot: Slot, tool: Tool) -> None:
        answer = self.people.approval(slot.place, slot.call)
        if isinstance(answer, InputRequest):
            slot.wait = answer
        elif not answer.approved or answer.expired:
            slot.result = denied(answer)
        elif isinstance(answer.value, dict):
            slot.call = replace(slot.call, arguments=answer.value)
            slot.edited = True
            if not _valid(tool, slot.call):
                slot.result = await self.runner.run(tool, slot.call, self._context(slot))

    async def _effect(self, slot: Slot, tool: Tool) -> None:
        slot.key = self.effects.key(slot.place, tool, slot.call)
        if tool.effect == "pure":
            return
        status = self.effects.status(slot.key)
        if status == "done":
            slot.result, slot.findings = self.effects.known(slot.key)
        elif status == "doubt" and tool.effect != "idempotent":
            if tool.reconcile is not None and await self._reconciled(slot, tool):
                return
            self._ask_about(slot)

    async def _reconciled(self, slot: Slot, tool: Tool) -> bool:
        assert tool.reconcile is not None
        probe = tool.with_options(call=tool.reconcile, cost_usd=0.0, rate_limit=None)
        result = await self.runner.run(probe, slot.call, self._context(slot))
        if result.status == "success" and result.data is not None:
            slot.result = result
            self.effects.settle(slot.key, result)
        return result.status == "success"

    def _ask_about(self, slot: Slot) -> None:
        answer = self.people.doubt(slot.place, slot.call, slot.key)
        if isinstance(answer, InputRequest):
            self.effects.doubt(slot.key)
            slot.wait = answer
        elif answer.approved and not answer.expired:
            return
        else:
            slot.result = _not_repeated(answer)
            self.effects.settle(slot.key, slot.result)

    async def _run_all(self, slots: list[Slot]) -> None:
        if not slots:
            return
        for slot in slots:
            assert slot.tool is not None
            self.effects.intend(slot.place, slot.tool, slot.call, slot.key)
        cost = sum(s.tool.cost_usd or 0.0 for s in slots if s.tool)
        try:
            await self.tape.gate(Reserve(tool_calls=len(slots), usd=cost))
        except OverBudget:
            for slot in slots:
                self.effects.withdraw(slot.place, slot.key)
            raise
        self._under_way = len(slots)
        await together([_job(self._run, slot) for slot in slots], self.parallel)

    async def _run(self, slot: Slot) -> None:
        tool = slot.tool
        assert tool is not None
        self.emitter.emit("tool_start", {**_about(slot), "arguments": slot.call.arguments})
        context = self._context(slot)
        reported = len(context.findings)
        with self.spans.execute_tool(tool, slot.call) as tell:
            result = await self.runner.run(tool, slot.call, context)
            tell(result)
        slot.findings = tuple(context.findings[reported:])
        slot.result = _edited(slot, result)
        self.tape.spend(Usage(tool_calls=1, cost_usd=result.cost_usd))
        if tool.effect != "pure":
            self.effects.close(slot.key, slot.result, slot.findings)
        self._record(slot, ran=True)
        self._under_way -= 1
        if self._under_way and tool.effect != "pure":
            # A crash during a slow sibling must not lose an effect that is done.
            await self.tape.gate(settle=False)

    def _finish(self, slot: Slot) -> None:
        source = slot.copy_of
        if source is not None and source.result is not None:
            text = f"the same call as number {source.place[1] + 1} of this message; it ran once. "
            slot.result = ToolResult(
                "duplicate",
                data=source.result.data,
                summary=text + (source.result.error or source.result.summary),
                label=source.result.label,
            )
        if slot.result is not None:
            self.findings.extend(slot.findings)
            if not slot.recorded:
                self._record(slot, ran=False)

    def _record(self, slot: Slot, *, ran: bool) -> None:
        assert slot.result is not None
        slot.recorded = True
        turn, position = slot.place
        result = write_result(slot.result, slot.findings)
        line = {"turn": turn, "position": position, "tool": slot.call.name, "ran": ran}
        self.tape.put("tool_result", {**line, "result": result})
        data = {
            **_about(slot),
            "status": slot.result.status,
            "summary": slot.result.summary[:_SHOWN],
            "duration_s": slot.result.duration_s,
            "cost_usd": slot.result.cost_usd,
        }
        match slot.result.status:
            case "success":
                self.emitter.emit("tool_result", data)
            case "duplicate":
                of = slot.copy_of.place[1] if slot.copy_of else position
                self.emitter.emit("tool_duplicate", {**_about(slot), "of": of})
            case _:
                self.emitter.emit("tool_error", {**data, "error": slot.result.error})

    def _context(self, slot: Slot) -> RunContext:
        a = self.assignment
        return RunContext(
            run=a.run,
            subtask=a.subtask,
            agent=a.agent,
            attempt=a.attempt,
            idempotency_key=slot.key,
            deadline=self.ends,
            session=a.session,
            resources=self.resources,
            files=a.files,
            values=a.values,
            findings=list(self.findings),
            journal=self.tape.journal,
        )


async def together(jobs: Sequence[Callable[[], Awaitable[None]]], limit: int) -> None:
    """Run jobs at the same time, at most ``limit``; the first error stops the others."""
    gate = asyncio.Semaphore(limit)

    async def one(job: Callable[[], Awaitable[None]]) -> None:
        async with gate:
            await job()

    try:
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(one(job), name="tool call")
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def _job(run: Callable[[Slot], Awaitable[None]], slot: Slot) -> Callable[[], Awaitable[None]]:
    return lambda: run(slot)


def _about(slot: Slot) -> dict[str, Any]:
    turn, position = slot.place
    about = {"iteration": turn + 1, "position": position}
    return {**about, "call_id": slot.call.id, "tool": slot.call.name}


def _valid(tool: Tool, call: ToolCall) -> bool:
    if call.error is not None:
        return False
    try:
        tool.validate(call.arguments)
    except ValueError:
        return False
    return True


def _put(slot: Slot, found: ToolResult | InputRequest | ChildRequest) -> None:
    if isinstance(found, ToolResult):
        slot.result = found
    else:
        slot.wait = found


def _edited(slot: Slot, result: ToolResult) -> ToolResult:
    if not slot.edited or result.status != "success":
        return result
    note = f"(A person changed the arguments to {canonical(slot.call.arguments)}.) "
    return replace(result, summary=note + result.summary)


def _not_repeated(answer: Answer) -> ToolResult:
    if answer.value is not None:
        text = answer.value if isinstance(answer.value, str) else canonical(answer.value)
        return ToolResult("success", data=answer.value, summary=text)
    why = f": {answer.reason}" if answer.reason else ""
    # Not "denied": that would say that nothing was sent.
    return ToolResult(
        "error",
        error=f"This call was interrupted; whether it took effect is unknown, and a person decided "
        f"that it is not to be repeated{why}.",
    )
