"""Threads for synchronous tools: they stall neither the event loop nor the exit."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

R = TypeVar("R")

_LOG = logging.getLogger("cadenza.tools")
_LEFT_BEHIND: dict[threading.Thread, str] = {}
MOST_LEFT_BEHIND = 64


def still_running() -> tuple[str, ...]:
    """Return the names of calls that were given up while their thread went on."""
    for thread in [t for t in _LEFT_BEHIND if not t.is_alive()]:
        del _LEFT_BEHIND[thread]
    return tuple(_LEFT_BEHIND.values())


async def in_thread(name: str, function: Callable[[], R]) -> R:
    """Run a function in a thread of its own, with the caller's context variables.

    The threads are daemons: those of an executor would hold up the exit until they end.
    Python cannot stop a thread, so a cancelled call is logged as still running.

    Args:
        name: The tool, for the log.
        function: What to run.

    Raises:
        RuntimeError: Too many given-up calls are still running.
    """
    if len(still_running()) >= MOST_LEFT_BEHIND:
        raise RuntimeError(
            f"{MOST_LEFT_BEHIND} calls of synchronous tools were given up and are still running; "
            "make these tools async or give them time limits of their own"
        )
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    values: list[R] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            values.append(context.run(function))
        except BaseException as exc:  # noqa: BLE001 - raised again in the caller's task
            errors.append(exc)
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=work, name=f"tool {name}", daemon=True)
    thread.start()
    try:
        await done.wait()
    except asyncio.CancelledError:
        if thread.is_alive():
            _LEFT_BEHIND[thread] = name
            _LOG.warning("tool %r was given up but is still running in its thread", name)
        raise
    if errors:
        raise errors[0]
    return values[0]
