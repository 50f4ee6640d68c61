"""Fixtures of the acceptance tests."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli_kit import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """The command line in an empty folder; what it imports from there is forgotten again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    log = logging.getLogger("cadenza")
    handlers, propagates = log.handlers, log.propagate
    yield Cli(tmp_path)
    log.handlers, log.propagate = handlers, propagates
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]
