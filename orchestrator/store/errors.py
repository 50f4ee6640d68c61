"""Errors of the run store.

StoreError
├── StoreUnusable       cannot be opened or used: path, rights, device, not a run store
├── StoreNewer          written by a newer version of Cadenza
├── StoreBusy           another process holds the lock for too long (retryable)
├── StoreFull           the disk is full; nothing of what was asked was written (retryable)
├── StoreClosed         used before it was opened or after it was closed
└── RunUnknown          no such run
"""

from __future__ import annotations


class StoreError(Exception):
    """The run store cannot do what was asked."""

    retryable = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class StoreUnusable(StoreError):
    """The run store cannot be used."""


class StoreNewer(StoreError):
    """The run store was written by a newer version of Cadenza."""


class StoreBusy(StoreError):
    """Another process holds the run store's lock."""

    retryable = True


class StoreFull(StoreError):
    """The disk under the run store is full; free some space and try again."""

    retryable = True


class StoreClosed(StoreError):
    """The run store is not open."""


class RunUnknown(StoreError):
    """There is no such run."""
