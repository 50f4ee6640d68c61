"""The loop of one attempt: check limits, ask, parse, run tools, observe, record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agents.abilities import MARK_IMPORTANT
from agents.assignment import Assignment
from agents.dialects.base import Dialect, Parsed
from agents.emitter import Emitter
from agents.errors import InvalidOutput
from agents.limits import Limits
from agents.memory import Memory
from agents.messages import Message
from agents.models.base import CallKey, Model, ModelRequest
from agents.outcome import Failed, Finding, Outcome, Parked
from agents.outputs import OutputType
from agents.replay import Tape
from agents.rounds import Round, Rounds, Slot
from agents.stops import BudgetSpent, Hinting, LoopState, Step, StopCondition
from agents.task_text import fence
from agents.tools import Tool
from agents.turns import OutOfTime, Turn, Turns

FORCE = "Stop here ({reason}). Call no more tools. Give your final answer now from what you have."
CUT = (
    "Your reply was cut off by the length limit, so nothing of it was done. Send it again, shorter."
)
EMPTY = "Your reply was empty. Call a tool or give the final answer."
EXPECT = "You have not used {tools}. Check your answer with it before you answer."
_WARN_AT = 0.8
_PARTIAL_OBSERVATIONS = 3


@dataclass(slots=True, kw_only=True)
class Loop:
    """One attempt in progress; the parts come from the agent."""

    assignment: Assignment
    model: Model
    dialect: Dialect
    tools: tuple[Tool, ...]
    limits: Limits
    stops: tuple[StopCondition, ...]
    output: OutputType
    expect_tools: tuple[str, ...]
    tape: Tape
    emitter: Emitter
    memory: Memory
    turns: Turns
    rounds: Rounds
    state: LoopState
    clock: Callable[[], float]
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _used: set[str] = field(default_factory=set)
    _must_stop: str | None = None
    _malformed: int = 0
    _truncated: int = 0
    _empty: int = 0
    _overflows: int = 0
    _invalid: int = 0
    _expect_nudged: bool = False
    _said: str = ""
    _seen: list[str] = field(default_factory=list)

    async def run(self) -> Outcome:
        """Loop until there is an outcome.

        Raises:
            Halt: The gate said stop.
            ModelError: The model gave no reply.
        """
        for n in itertools.count():
            stop = self._stop(n)
            if stop is not None and not self._may_ask(n, stop):
                return self.stopped(stop)
            try:
                turn = await self._ask(n, stop)
            except OutOfTime as exc:
                return self.stopped(exc.error_class)
            outcome = await self._step(turn)
            usage = self.tape.spent.to_json()
            self.emitter.emit("iteration_end", {"iteration": n + 1, "usage": usage})
            if outcome is not None:
                return outcome
        raise AssertionError("unreachable")

    def stopped(self, reason: str) -> Failed:
        """Return the failure of a loop that was stopped without an answer."""
        final = reason in ("budget", "wall_time")
        return Failed(
            "budget" if reason == "budget" else "stopped",
            f"agent {self.assignment.agent!r} was stopped by {reason} without a final answer",
            retryable=not final,
            partial=self.partial(),
            new_generation=True,
        )

    def partial(self) -> dict[str, Any] | None:
        """Return what there is of an answer so far."""
        findings = [{"kind": f.kind, "data": f.data} for f in self.rounds.findings]
        found = {
            "text": self._said,
            "observations": self._seen[-_PARTIAL_OBSERVATIONS:],
            "findings": findings,
        }
        return found if any(found.values()) else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was reported so far."""
        return tuple(self.rounds.findings)

    def _stop(self, n: int) -> str | None:
        recorded = self.tape.replies.get(n)
        if recorded is not None:
            # A clock or a budget may say something else today; what was asked is a fact.
            reason: str | None = recorded.get("stop")
        else:
            self.state.now = self.clock()
            self.state.usage = self.turns.usage()
            self._warn()
            found = (c.check(self.state) for c in self.stops)
            reason = self._must_stop or next((r for r in found if r), None)
        if reason is not None:
            self.emitter.emit("agent_stop", {"iteration": n + 1, "reason": reason})
        return reason

    def _may_ask(self, n: int, stop: str) -> bool:
        if n in self.tape.replies:
            return True
        spent = BudgetSpent(self.limits.budget).used(self.state)
        can_pay = all(used < limit for k, (used, limit) in spent.items() if k != "tool_calls")
        return stop != "wall_time" and can_pay

    def _warn(self) -> None:
        for bound, (used, limit) in BudgetSpent(self.limits.budget).used(self.state).items():
            data = {"bound": bound, "used": used, "limit": limit}
            if used >= limit * _WARN_AT and bound not in self._warned():
                self.emitter.emit("budget_warning", data)

    def _warned(self) -> set[str]:
        warnings = (e for e in self.tape.events if e.get("type") == "budget_warning")
        return {e["data"]["bound"] for e in warnings}

    async def _ask(self, n: int, stop: str | None) -> Turn:
        self.emitter.emit("iteration_start", {"iteration": n + 1})
        if stop is not None:
            self.memory.add(self.dialect.nudge(FORCE.format(reason=stop)))
        else:
            self.state.iterations += 1
        self.memory.fit()
        a = self.assignment
        request = ModelRequest(
            self.memory.messages(),
            CallKey(a.agent, a.subtask, n, a.generation),
            tools=self.dialect.tools(self.tools),
            stop=self.dialect.stop,
            response_schema=self._schema(stop),
            tool_choice="auto" if stop is None else "none",
            load_blob=self.tape.journal.load_blob,
        )
        return await self.turns.ask(request, stop=stop, ends=self.rounds.ends)

    def _schema(self, stop: str | None) -> dict[str, Any] | None:
        # Servers that enforce a schema by grammar cannot call tools in the same reply.
        free = not self.tools or stop is not None or self._invalid > 0
        native = self.dialect.name == "native"
        return self.output.schema if free and native and self.model.structured else None

    async def _step(self, turn: Turn) -> Outcome | None:
        if turn.error == "context_overflow":
            return self._overflow(turn)
        parsed = self.dialect.parse(turn.message, self.tools, new_id=self._new_id)
        for repair in parsed.repairs:
            self.emitter.emit("parse_repair", {"iteration": turn.n + 1, "repair": repair})
        self._said = parsed.final or parsed.thought or self._said
        if turn.stop is not None:
            return self._forced(turn, parsed)
        if turn.finish_reason == "length":
            self._cut_off(turn, parsed)
            return None
        self._truncated = 0
        if parsed.calls:
            self._malformed = self._empty = 0
            return await self._act(turn, parsed)
        if parsed.final is not None and parsed.final.strip():
            return self._answer(turn, parsed, parsed.final)
        return self._unreadable(turn, parsed)

    def _new_id(self) -> str:
        return f"call_{next(self._ids)}"

    def _overflow(self, turn: Turn) -> Outcome | None:
        self._overflows += 1
        self.state.iterations -= turn.stop is None
        if self._overflows > 1:
            return Failed(
                "context_overflow",
                "the prompt is too long for the model even after it was cut; lower prompt_tokens "
                "or max_chars of the tools",
                partial=self.partial(),
            )
        self.memory.reduce()
        return None

    def _cut_off(self, turn: Turn, parsed: Parsed) -> None:
        self._truncated += 1
        if self._truncated >= self.limits.truncated:
            self._must_stop = "truncated"
        observations = [
            self.dialect.observation(c, f"Observation [ERROR]: {CUT}") for c in parsed.calls
        ]
        self._reply(turn, parsed, observations or [self.dialect.nudge(CUT)])

    def _unreadable(self, turn: Turn, parsed: Parsed) -> Outcome | None:
        empty = not turn.message.text.strip() and not turn.message.tool_calls
        self._malformed += 1
        self._empty += empty
        if self._empty > 1:
            return Failed(
                "empty_reply",
                f"model {self.model.name!r} answered with nothing, twice",
                retryable=True,
                partial=self.partial(),
                new_generation=True,
            )
        if self._malformed >= self.limits.malformed:
            self._must_stop = "malformed"
        nudge = self.dialect.nudge(EMPTY if empty or parsed.hint is None else parsed.hint)
        if empty:
            self.memory.add(nudge)
        else:
            self._reply(turn, parsed, [nudge])
        return None

    def _answer(self, turn: Turn, parsed: Parsed, text: str) -> Outcome | None:
        unused = [t for t in self.expect_tools if t not in self._used]
        if unused and not self._expect_nudged:
            self._expect_nudged = True
            nudge = self.dialect.nudge(EXPECT.format(tools=", ".join(unused)))
            self._reply(turn, parsed, [nudge])
            return None
        try:
            value = self.output.parse(text, self.assignment)
        except InvalidOutput as exc:
            self._invalid += 1
            if self._invalid > 1:
                return self._give_up(text, str(exc))
            self._reply(turn, parsed, [self.dialect.nudge(str(exc))])
            return None
        done = self.output.complete(value, self.assignment)
        return replace(done, verified=done.verified and not unused)

    def _give_up(self, text: str, error: str) -> Outcome:
        degraded = self.output.give_up(text, self.assignment, error)
        if degraded is not None:
            return degraded
        return Failed("invalid_output", error, retryable=True, partial=text, new_generation=True)

    def _forced(self, turn: Turn, parsed: Parsed) -> Outcome:
        assert turn.stop is not None
        text = parsed.final or ("" if parsed.calls else parsed.text or turn.message.text)
        try:
            value = self.output.parse(text, self.assignment)
        except InvalidOutput as exc:
            degraded = self.output.give_up(text, self.assignment, str(exc))
            if degraded is None:
                return self.stopped(turn.stop)
            return replace(degraded, stop_reason=turn.stop)
        done = self.output.complete(value, self.assignment)
        cut = ("truncated",) if turn.finish_reason == "length" else ()
        unused = any(t not in self._used for t in self.expect_tools)
        return replace(
            done,
            stop_reason=turn.stop,
            verified=done.verified and not unused,
            warnings=(*done.warnings, *cut),
        )

    async def _act(self, turn: Turn, parsed: Parsed) -> Outcome | None:
        done = await self.rounds.run(turn.n, parsed.calls)
        if done.waits:
            return Parked(done.inputs, done.children)
        if any(s.call.name == MARK_IMPORTANT for s in done.slots):
            self.memory.mark_important()
        texts = [
            (call, self._observed(slot))
            for call, slot in zip(parsed.calls, done.slots, strict=True)
        ]
        observations = [self.dialect.observation(call, text) for call, text in texts]
        self._reply(turn, parsed, observations, importance=_importance(done))
        self._seen += [text for _, text in texts]
        polls = [(s.tool is not None and s.tool.pollable) for s in done.slots]
        step = Step.of(
            [(call, text, poll) for (call, text), poll in zip(texts, polls, strict=True)]
        )
        self.state.steps.append(step)
        hints = [c.hint(self.state) for c in self.stops if isinstance(c, Hinting)]
        for hint in filter(None, hints):
            self.memory.add(self.dialect.nudge(hint))
        return None

    def _observed(self, slot: Slot) -> str:
        result = slot.result
        assert result is not None
        if result.status in ("success", "duplicate"):
            self._used.add(slot.call.name)
        if result.label.integrity == "untrusted":
            about = {"source": slot.call.name}
            if result.error is None:
                result = replace(result, summary=fence("untrusted", result.summary, about))
            else:
                result = replace(result, error=fence("untrusted", result.error, about))
        return result.observation()

    def _reply(
        self,
        turn: Turn,
        parsed: Parsed,
        answers: Sequence[Message],
        *,
        importance: int = 0,
    ) -> None:
        self.memory.add(
            self.dialect.assistant(turn.message, parsed), *answers, importance=importance
        )


def _importance(done: Round) -> int:
    if any(s.findings for s in done.slots):
        return 3
    return 2 if any(s.result and s.result.status == "success" for s in done.slots) else 1
