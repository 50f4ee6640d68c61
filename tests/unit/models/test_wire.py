"""What is sent to a server: paired, canonical, with media."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.content import Blob, Text
from agents.errors import ModelRefused, UnsupportedMedia
from agents.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agents.models.base import ModelSettings, ToolSchema
from agents.models.wire import canonical, chat_messages, check_media, request_body
from tests.gear.fake_openai import problem
from tests.unit.models.shapes import request

BLOBS = {"i": b"png", "t": "Grüße".encode(), "p": b"pdf", "w": b"wav"}


def blob(key: str, media_type: str) -> UserMessage:
    return UserMessage((Text("see"), Blob(media_type, key, f"{key}.x", 3)))


async def load(sha256: str) -> bytes:
    return BLOBS[sha256]


async def body(**options: Any) -> dict[str, Any]:
    settings = options.pop("settings", ModelSettings("p/m"))
    asked = request(**options)
    return await request_body(asked, settings, model="m", dialect="text")


async def test_roles_and_texts_keep_their_order() -> None:
    sent = await chat_messages(request(SystemMessage("s"), user("u"), AssistantMessage("a")))
    assert [(m["role"], m["content"]) for m in sent] == [
        ("system", "s"),
        ("user", "u"),
        ("assistant", "a"),
    ]


async def test_a_broken_call_is_replayed_as_an_object_under_a_legal_name() -> None:
    calls = (ToolCall("c1", "a b!", {}, "cut"), ToolCall("c2", "", {"x": "\ud800"}))
    sent = await chat_messages(request(user("u"), AssistantMessage("", calls)))
    functions = [c["function"] for c in sent[1]["tool_calls"]]
    assert functions == [
        {"name": "a_b_", "arguments": "{}"},
        {"name": "unnamed", "arguments": '{"x":"\ufffd"}'},
    ]
    assert sent[1]["content"] is None


def test_arguments_are_canonical_json() -> None:
    assert canonical({"city": "Zürich"}) == '{"city":"Zürich"}'


MESSAGES = st.lists(
    st.builds(user, st.text(max_size=3))
    | st.builds(ToolMessage, st.sampled_from("abc"), st.just("t"), st.text(max_size=3))
    | st.builds(
        AssistantMessage,
        st.text(max_size=3),
        st.lists(st.sampled_from("abc"), unique=True, max_size=3).map(
            lambda ids: tuple(ToolCall(i, "t", {}) for i in ids)
        ),
    ),
    max_size=8,
)


@given(MESSAGES)
async def test_any_history_is_paired_for_a_strict_server(messages: list[Message]) -> None:
    sent = await chat_messages(request(*messages, user("end")))
    assert problem({"messages": sent}) is None
    texts = [m.text for m in messages if isinstance(m, ToolMessage)]
    # Nothing that was observed is lost.
    assert all(any(t in (m["content"] or "") for m in sent) for t in texts)


async def test_media_become_parts() -> None:
    kinds = [("i", "image/png"), ("t", "text/csv"), ("w", "audio/wav"), ("p", "application/pdf")]
    asked = request(*(blob(k, t) for k, t in kinds), load_blob=load)
    parts = [m["content"][1] for m in await chat_messages(asked)]
    assert parts == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
        {"type": "text", "text": "t.x:\nGrüße"},
        {"type": "input_audio", "input_audio": {"data": "d2F2", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "p.x", "file_data": "data:application/pdf;base64,cGRm"},
        },
    ]


async def test_blobs_may_be_read_synchronously_but_must_be_readable() -> None:
    asked = request(blob("i", "image/png"), load_blob=lambda key: BLOBS[key])
    assert (await chat_messages(asked))[0]["content"][1]["type"] == "image_url"
    with pytest.raises(ModelRefused, match="load_blob"):
        await chat_messages(request(blob("i", "image/png")))


def test_media_types_are_checked_by_pattern() -> None:
    asked = request(blob("i", "image/png"))
    check_media(asked, ("image/*",), "p/m")
    check_media(asked, ("application/pdf", "image/png"), "p/m")
    with pytest.raises(UnsupportedMedia, match=r"'p/m'.*image/png.*text alone.*media_types"):
        check_media(asked, (), "p/m")


async def test_tools_schema_and_stops_are_sent() -> None:
    schema = {"type": "object"}
    sent = await body(
        tools=(ToolSchema("t", "does", schema),),
        stop=("Observation",),
        response_schema=schema,
        tool_choice="none",
    )
    function = {"name": "t", "description": "does", "parameters": schema}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert sent["stop"] == ["Observation"]
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert sent["tool_choice"] == "none"


async def test_what_is_not_set_is_not_sent() -> None:
    sent = await body(tools=(), tool_choice="none", settings=ModelSettings("p/m", stream=False))
    assert set(sent) == {"model", "messages"}


async def test_a_prefill_begins_the_assistants_turn() -> None:
    sent = await body(settings=ModelSettings("p/m", prefill="Thought:"))
    assert sent["messages"][-1] == {"role": "assistant", "content": "Thought:"}


async def test_extra_body_wins_and_everything_is_json() -> None:
    sent = await body(settings=ModelSettings("p/m", extra_body={"model": "other", "seed": 1}))
    assert (sent["model"], sent["seed"]) == ("other", 1)
    json.dumps(sent)
