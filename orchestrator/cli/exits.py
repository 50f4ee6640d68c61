"""Exit codes, and which error ends in which."""

from __future__ import annotations

ANSWER, FAILED, USAGE, BUDGET, WAITS, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143

OF_STATUS = {
    "completed": ANSWER,
    "failed": FAILED,
    "stalled": FAILED,
    "cancelled": FAILED,
    "over_budget": BUDGET,
    "waiting": WAITS,
}
# By name, so that help and usage errors import none of the modules that define them.
_OF_ERROR = {
    "CadenzaError": USAGE,
    "SettingsError": USAGE,
    "RunUnknown": USAGE,
    "StoreUnusable": USAGE,
    "StoreNewer": USAGE,
    "StoreError": FAILED,
    "ToolDefinitionError": USAGE,
    "BusError": FAILED,
    "JaegerUnusable": USAGE,
}


def exit_of(exc: Exception) -> int | None:
    """Return the exit code of an error that is no bug of ours; None for one that is."""
    names = (kind.__name__ for kind in type(exc).__mro__)
    return next((_OF_ERROR[name] for name in names if name in _OF_ERROR), None)
