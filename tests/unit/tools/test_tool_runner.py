"""The runner: every way a call can end, as a result."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agents import tool_threads
from agents.context import RunContext
from agents.errors import Cancelled, ToolDefinitionError, ToolDenied
from agents.labels import Label
from agents.messages import ToolCall
from agents.tool_decorator import tool
from agents.tool_runner import ToolRunner
from agents.tools import Tool, ToolResult

CTX = RunContext("r", "s", "a", 1)
TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("TENANT", default="")


async def run(made: Tool, ctx: RunContext = CTX, **arguments: Any) -> ToolResult:
    return await ToolRunner([made]).run(made, ToolCall("c1", made.name, arguments), ctx)


def returning(value: Any, **options: Any) -> Tool:
    @tool(**options)
    async def give() -> Any:
        return value

    return give


def raising(error: BaseException) -> Tool:
    @tool(cost_usd=0.5)
    async def boom() -> None:
        raise error

    return boom


@tool(reads="untrusted", cost_usd=0.25)
async def stock(sku: str, pieces: int = 1) -> dict[str, Any]:
    return {"品": sku, "pieces": pieces}


async def test_a_success_carries_data_text_cost_time_and_label() -> None:
    result = await run(stock, sku="a", pieces="12")
    assert result.data == {"品": "a", "pieces": 12}
    assert result.observation() == 'Observation [SUCCESS]: {"品": "a", "pieces": 12}'
    assert (result.cost_usd, result.label) == (0.25, Label("untrusted", frozenset({"stock"})))
    assert 0 < result.duration_s < 5
    assert ToolResult.from_json(result.to_json()) == result


async def test_wrong_arguments_are_an_error_that_shows_the_call() -> None:
    result = await run(stock, sky="a")
    assert result.status == "error"
    assert result.cost_usd == 0.0
    assert result.error is not None
    assert "missing argument 'sku'; unknown argument 'sky' (did you mean 'sku'?)" in result.error
    assert result.error.endswith("Call it as stock(sku: string, pieces?: integer)")


async def test_arguments_that_could_not_be_read_are_an_error() -> None:
    call = ToolCall("c1", "stock", {}, error="the arguments are a list, not an object")
    result = await ToolRunner([stock]).run(stock, call, CTX)
    assert result.observation().startswith("Observation [ERROR]: the arguments are a list")
    assert "stock(sku: string" in result.observation()


def test_an_unknown_tool_is_answered_with_near_names() -> None:
    runner = ToolRunner([stock, returning(1, name="get_weather")])
    assert runner.find("stock") is stock
    assert runner.find("lookup_weather") is None
    assert runner.unknown("lookup_weather").error == (
        "there is no tool 'lookup_weather' (did you mean 'get_weather'?); "
        "the tools are: stock, get_weather"
    )


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="two tools are called 'stock'"):
        ToolRunner([stock, stock])


async def test_an_exception_is_told_to_the_model_without_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = await run(raising(KeyError("shelf 7")))
    assert (result.status, result.error, result.cost_usd) == ("error", "KeyError: 'shelf 7'", 0.5)
    assert "Traceback" in caplog.text
    assert caplog.records[0].name == "cadenza.tools"


async def test_a_refusal_is_denied_with_its_reason() -> None:
    result = await run(raising(ToolDenied("not after 18:00")))
    assert result.observation() == "Observation [DENIED]: not after 18:00"


@pytest.mark.parametrize("error", [Cancelled("gate"), asyncio.CancelledError(), GeneratorExit()])
async def test_what_is_not_the_tools_fault_passes_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await run(raising(error))


async def test_a_tools_own_time_out_is_an_error_and_not_the_limit() -> None:
    result = await run(raising(TimeoutError("upstream")))
    assert (result.status, result.error) == ("error", "TimeoutError: upstream")


async def test_an_async_tool_is_stopped_at_its_time_limit() -> None:
    stopped = asyncio.Event()

    @tool(timeout_s=0.02)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    result = await run(slow)
    assert (result.status, result.error) == (
        "timeout",
        "slow took longer than 0.02 s and was given up",
    )
    assert stopped.is_set()


async def test_the_deadline_of_the_call_bounds_the_tool_and_is_told_to_it() -> None:
    @tool(timeout_s=60)
    async def tell(ctx: RunContext) -> float:
        return ctx.deadline - time.time()

    assert 50 < (await run(tell)).data <= 60
    near = replace(CTX, deadline=time.time() + 5)
    assert 0 < (await run(tell, near)).data <= 5
    late = await run(tell, replace(CTX, deadline=time.time() - 1))
    assert (late.status, late.error) == ("timeout", "no time was left to run tell")


async def test_findings_reported_by_a_tool_reach_the_callers_context() -> None:
    @tool
    async def look(ctx: RunContext) -> str:
        ctx.report("shortage", {"sku": "a"})
        return "ok"

    ctx = RunContext("r", "s", "a", 1)
    await run(look, ctx)
    assert [f.kind for f in ctx.findings] == ["shortage"]


async def test_blocking_tools_run_side_by_side_and_do_not_stall_the_loop() -> None:
    both = threading.Barrier(2, timeout=5)  # broken unless both calls are inside at once

    @tool
    def block() -> str:
        both.wait()
        threading.Event().wait(0.2)
        return TENANT.get()

    TENANT.set("acme")
    calls = asyncio.gather(run(block), run(block))
    gaps: list[float] = []
    last = time.perf_counter()
    while not calls.done():
        await asyncio.sleep(0.005)
        gaps.append(time.perf_counter() - last)
        last = time.perf_counter()
    assert [r.data for r in await calls] == ["acme", "acme"]
    assert len(gaps) > 10
    assert max(gaps) < 0.1


async def test_cancelling_stops_an_async_tool_at_once() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool(timeout_s=60)
    async def slow() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    task = asyncio.create_task(run(slow))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 1)
    assert stopped.is_set()


async def test_a_cancelled_synchronous_tool_is_reported_as_still_running(
    caplog: pytest.LogCaptureFixture,
) -> None:
    started, release = threading.Event(), threading.Event()

    @tool
    def block() -> None:
        started.set()
        release.wait(10)

    runner = ToolRunner([block])
    task = asyncio.create_task(runner.run(block, ToolCall("c1", "block", {}), CTX))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runner.still_running() == ("block",)
    assert "tool 'block' was given up but is still running in its thread" in caplog.text
    release.set()
    for thread in threading.enumerate():
        if thread.name == "tool block":
            thread.join(5)
    assert runner.still_running() == ()


async def test_a_synchronous_tool_past_its_limit_is_said_to_go_on() -> None:
    release = threading.Event()

    @tool(timeout_s=0.05)
    def block() -> None:
        release.wait(10)

    result = await run(block)
    release.set()
    assert result.status == "timeout"
    assert result.error is not None
    assert "still running and may yet take effect" in result.error


async def test_given_up_calls_cannot_pile_up_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    @tool(timeout_s=0.02)
    def block() -> None:
        release.wait(10)

    monkeypatch.setattr(tool_threads, "MOST_LEFT_BEHIND", 1 + len(tool_threads.still_running()))
    first, second = await run(block), await run(block)
    release.set()
    assert first.status == "timeout"
    assert second.status == "error"
    assert "were given up and are still running" in str(second.error)


def test_a_tool_that_never_ends_does_not_hold_up_the_exit() -> None:
    program = """
