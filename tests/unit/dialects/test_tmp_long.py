"""Whatever a model writes: no parser raises, and no call runs on arguments that were cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.dialects.loose_json import decode
from agents.messages import AssistantMessage
from tests.unit.dialects.toolset import TOOLS, read_native, read_text

PIECES = st.sampled_from(
    [
        *(
            "Thought:",
            "Action:",
            "Action Input:",
            "Observation:",
            "Final Answer:",
            "行動：",
            "入力：",
        ),
        *("get_weather", "get_current_time", "send_email", "nope", "Finish", '{"city": "Oslo"}'),
        *(
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            '"',
            "'",
            ":",
            ",",
            "\\",
            "\\u",
            "{{",
            "}}",
            "｛",
            "“",
            "”",
        ),
        *("\n", "\r\n", " ", "```", "```json\n", "**", "`", "<think>", "</think>", "<tool_call>"),
        *(
            '"name":',
            '"arguments":',
            '"action":',
            "null",
            "None",
            "12",
            "-",
            "\ud83d",
            "東京",
            "x=",
        ),
    ]
)
REPLY = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=200))
VALUES = st.dictionaries(
    st.sampled_from(["to", "body", "note"]),
    st.recursive(
        st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.none()),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    ),
    min_size=1,
)
FORMS = [
    "Thought: x\nAction: send_email\nAction Input: {json}",
    "Action: send_email\nAction Input:\n```json\n{json}\n```",
    "Action: send_email({json})",
    'Action: {"name": "send_email", "arguments": {json}}',
    '{"thought": "x", "action": "send_email", "action_input": {json}}',
    "思考：x\n行動：send_email\n行動入力：{json}",
    '<tool_call>{"name": "send_email", "arguments": {json}}</tool_call>',
    '```json\n{"name": "send_email", "arguments": {json}}\n```',
]


@settings(max_examples=20000, deadline=None)
@given(REPLY)
def test_no_reply_makes_a_parser_raise(text: str) -> None:
    for parsed in (read_text(text), read_text(text, ()), read_native(text)):
        says = (bool(parsed.calls), parsed.final is not None, parsed.hint is not None)
        assert sum(says) == 1
        json.dumps([call.arguments for call in parsed.calls], allow_nan=False).encode()
        assert parsed.text.encode() is not None


@settings(max_examples=4000, deadline=None)
@given(VALUES, st.sampled_from(FORMS), st.booleans(), st.data())
def test_a_cut_reply_never_yields_other_arguments_than_the_whole(
    values: dict[str, Any], form: str, ascii_only: bool, data: st.DataObject
) -> None:
    text = form.replace("{json}", json.dumps(values, ensure_ascii=ascii_only))
    native = form.startswith(("<", "```json"))
    (whole,) = (read_native if native else read_text)(text).calls
    clean = json.loads(json.dumps(whole.arguments))
    assert (whole.name, whole.error) == ("send_email", None)
    cut = data.draw(st.integers(0, len(text)))
    for parsed in (read_text(text[:cut]), read_native(text[:cut])):
        for call in parsed.calls:
            assert call.error is not None or call.name != "send_email" or call.arguments == clean


@pytest.mark.parametrize(
    "text",
    [
        '{"to": "a", "body": "b"}',
        "{'to': 'a', 'body': ['b', True]}",
        "{{“to”：“a”、 body: 12.5}}",
    ],
)
def test_no_proper_beginning_of_an_object_is_read(text: str) -> None:
    assert decode(text).end == len(text)
    for cut in range(len(text)):
        with pytest.raises(ValueError, match=r".+"):
            decode(text[:cut])


def test_deep_and_long_replies_are_read_in_bounded_time() -> None:
    for text in ("{" * 20_000, '{"a":' * 5_000, "[" * 20_000, "Action: f(" * 5_000, "**" * 20_000):
        for reply in (text, f"Action: send_email\nAction Input: {text}"):
            assert read_text(reply) is not None
            assert read_native(AssistantMessage(reply), TOOLS) is not None
