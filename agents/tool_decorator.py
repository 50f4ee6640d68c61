"""The ``@tool`` decorator: a typed function becomes a tool and stays callable."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from agents.context import RunContext
from agents.errors import ToolDefinitionError
from agents.tool_arguments import Arguments, near
from agents.tool_threads import in_thread
from agents.tools import Effect, RateLimit, Tool

P = ParamSpec("P")
R = TypeVar("R")
Reconcile = Callable[[dict[str, Any], RunContext], Awaitable[Any | None]]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool made from a function; calling it calls the function, unchecked and unlimited.

    Attributes:
        function: The function as it was written.
    """

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    effect: Effect = "pure",
    timeout_s: float = 30.0,
    cost_usd: float | None = 0.0,
    rate_limit: tuple[int, float] | RateLimit | None = None,
    destination_args: tuple[str, ...] = (),
    reads: Literal["trusted", "untrusted"] = "trusted",
    needs_approval: bool = False,
    pollable: bool = False,
    max_chars: int = 8_000,
    reconcile: Reconcile | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    effect: Effect = "pure",
    timeout_s: float = 30.0,
    cost_usd: float | None = 0.0,
    rate_limit: tuple[int, float] | RateLimit | None = None,
    destination_args: tuple[str, ...] = (),
    reads: Literal["trusted", "untrusted"] = "trusted",
    needs_approval: bool = False,
    pollable: bool = False,
    max_chars: int = 8_000,
    reconcile: Reconcile | None = None,
) -> Any:
    """Make a tool of a typed function, async or not.

    The JSON Schema, the validation and what the model is told come from the annotations and the
    Google-style docstring. A parameter annotated ``RunContext`` is filled in and hidden from the
    model. A function that is not async runs in a thread.

    Args:
        function: The function, when the decorator is used without parentheses.
        name: Tool name; the function's by default.
        effect: ``pure`` reads only; ``idempotent`` may be repeated with the same key;
            ``reconcilable`` needs ``reconcile``; ``guarded`` must never be repeated blindly.
        timeout_s: Seconds for one call.
        cost_usd: Cost of one call; None if unknown.
        rate_limit: ``(calls, seconds)``, in this process.
        destination_args: Parameters that name where data goes, for example a mail address.
        reads: ``untrusted`` when results are text from outside.
        needs_approval: Whether a person must approve each call.
        pollable: Whether calling it again with the same arguments is not a loop.
        max_chars: Length of what the model reads above which it is cut.
        reconcile: Finds out whether an effect in doubt happened; returns its result or None.

    Raises:
        ToolDefinitionError: The function or an option is not usable; the message says why.
    """
    limit = RateLimit(*rate_limit) if isinstance(rate_limit, tuple) else rate_limit
    scope = dict(sys._getframe(1).f_locals)

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        _check_function(function)
        arguments = Arguments.of(function, scope)
        made = FunctionTool(
            name=name or function.__name__,
            description=arguments.description,
            parameters=arguments.schema(),
            call=_caller(function, name or function.__name__, arguments.context),
            validate=arguments.validate,
            effect=effect,
            timeout_s=timeout_s,
            rate_limit=limit,
            cost_usd=cost_usd,
            destination_args=destination_args,
            reads=reads,
            needs_approval=needs_approval,
            pollable=pollable,
            max_chars=max_chars,
            reconcile=reconcile,
            function=function,
        )
        _check_options(made, arguments.names)
        return made

    return decorate if function is None else decorate(function)


def _check_function(function: Any) -> None:
    if not inspect.isroutine(function):
        raise ToolDefinitionError(f"{function!r} is not a function: put @tool on a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(
            f"tool {function.__name__!r} yields: return a list or a string instead"
        )


def _check_options(made: Tool, names: tuple[str, ...]) -> None:
    fault = ""
    if not _NAME.fullmatch(made.name):
        fault = "a name is 1 to 64 of a-z, A-Z, 0-9, _ and -: pass name=…"
    elif (made.effect == "reconcilable") != (made.reconcile is not None):
        fault = "effect='reconcilable' and reconcile=… need each other"
    elif made.timeout_s <= 0 or made.max_chars <= 0:
        fault = "timeout_s and max_chars must be more than 0"
    elif made.rate_limit and (made.rate_limit.calls < 1 or made.rate_limit.per_s <= 0):
        fault = "rate_limit is (calls of 1 or more, seconds more than 0)"
    for argument in made.destination_args:
        if argument not in names:
            fault = f"destination_args names {argument!r}, no parameter{near(argument, names)}"
    if fault:
        raise ToolDefinitionError(f"tool {made.name!r}: {fault}")


def _caller(
    function: Callable[..., Any], name: str, context: str | None
) -> Callable[[dict[str, Any], RunContext], Awaitable[Any]]:
    is_async = inspect.iscoroutinefunction(function)

    async def call(arguments: dict[str, Any], ctx: RunContext) -> Any:
        given = arguments if context is None else {**arguments, context: ctx}
        if is_async:
            return await function(**given)
        result = await in_thread(name, lambda: function(**given))
        return await result if inspect.isawaitable(result) else result

    return call
