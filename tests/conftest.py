"""What all tests share: no surprises from the machine, and nothing that blocks the event loop."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from agents.models.lock import lock_models, unlock_models

pytest_plugins = ["tests.gear.services"]

PACKAGES = ["orchestrator", "agents", "bus", "tracing"]

# CADENZA_TEST_* stays: it tells fixtures where the real services are.
_FOREIGN = re.compile(
    r"CADENZA_(?!TEST_)|OTEL_|\w+_API_KEY$|\w+_API_BASE$|OPENAI_|ANTHROPIC_|OLLAMA_"
)


_KEPT = (*PACKAGES, "cadenza", "tests", "examples", "benchmarks")
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})


def _installed(file: str) -> bool:
    return file.startswith(_INSTALLED)


def is_foreign(name: str) -> bool:
    """Return whether an environment variable is a setting of whoever runs the tests."""
    return bool(_FOREIGN.match(name))


def pytest_configure(config: pytest.Config) -> None:
    """Turn on asyncio's debug mode in the tests' own loops, not in processes they start."""
    config.option.asyncio_debug = True


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide settings, provider keys and exporters of whoever runs the tests."""
    for name in list(os.environ):
        if is_foreign(name):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def locked_models() -> Iterator[None]:
    """Make calls to real models an error."""
    lock_models()
    yield
    unlock_models()


@pytest.fixture(scope="session")
def detector() -> BlockBuster:
    """Detects blocking calls made on the event loop by our packages, not by the tests."""
    detector = BlockBuster(PACKAGES)
    for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
        # Libraries guard a few lines with a lock that another thread may hold at random, as the
        # span processor's queue is: a test would fail by chance. asyncio's debug mode logs
        # locks that are held for long.
        del detector.functions[name]
    return detector


@pytest.fixture(autouse=True)
def nothing_blocks(detector: BlockBuster) -> Iterator[None]:
    """Fail a test in which our code blocks the event loop."""
    detector.activate()
    yield
    detector.deactivate()


@pytest.fixture(autouse=True)
def forgotten_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a pipeline's references imported, which would hide a namesake in a later test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file and not name.startswith(_KEPT) and not _installed(file):
            del sys.modules[name]


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A fresh folder for a run store and what lies beside it."""
    folder = tmp_path / "cadenza"
    folder.mkdir()
    return folder
