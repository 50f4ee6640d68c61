"""Errors of runs as their callers see them.

CadenzaError
├── UsageError          what was asked cannot be done: an empty task, a missing file
├── InputUnknown        no such input request
├── InputClosed         the input request was answered already
└── OtherStore          a message speaks of another run store than this process has
"""

from __future__ import annotations


class CadenzaError(Exception):
    """Cadenza cannot do what was asked."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class UsageError(CadenzaError):
    """What was asked cannot be done."""


class InputUnknown(CadenzaError):
    """There is no such input request."""


class InputClosed(CadenzaError):
    """The input request was already answered."""


class OtherStore(CadenzaError):
    """A message speaks of another run store than this process has."""