import asyncio, threading
from agents.context import RunContext
from agents.messages import ToolCall
from agents.tool_decorator import tool
from agents.tool_runner import ToolRunner

@tool(timeout_s=0.05)
def block() -> None:
    threading.Event().wait()

async def main() -> None:
    call = ToolCall("c", "block", {})
    print((await ToolRunner([block]).run(block, call, RunContext("r", "s", "a", 1))).status)

for _ in range(2):  # a second event loop in one process works too
    asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout.split() == ["timeout", "timeout"]


async def test_a_stop_iteration_of_a_synchronous_tool_is_an_error() -> None:
    @tool
    def first() -> object:
        return next(iter(()))

    result = await run(first)
    assert result.status == "error"
    assert "StopIteration" in str(result.error)


async def test_a_call_beyond_the_rate_waits_when_there_is_time() -> None:
    made = returning("ok", rate_limit=(1, 0.05))
    began = time.monotonic()
    results = [await run(made), await run(made)]
    assert [r.status for r in results] == ["success", "success"]
    assert time.monotonic() - began >= 0.05


async def test_a_call_far_beyond_the_rate_is_told_how_long_to_wait() -> None:
    made = returning("ok", rate_limit=(2, 60.0), timeout_s=5, cost_usd=1.0)
    copy = made.with_options(max_chars=10)  # one limit for all copies of a tool
    results = [await run(made), await run(copy), await run(made)]
    assert [r.status for r in results] == ["success", "success", "rate_limited"]
    assert results[2].error == "give takes 2 calls in 60 s; call it again in 60 s"
    assert results[2].cost_usd == 0.0


