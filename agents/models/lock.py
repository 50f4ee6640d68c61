"""A lock on real model calls, so that a test never spends money by mistake."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from agents.errors import ModelLocked

_locked = False


def lock_models() -> None:
    """Make every call to a model that is not on this host raise ``ModelLocked``."""
    global _locked
    _locked = True


def unlock_models() -> None:
    """Allow real calls again."""
    global _locked
    _locked = False


def models_locked() -> bool:
    """Return whether real calls are locked."""
    return _locked


def is_loopback(url: str | None) -> bool:
    """Return whether a URL names this host."""
    try:
        host = urlsplit(url or "").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def check_lock(model: str, url: str | None) -> None:
    """Raise unless the call may go out; loopback addresses always may.

    Raises:
        ModelLocked: Real calls are locked and ``url`` is not on this host.
    """
    if _locked and not is_loopback(url):
        raise ModelLocked(
            f"real model calls are locked, so {model!r} was not asked; "
            "use a scripted/ model, or call unlock_models()"
        )
