"""The assembler against odd servers: whatever they send becomes one sound reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BrokenStream, EmptyReply, ModelError
from agents.messages import AssistantMessage, ToolCall
from agents.models.assembler import Assembler, read_usage, taken_ids
from agents.models.base import Delta, ModelReply
from agents.usage import Usage
from tests.gear.fake_openai import Shape, call, calls, chunk, deltas, text
from tests.unit.models.shapes import CASES, TOOLS, Case, part, request


def chunks_of(shape: Shape) -> list[dict[str, Any]]:
    chunks = [c for c in shape.chunks if not isinstance(c, bytes)]
    if shape.message is not None:
        message = dict(shape.message)
        chunks.append(chunk(message))
    if shape.finish is not None:
        chunks.append(chunk({}, shape.finish))
    return chunks


def body_of(shape: Shape) -> dict[str, Any]:
    return {"choices": [{"message": shape.message, "finish_reason": shape.finish}]}


def assemble(*chunks: dict[str, Any], taken: tuple[str, ...] = ()) -> ModelReply:
    assembler = Assembler("p/m", taken, tools=TOOLS)
    for item in chunks:
        assembler.feed(item)
    return assembler.reply()


def check(case: Case, reply: ModelReply) -> None:
    found = [(c.name, None if c.error else c.arguments) for c in reply.message.tool_calls]
    assert found == case.calls
    assert reply.message.text == case.text
    assert reply.message.reasoning == case.reasoning
    assert reply.finish_reason == case.finish
    ids: list[Any] = [c.id for c in reply.message.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(isinstance(i, str) and i for i in ids)
    assert all(c.arguments == {} for c in reply.message.tool_calls if c.error)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_stream_of_an_odd_shape_becomes_the_right_reply(case: Case) -> None:
    check(case, assemble(*chunks_of(case.shape)))


@pytest.mark.parametrize("case", [c for c in CASES if not c.only_stream], ids=lambda c: c.name)
def test_a_body_of_an_odd_shape_becomes_the_right_reply(case: Case) -> None:
    check(case, assemble(body_of(case.shape)))


def test_an_id_of_an_earlier_turn_is_replaced_and_noted() -> None:
    reply = assemble(body_of(calls(call("ping", {}, "call_0"))), taken=("call_0",))
    assert reply.message.tool_calls[0].id not in ("call_0", "")
    assert "call_0" in reply.notes[0]


def test_taken_ids_are_read_from_the_conversation() -> None:
    said = AssistantMessage(tool_calls=(ToolCall("c7", "ping", {}),))
    assert taken_ids(request(said)) == {"c7"}


def test_bad_arguments_tell_the_model_why_and_what_fits() -> None:
    error = assemble(body_of(calls(call("get_weather", "null")))).message.tool_calls[0].error
    assert error is not None
    assert "null" in error
    assert '"city"' in error


def test_a_call_cut_at_the_limit_is_told_to_come_again_shorter() -> None:
    shape = calls(call("ping", {}), call("send_email", {"to": "a"}, "c2"), finish="length")
    errors = [c.error or "" for c in assemble(body_of(shape)).message.tool_calls]
    assert len(errors) == 2
    assert all("again" in e and "shorter" in e for e in errors)


def test_a_call_without_a_name_is_an_error_for_the_model() -> None:
    reply = assemble(body_of(calls(call("", {}, "c1"))))
    assert "names no tool" in (reply.message.tool_calls[0].error or "")


@pytest.mark.parametrize("finish", [None, "error"])
def test_nothing_of_an_unfinished_stream_comes_out(finish: str | None) -> None:
    head = part(0, id="c1", name="ping", arguments="{}")
    with pytest.raises(BrokenStream) as caught:
        assemble(*chunks_of(deltas(head, finish=finish)))
    assert caught.value.usage.llm_calls == 1
    assert caught.value.usage.input_tokens is None


def test_the_end_marker_is_an_end_without_a_finish_reason() -> None:
    assembler = Assembler("p/m")
    assembler.feed(chunk({"content": "Sunny."}))
    assembler.end()
    assert assembler.reply().finish_reason == "stop"


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        (text(""), "neither"),
        (text("  \n", finish="length"), "max_tokens"),
        (text("<think>hm", finish="length"), "max_tokens"),
        (text("", finish="content_filter"), "filter"),
    ],
)
def test_an_empty_success_is_an_error_that_was_paid_for(shape: Shape, word: str) -> None:
    with pytest.raises(EmptyReply, match=word) as caught:
        assemble(body_of(shape) | {"usage": {"prompt_tokens": 3, "completion_tokens": 1}})
    assert caught.value.usage == Usage(1, 0, 3, 1, 0, None)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage(1, 0, None, None, 0, None)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(1, 0, None, None, 0, None)),
        ({"prompt_tokens": 5, "completion_tokens": 0}, Usage(1, 0, 5, 0, 0, None)),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(1, 0, 5, 2, 0, None)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            Usage(1, 0, 5, 2, 4, None),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 3},
            Usage(1, 0, 5, 2, 3, None),
        ),
        ({"prompt_tokens": "5", "completion_tokens": -2}, Usage(1, 0, None, None, 0, None)),
    ],
)
def test_usage_is_read_or_marked_unknown(usage: Any, expected: Usage) -> None:
    assert read_usage(usage) == expected


def test_thinking_is_never_shown_however_the_tags_are_cut() -> None:
    said = "a <think>b</think> c < d </thin"
    assembler = Assembler("p/m")
    shown: list[Delta] = []
    for letter in said:
        shown += assembler.feed(chunk({"content": letter}))
    assembler.feed(chunk({}, "stop"))
    reply = assembler.reply()
    assert reply.message.text == "a  c < d </thin"
    assert reply.message.text.startswith("".join(d.text for d in shown))
    assert reply.message.reasoning == "b"


def test_text_before_a_closing_tag_alone_is_taken_back() -> None:
    assembler = Assembler("p/m")
    shown = [
        *assembler.feed(chunk({"content": "hm\n"})),
        *assembler.feed(chunk({"content": "</think>Yes."})),
    ]
    assert shown == [Delta("hm\n"), Delta(discard=True), Delta("Yes.")]


def test_a_prefill_begins_the_text_once() -> None:
    for said in ("it is sunny", "Thought: it is sunny"):
        assembler = Assembler("p/m", prefill="Thought: ")
        assembler.feed(chunk({"content": said}, "stop"))
        assert assembler.reply().message.text == "Thought: it is sunny"


def test_the_arguments_of_any_reply_are_json_text_of_an_object() -> None:
    reply = assemble(
        body_of(calls(*(call("ping", raw, "") for raw in ("{", "1e999", '{"a": 1e999}'))))
    )
    for found in reply.message.tool_calls:
        json.dumps(found.arguments, allow_nan=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KEYS = """
    id index name arguments function type content tool_calls thinking text reasoning
    function_call refusal finish_reason delta message usage