@dataclass
class Point:
    x: int
    y: float


@pytest.mark.parametrize(
    ("value", "data", "summary"),
    [
        ("as it is", "as it is", "as it is"),
        (None, None, "null"),
        (Point(1, 2.5), {"x": 1, "y": 2.5}, '{"x": 1, "y": 2.5}'),
        ((1, {"日本"}), [1, ["日本"]], '[1, ["日本"]]'),
        ({1: float("nan")}, {"1": "nan"}, '{"1": "nan"}'),
        ("x\ud83dy\0", "x\ufffdy\ufffd", "x\ufffdy\ufffd"),
        ({"\udc80": ["\ud800"]}, {"\ufffd": ["\ufffd"]}, '{"\ufffd": ["\ufffd"]}'),
    ],
)
async def test_results_become_json_and_text(value: Any, data: Any, summary: str) -> None:
    result = await run(returning(value))
    assert (result.status, result.data, result.summary) == ("success", data, summary)


def cycle() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: b"\x00\xff", "it holds bytes: decode them"),
        (lambda: {"rows": [(1, b"x")]}, "it holds bytes: decode them"),
        (object, "return text, numbers, lists"),
        (cycle, "not usable"),
    ],
)
async def test_a_result_that_is_not_json_is_an_error(make: Callable[[], Any], told: str) -> None:
    result = await run(returning(make()))
    assert (result.status, result.data) == ("error", None)
    assert told in str(result.error)


async def test_a_long_result_is_cut_for_the_model_and_kept_whole_as_data() -> None:
    result = await run(returning("é" * 150, max_chars=100))
    assert result.summary == "é" * 100 + "\n[cut: 50 of 150 characters left out]"
    assert result.data == "é" * 150
    failed = await run(raising(ValueError("x" * 9_000)))
    assert len(str(failed.error)) < 8_100


async def test_lone_surrogates_in_arguments_do_not_reach_the_tool() -> None:
    result = await run(stock, sku="x\ud83dy")
    assert result.data == {"品": "x\ufffdy", "pieces": 1}


async def test_secrets_are_taken_out_before_anyone_sees_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "correct-horse-battery")
    good = await run(returning({"correct-horse-battery": ["key=correct-horse-battery"]}))
    bad = await run(raising(ValueError("401 for correct-horse-battery")))
    # The cut must not leave half a secret behind.
    cut = await run(returning("12345 correct-horse-battery", max_chars=12))
    for result in (good, bad, cut):
        assert "correct-h" not in str(result.to_json())
    assert good.data == {"[redacted]": ["key=[redacted]"]}


async def test_the_log_of_a_failed_tool_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    await run(raising(ZeroDivisionError()))
    assert [r.levelno for r in caplog.records] == [logging.ERROR]
