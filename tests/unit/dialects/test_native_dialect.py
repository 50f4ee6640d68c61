"""Native tool calls, and calls that a model left in its text."""

from __future__ import annotations

import json

import pytest

from agents.messages import AssistantMessage, ToolCall, ToolMessage, user
from tests.unit.dialects.toolset import NATIVE, TOOLS, read_native

OSLO = {"city": "Oslo"}
CALL = json.dumps({"name": "get_weather", "arguments": OSLO})


def test_equal_and_missing_ids_become_unique() -> None:
    for given in ("get_weather", ""):
        calls = tuple(ToolCall(given, "get_weather", {"city": c}) for c in ("Paris", "Oslo"))
        parsed = read_native(AssistantMessage("Both.", calls, "hm"))
        assert [c.id for c in parsed.calls] == ["call_0", "call_1"]
        assert [c.arguments["city"] for c in parsed.calls] == ["Paris", "Oslo"]
        assert (parsed.thought, parsed.repairs) == ("Both.", ())
        kept = NATIVE.assistant(AssistantMessage("Both.", calls, "hm"), parsed)
        assert kept == AssistantMessage("Both.", parsed.calls, "hm")


def test_calls_win_over_text_and_faulty_arguments_keep_their_error() -> None:
    call = ToolCall("a", "get_weather", {}, "cut")
    parsed = read_native(AssistantMessage(f"Final Answer: 12C {CALL}", (call,)))
    assert parsed.final is None
    assert parsed.calls == (ToolCall("call_0", "get_weather", {}, "cut"),)


def test_names_are_resolved_and_unknown_ones_are_made_safe_for_the_server() -> None:
    names = ("Get-Weather", "functions.ping it!", "")
    message = AssistantMessage("", tuple(ToolCall("a", name, {}) for name in names))
    parsed = read_native(message)
    assert [c.name for c in parsed.calls] == ["get_weather", "functions.ping it!", ""]
    assert parsed.repairs == ("tool_name",)
    kept = NATIVE.assistant(message, parsed)
    assert [c.name for c in kept.tool_calls] == ["get_weather", "functions_ping_it_", "unknown"]
    answer = NATIVE.observation(parsed.calls[1], "no such tool")
    assert answer == ToolMessage("call_1", "functions_ping_it_", "no such tool")


def test_plain_text_is_the_final_answer() -> None:
    parsed = read_native("  Paris (France)\nis best.\n")
    assert (parsed.final, parsed.repairs) == ("Paris (France)\nis best.", ())
    assert read_native("<think>Paris?</think>\nOslo").final == "Oslo"
    assert (
        read_native("The tag <think>x</think> is data").final == "The tag <think>x</think> is data"
    )


@pytest.mark.parametrize("text", ["", " \n", "<think>never ends"])
def test_an_empty_reply_gets_a_hint(text: str) -> None:
    parsed = read_native(text)
    assert (parsed.final, parsed.calls) == (None, ())
    assert "empty" in (parsed.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}",
        f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
        f"<tools>\n{{{CALL}}}\n</tools>",
        f"[TOOL_CALLS] [{CALL}]",
        f"<|python_tag|>{CALL}",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```\nThis tells the weather.",
        CALL,
        f"[{CALL}]",
        CALL.replace("arguments", "parameters"),
        CALL.replace('"', "'"),
        json.dumps({"name": "get_weather", "arguments": json.dumps(OSLO)}),
        json.dumps({"type": "function", "function": {"name": "get_weather", "arguments": OSLO}}),
        json.dumps({"name": "functions.get_weather", "arguments": OSLO}, indent=2),
    ],
)
@pytest.mark.parametrize("before", ["", "I look it up.\n"])
def test_a_call_left_in_the_text_is_run(text: str, before: str) -> None:
    parsed = read_native(before + text)
    assert parsed.calls == (ToolCall("call_0", "get_weather", OSLO),)
    assert parsed.final is None
    assert parsed.repairs[0] == "textual_call"
    kept = NATIVE.assistant(AssistantMessage(before + text), parsed)
    assert kept == AssistantMessage(before.strip(), parsed.calls)


def test_several_calls_in_the_text_keep_their_order() -> None:
    ping = json.dumps({"name": "get_current_time", "arguments": None})
    other = json.dumps({"name": "delete_all", "arguments": {}})
    parsed = read_native(f"<tools>\n{CALL}\n{other}\n{ping}\n</tools>")
    assert [(c.name, c.arguments) for c in parsed.calls] == [
        ("get_weather", OSLO),
        ("get_current_time", {}),
    ]
    assert "unknown_call_dropped" in parsed.repairs


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bob", "arguments": {}}',
        '{"name": "get_weather", "age": 3}',
        '{"name": "get_weather"}',
        '```json\n{"name": "delete_all", "arguments": {}}\n```',
        '```python\nprint({"a": 1})\n```',
        "[1] is the first source.",
        '{"subtasks": [{"id": "a", "agent": "b",',
    ],
)
def test_other_json_is_an_answer(text: str) -> None:
    assert read_native(text).final == text


def test_nothing_in_the_text_is_called_without_tools() -> None:
    assert read_native(f"<tool_call>{CALL}</tool_call>", ()).final is not None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"<tool_call>{CALL[:-4]}", "not valid JSON"),
        (f"```json\n{CALL[:-1]}", "not valid JSON"),
        (CALL[:-1], "not valid JSON"),
        ('<tool_call>{"name": "delete_all", "arguments": {}}</tool_call>', "no tool 'delete_all'"),
    ],
)
def test_a_call_in_the_text_that_cannot_run_is_no_answer(text: str, fault: str) -> None:
    parsed = read_native(text)
    assert (parsed.calls, parsed.final) == ((), None)
    assert fault in (parsed.hint or "")


def test_arguments_in_the_text_that_are_no_object_become_an_error() -> None:
    for given in ('["Oslo"]', '"Oslo"', "3"):
        (call,) = read_native(f'{{"name": "get_weather", "arguments": {given}}}').calls
        assert call.arguments == {}
        assert "JSON object" in (call.error or "")


def test_tools_go_into_the_request_and_nudges_are_user_messages() -> None:
    assert [schema.name for schema in NATIVE.tools(TOOLS)] == [tool.name for tool in TOOLS]
    assert NATIVE.stop == ()
    assert NATIVE.nudge("again") == user("again")
