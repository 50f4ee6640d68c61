"""Agents that are plain typed functions, without a model: ``@agent``."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, overload

from pydantic_core import PydanticSerializationError, to_jsonable_python

from agents.assignment import Assignment
from agents.context import RunContext
from agents.effects import effect_key
from agents.emitter import Emitter
from agents.errors import AgentError, Halt, OverBudget, ToolDefinitionError
from agents.events import OnEvent
from agents.journal import Journal
from agents.outcome import Completed, Failed, Finding, Outcome
from agents.replay import Tape
from agents.task_text import render_task
from agents.tool_threads import in_thread

_TAKES = (
    "a function agent takes any of task: str, inputs: dict[str, Any], ctx: RunContext, "
    "assignment: Assignment"
)


class FunctionAgent:
    """An agent whose attempt is one call of a function.

    An error becomes ``Failed('agent_raised')``, retryable only if the exception has a true
    ``retryable``; an ``AgentError`` keeps its own class. A recorded result is not computed again.

    Args:
        function: Async, or sync (then it runs in a thread).
        name: Its name in the pipeline; the function's by default.
        description: What planners are told; the docstring's first line by default.
        resources: What the function finds in ``RunContext.resources``.

    Raises:
        ToolDefinitionError: A parameter that an agent cannot be given.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.name = name or function.__name__
        first_line = (inspect.getdoc(function) or "").partition("\n")[0]
        self.description = first_line if description is None else description
        self._resources = resources or {}
        self._roles = _roles(function)

    def with_options(
        self, *, name: str | None = None, resources: Mapping[str, Any] | None = None
    ) -> FunctionAgent:
        """Return a copy with another name or other resources."""
        return FunctionAgent(
            self.function,
            name=name or self.name,
            description=self.description,
            resources=self._resources if resources is None else resources,
        )

    async def attempt(self, assignment: Assignment, journal: Journal, on_event: OnEvent) -> Outcome:
        """Do one attempt; see ``Agent.attempt``."""
        tape = await Tape.open(journal)
        emitter = Emitter(assignment, tape, on_event)
        done = next((n["function"] for n in tape.notes if "function" in n), None)
        emitter.emit("agent_start", {"resumed": done is not None, "model": "", "dialect": ""})
        try:
            if done is None:
                await tape.gate()
            outcome = _restore(done) if done else await self._call(assignment, tape)
            if isinstance(outcome, Failed):
                told = {"error_class": outcome.error_class, "message": outcome.message}
                emitter.emit("error", told)
            emitter.emit("agent_end", _end(outcome))
            with suppress(OverBudget):  # nothing is reserved
                await tape.gate()
        except asyncio.CancelledError:
            await tape.rescue()
            raise
        return outcome

    async def aclose(self) -> None:
        """Release nothing."""

    async def _call(self, assignment: Assignment, tape: Tape) -> Outcome:
        ctx = self._context(assignment, tape)
        values = _arguments(assignment, ctx)
        arguments = {parameter: values[role] for parameter, role in self._roles.items()}
        ends = ctx.deadline
        limit = asyncio.timeout(None if ends == float("inf") else max(0.0, ends - time.time()))
        try:
            async with limit:
                output = to_jsonable_python(await self._result(arguments))
        except Halt:
            raise
        except AgentError as exc:
            return Failed(exc.error_class, str(exc), retryable=exc.retryable)
        except PydanticSerializationError as exc:
            return Failed("agent_raised", f"{self.name} returned something that is not JSON: {exc}")
        except Exception as exc:  # noqa: BLE001 - whatever it raises is the outcome
            if isinstance(exc, TimeoutError) and limit.expired():
                return Failed("stopped", f"{self.name} was stopped by wall_time")
            retryable = bool(getattr(exc, "retryable", False))
            return Failed("agent_raised", f"{type(exc).__name__}: {exc}", retryable=retryable)
        findings = [{"kind": f.kind, "data": to_jsonable_python(f.data)} for f in ctx.findings]
        line = {"output": output, "findings": findings}
        tape.put("notes", {"function": line})
        return _restore(line)

    async def _result(self, arguments: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**arguments)
        value = await in_thread(self.name, functools.partial(self.function, **arguments))
        return await value if inspect.isawaitable(value) else value

    def _context(self, assignment: Assignment, tape: Tape) -> RunContext:
        a = assignment
        return RunContext(
            run=a.run,
            subtask=a.subtask,
            agent=a.agent,
            attempt=a.attempt,
            idempotency_key=effect_key(a.run, a.subtask, self.name, {}, 0),
            deadline=float("inf") if a.deadline is None else a.deadline,
            session=a.session,
            resources=self._resources,
            files=a.files,
            values=a.values,
            journal=tape.journal,
        )


@overload
def agent(function: Callable[..., Any], /) -> FunctionAgent: ...


@overload
def agent(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], FunctionAgent]: ...


def agent(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
) -> FunctionAgent | Callable[[Callable[..., Any]], FunctionAgent]:
    """Make an agent of a typed function; use it as ``@agent`` or ``@agent(name=…)``.

    The function takes any of ``task: str`` (rendered), ``inputs: dict[str, Any]`` (outputs by
    the last part of the subtask's id, findings by kind), ``ctx: RunContext`` and
    ``assignment: Assignment``, and returns a JSON value or a pydantic model.

    Raises:
        ToolDefinitionError: A parameter that an agent cannot be given.
    """
    if function is not None:
        return FunctionAgent(function)
    return lambda made: FunctionAgent(made, name=name, description=description)


def _roles(function: Callable[..., Any]) -> dict[str, str]:
    hints = typing.get_type_hints(function)
    by_type = {RunContext: "ctx", Assignment: "assignment"}
    by_name = ("task", "inputs", "ctx", "assignment")
    roles: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        role = by_type.get(hints.get(parameter.name, object))
        if role is None and parameter.name in by_name:
            role = parameter.name
        if role is None and parameter.default is parameter.empty:
            raise ToolDefinitionError(f"{function.__name__}: {_TAKES}, not {parameter.name!r}")
        if role is not None:
            roles[parameter.name] = role
    return roles


def _arguments(assignment: Assignment, ctx: RunContext) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for item in assignment.inputs:
        key = item.finding or item.subtask.rsplit("/", 1)[-1]
        inputs[item.subtask if key in inputs else key] = item.output
    task = render_task(replace(assignment, inputs=_named(assignment)))
    return {"task": task, "inputs": inputs, "ctx": ctx, "assignment": assignment}


def _named(assignment: Assignment) -> tuple[Any, ...]:
    # A function is given the other inputs apart, so only those that the task names are put in.
    def named(subtask: str) -> bool:
        return any(f"{{{{{i}}}}}" in assignment.task for i in (subtask, subtask.rsplit("/", 1)[-1]))

    return tuple(i for i in assignment.inputs if i.finding is None and named(i.subtask))


def _restore(line: dict[str, Any]) -> Completed:
    findings = tuple(Finding(f["kind"], f["data"]) for f in line["findings"])
    return Completed(line["output"], findings=findings)


def _end(outcome: Outcome) -> dict[str, Any]:
    failed = isinstance(outcome, Failed)
    return {
        "outcome": "failed" if failed else "completed",
        "reason": outcome.error_class if isinstance(outcome, Failed) else "final_answer",
        "iterations": 0,
        "no_progress": 0,
        "usage": outcome.usage.to_json(),
    }