"""
KEYS = st.sampled_from(_KEYS.split())
ODD = st.recursive(
    JSON | st.sampled_from(["ping", "{}", '{"a": "\\ud800"}', "<think>", "</think>", "stop"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "choices": st.lists(ODD, max_size=2),
                "usage": ODD,
                "error": ODD,
                "x_groq": ODD,
            },
        ),
        max_size=4,
    ),
    st.lists(ODD, max_size=3),
)
def test_no_chunk_raises_anything_but_our_errors(chunks: list[Any], odd_deltas: list[Any]) -> None:
    assembler = Assembler("p/m", tools=TOOLS)
    try:
        for item in [*chunks, *({"choices": [{"delta": d}]} for d in odd_deltas)]:
            assembler.feed(item)
        assembler.end()
        reply = assembler.reply()
    except ModelError:
        return
    reply.message.text.encode()
    json.dumps([c.arguments for c in reply.message.tool_calls]).encode()


@given(st.text(st.sampled_from("a<>think/`\n\ud83d\ude00é")), st.data())
def test_any_cut_of_the_content_gives_the_same_reply(said: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=4)))
    pieces = [said[a:b] for a, b in zip([0, *cuts], [*cuts, len(said)], strict=True)]

    def outcome(parts: list[str]) -> tuple[str, str] | str:
        assembler = Assembler("p/m")
        for piece in parts:
            assembler.feed(chunk({"content": piece}))
        assembler.end()
        try:
            message = assembler.reply().message
        except EmptyReply as exc:
            return str(exc)
        return message.text, message.reasoning

    assert outcome(pieces) == outcome([said])
