"""The ReAct agent: a model, a dialect, tools and limits; it implements ``Agent``."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from agents.abilities import mark_tool, report_tool
from agents.assignment import Assignment
from agents.children import Children, team_tools
from agents.dialects.base import Dialect, Language, PromptParts
from agents.dialects.prompts import detect_language
from agents.effects import Effects
from agents.emitter import Emitter
from agents.errors import AgentError, ModelError, OverBudget, UnsupportedMedia
from agents.events import OnEvent
from agents.journal import Journal
from agents.limits import Limits, NoSpans, Spans
from agents.loop import Loop
from agents.memory import Memory
from agents.messages import SystemMessage, UserMessage
from agents.models.base import Model, ModelRequest
from agents.outcome import Completed, Failed, Finding, Outcome, Parked
from agents.outputs import OutputType, TextOutput
from agents.people import People, ask_human_tool
from agents.replay import Tape
from agents.rounds import Rounds
from agents.stops import (
    BudgetSpent,
    LoopState,
    MaxIterations,
    NoProgress,
    RepeatedCall,
    StopCondition,
    WallTime,
)
from agents.task_text import task_content
from agents.tool_runner import ToolRunner
from agents.tools import Tool
from agents.turns import Turns


class ReActAgent:
    """An agent that thinks, acts and observes until it has an answer.

    Args:
        name: Its name in the pipeline.
        model: Who is asked.
        dialect: How tools are described to the model and its replies read.
        description: What planners and colleagues are told of it.
        instructions: What the pipeline tells it.
        tools: What it may call.
        limits: How far one subtask may go.
        stops: Further stop conditions, after those of ``limits``, repetition and no progress.
        output: What its answer must be; text by default.
        expect_tools: Tools without which an answer is marked unverified, after one nudge.
        reports: Kinds of findings it may report.
        report_output: Whether its answer is a finding too, if it has exactly one kind.
        can_ask: Agents it may ask and wait for.
        can_hand_off: Agents it may hand its task to.
        can_ask_human: Whether it may ask a person.
        can_mark: Whether it may mark observations as important.
        language: Language of its prompts; ``auto`` is that of the run's task.
        approval_s: Seconds until a question to a person is denied.
        resources: What tools find in ``RunContext.resources``.
        spans: Where model and tool calls are traced.
        redact: Takes secrets out of what tools return; see ``ToolRunner``.
        clock: Seconds since the epoch, as the run store counts them.

    Raises:
        ToolDefinitionError: Two tools have the same name.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        *,
        dialect: Dialect,
        description: str = "",
        instructions: str = "",
        tools: Sequence[Tool] = (),
        limits: Limits | None = None,
        stops: Sequence[StopCondition] = (),
        output: OutputType | None = None,
        expect_tools: Sequence[str] = (),
        reports: tuple[str, ...] = (),
        report_output: bool = False,
        can_ask: Sequence[str] = (),
        can_hand_off: Sequence[str] = (),
        can_ask_human: bool = False,
        can_mark: bool = False,
        language: Language | Literal["auto"] = "en",
        approval_s: float = 86_400.0,
        resources: Mapping[str, Any] | None = None,
        spans: Spans | None = None,
        redact: Callable[[str], str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.description = description
        self.limits = limits or Limits()
        self._model = model
        self._dialect = dialect
        self._instructions = instructions
        own = [report_tool(reports)] if reports else []
        own += [ask_human_tool()] if can_ask_human else []
        own += [mark_tool()] if can_mark else []
        self._runner = ToolRunner((*tools, *own), redact=redact)
        self._redact = redact
        self._stops: tuple[StopCondition, ...] = (
            BudgetSpent(self.limits.budget),
            WallTime(self.limits.budget.wall_s),
            RepeatedCall(),
            NoProgress(),
            MaxIterations(self.limits.max_iterations),
            *stops,
        )
        self._output: OutputType = output or TextOutput()
        self._expect_tools = tuple(expect_tools)
        self._report_output = reports[0] if report_output and len(reports) == 1 else None
        self._can_ask = can_ask
        self._can_hand_off = can_hand_off
        self._language = language
        self._approval_s = approval_s
        self._resources = resources or {}
        self._spans: Spans = spans or NoSpans()
        self._clock = clock

    async def attempt(self, assignment: Assignment, journal: Journal, on_event: OnEvent) -> Outcome:
        """Do one attempt; see ``Agent.attempt``."""
        tape = await Tape.open(journal)
        emitter = Emitter(assignment, tape, on_event)
        start = {"model": self._model.name, "dialect": self._dialect.name}
        emitter.emit("agent_start", {"resumed": bool(tape.replies), **start})
        try:
            outcome, loop = await self._outcome(assignment, tape, emitter)
            outcome = self._with_findings(outcome, loop.findings if loop else ())
            outcome = replace(outcome, usage=tape.spent)
            state = loop.state if loop else LoopState()
            emitter.emit("agent_end", _end(outcome, state))
            with contextlib.suppress(OverBudget):  # nothing is reserved any more
                await tape.gate()
        except asyncio.CancelledError:
            await tape.rescue()
            raise
        return outcome

    async def aclose(self) -> None:
        """Release the model's connections."""
        await self._model.aclose()

    async def requests(self, assignment: Assignment, journal: Journal) -> list[ModelRequest]:
        """Return what the model was asked so far, by going over a journal once more.

        Give it a journal that refuses every record: then no model is asked and no tool is called.

        Args:
            assignment: As the last attempt had it.
            journal: One generation of the subtask's journal.
        """
        tape = await Tape.open(journal)
        asked: list[ModelRequest] = []
        # What was asked is a fact; that the time is up by now is none.
        timeless = replace(assignment, deadline=None)
        emitter = Emitter(timeless, tape, lambda event: None)
        with contextlib.suppress(AgentError):  # as then, or because nothing more is recorded
            await self._loop(timeless, tape, emitter, asked.append).run()
        return asked

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools it has in every subtask."""
        return self._runner.tools

    def tools_for(self, assignment: Assignment) -> tuple[Tool, ...]:
        """Return the tools it has in this subtask, those of the team included."""
        team = team_tools(assignment, can_ask=self._can_ask, can_hand_off=self._can_hand_off)
        return (*self._runner.tools, *team)

    def system_prompt(self, assignment: Assignment) -> str:
        """Return the system prompt that the model is given."""
        language = self._language
        if language == "auto":
            language = detect_language(assignment.run_task)
        shows_team = assignment.kind == "plan"
        return self._dialect.system(
            PromptParts(
                agent=self.name,
                instructions=self._instructions,
                language=language,
                tools=self.tools_for(assignment),
                team=assignment.team if shows_team else {},
                kind=assignment.kind,
                output_schema=self._output.schema,
                parallel=self._dialect.name == "native",
            )
        )

    async def _outcome(
        self, assignment: Assignment, tape: Tape, emitter: Emitter
    ) -> tuple[Outcome, Loop | None]:
        loop: Loop | None = None
        try:
            loop = self._loop(assignment, tape, emitter)
            return await loop.run(), loop
        except OverBudget as exc:
            partial = loop.partial() if loop else None
            return Failed(exc.error_class, str(exc), partial=partial), loop
        except (ModelError, UnsupportedMedia) as exc:
            told = {"error_class": exc.error_class, "message": str(exc)}
            emitter.emit("error", told)
            partial = loop.partial() if loop else None
            failed = Failed(exc.error_class, str(exc), retryable=exc.retryable, partial=partial)
            return failed, loop

    def _loop(
        self,
        assignment: Assignment,
        tape: Tape,
        emitter: Emitter,
        on_request: Callable[[ModelRequest], None] | None = None,
    ) -> Loop:
        tools = self.tools_for(assignment)
        reads = any("files" in tool.tags for tool in tools)
        types = self._model.media_types
        task = task_content(assignment, media_types=types, tools_read_files=reads)
        head = (SystemMessage(self.system_prompt(assignment)), UserMessage(task))
        now = self._clock()
        state = LoopState(started=now, now=now, deadline=assignment.deadline)
        turns = Turns(
            self._model,
            tape,
            emitter,
            spans=self._spans,
            reply_tokens=self.limits.reply_tokens,
            clock=self._clock,
            on_request=on_request,
        )
        rounds = Rounds(
            assignment=assignment,
            tape=tape,
            emitter=emitter,
            runner=ToolRunner(tools, redact=self._redact),
            people=People(assignment, tape, emitter, expires_s=self._approval_s),
            children=Children(assignment, tape),
            effects=Effects(assignment, tape),
            spans=self._spans,
            parallel=self.limits.parallel,
            ends=WallTime(self.limits.budget.wall_s).ends(state),
            resources=self._resources,
        )
        return Loop(
            assignment=assignment,
            model=self._model,
            dialect=self._dialect,
            tools=tools,
            limits=self.limits,
            stops=self._stops,
            output=self._output,
            expect_tools=self._expect_tools,
            tape=tape,
            emitter=emitter,
            memory=Memory(head, limit=self.limits.prompt_tokens),
            turns=turns,
            rounds=rounds,
            state=state,
            clock=self._clock,
        )

    def _with_findings(self, outcome: Outcome, findings: tuple[Finding, ...]) -> Outcome:
        if not isinstance(outcome, Completed):
            return outcome
        if self._report_output is not None:
            findings = (*findings, Finding(self._report_output, outcome.output))
        return replace(outcome, findings=(*findings, *outcome.findings))


def _end(outcome: Outcome, state: LoopState) -> dict[str, Any]:
    match outcome:
        case Completed():
            kind, reason = "completed", outcome.stop_reason
        case Failed():
            kind, reason = "failed", outcome.error_class
        case Parked():
            kind, reason = "parked", "waiting"
        case _:
            kind, reason = "cancelled", "cancelled"
    return {
        "outcome": kind,
        "reason": reason,
        "iterations": state.iterations,
        "no_progress": state.stale(),
        "usage": outcome.usage.to_json(),
    }
