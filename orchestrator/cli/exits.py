"""Exit codes, and which error ends in which."""

from __future__ import annotations

ANSWER, FAILED, USAGE, BUDGET, WAITS, INTERRUPTED = 0, 1, 2, 3, 4, 130

OF_STATUS = {
    "completed": ANSWER,
    "failed": FAILED,
    "stalled": FAILED,
    "cancelled": FAILED,
    "over_budget": BUDGET,
    "waiting": WAITS,
    "running": ANSWER,
}
# By name, so that help and usage errors import none of the modules that define them.
_USAGE = {
    "SettingsError",
    "UsageError",
    "InputUnknown",
    "InputClosed",
    "RunUnknown",
    "StoreError",
    "ToolDefinitionError",
    "PromptsError",
}


def exit_of(exc: Exception) -> tuple[int, str | None]:
    """Return the exit code of an error and what to print; None for a bug, which is raised."""
    names = {kind.__name__ for kind in type(exc).__mro__}
    if names & _USAGE:
        return USAGE, str(exc)
    if names & {"BusError"}:
        return FAILED, str(exc)
    return FAILED, None
