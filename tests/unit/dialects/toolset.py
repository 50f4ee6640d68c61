"""The tools that the dialects are tested with, and short ways to parse a reply."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from agents.dialects.base import Parsed
from agents.dialects.native import NativeDialect
from agents.dialects.prompts import load_prompts
from agents.dialects.text import TextDialect
from agents.messages import AssistantMessage
from agents.tool_decorator import tool
from agents.tools import Tool

PROMPTS = load_prompts()
TEXT = TextDialect(PROMPTS)
NATIVE = NativeDialect(PROMPTS)


@tool
async def get_current_time() -> str:
    """Tell the local time."""
    return "14:25:07"


@tool
async def get_current_date() -> str:
    """Tell the date."""
    return "2026-11-30"


@tool
async def calculator(expression: str) -> float:
    """Evaluate an arithmetic expression."""
    return float(len(expression))


@tool
async def web_search(query: str, max_results: int = 5) -> str:
    """Search the web."""
    return query * max_results


@tool
async def python_exec(code: str) -> str:
    """Run a Python program."""
    return code


@tool
async def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return city


@tool
async def send_email(to: str, body: str) -> str:
    """Send a mail."""
    return to + body


@tool
async def mean(values: list[float]) -> float:
    """Return the mean of numbers."""
    return sum(values)


@tool
async def list_items(limit: int = 10) -> int:
    """List the items."""
    return limit


REPLY_TOOLS: tuple[Tool, ...] = (
    get_current_time,
    get_current_date,
    calculator,
    web_search,
    python_exec,
)
TOOLS: tuple[Tool, ...] = (*REPLY_TOOLS, get_weather, send_email, mean, list_items)


def read_text(text: str, tools: Sequence[Tool] = TOOLS) -> Parsed:
    """Parse a reply in the text dialect."""
    ids = count()
    return TEXT.parse(AssistantMessage(text), tools, new_id=lambda: f"call_{next(ids)}")


def read_native(message: AssistantMessage | str, tools: Sequence[Tool] = TOOLS) -> Parsed:
    """Parse a reply in the native dialect."""
    ids = count()
    said = AssistantMessage(message) if isinstance(message, str) else message
    return NATIVE.parse(said, tools, new_id=lambda: f"call_{next(ids)}")
