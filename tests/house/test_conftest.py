"""The nets that all tests hang over are really there."""

from __future__ import annotations

import asyncio
import os

import pytest
from blockbuster import BlockingError

from agents.models.lock import models_locked
from tests.conftest import is_foreign
from tests.house.source import ROOT

BLOCKS = "import time; time.sleep(0)"


async def test_our_code_cannot_block_the_event_loop_unseen() -> None:
    with pytest.raises(BlockingError, match=r"time\.sleep"):
        exec(compile(BLOCKS, str(ROOT / "bus" / "planted.py"), "exec"))


async def test_a_test_itself_may_block_for_a_moment() -> None:
    exec(compile(BLOCKS, __file__, "exec"))


async def test_our_code_may_block_in_a_thread() -> None:
    code = compile(BLOCKS, str(ROOT / "bus" / "planted.py"), "exec")
    await asyncio.to_thread(exec, code)


async def test_asyncio_runs_in_debug_mode() -> None:
    assert asyncio.get_running_loop().get_debug()


def test_real_models_are_locked() -> None:
    assert models_locked()


@pytest.mark.parametrize(
    "name", ["CADENZA_MODEL", "OTEL_SDK_DISABLED", "OPENAI_BASE_URL", "GEMINI_API_KEY"]
)
def test_settings_of_the_machine_are_hidden(name: str) -> None:
    assert is_foreign(name)
    assert name not in os.environ


@pytest.mark.parametrize("name", ["CADENZA_TEST_KAFKA", "PATH", "CI"])
def test_addresses_of_test_services_stay(name: str) -> None:
    assert not is_foreign(name)
