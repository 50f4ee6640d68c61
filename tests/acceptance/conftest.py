"""Fixtures of the acceptance tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli_kit import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    log = logging.getLogger("cadenza")
    handlers, propagates = log.handlers, log.propagate
    yield Cli(tmp_path)
    log.handlers, log.propagate = handlers, propagates
