"""Messages as spans show them: always JSON, never over the limit."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tracing.content import MAX_CONTENT_BYTES, clip, messages_json


def test_messages_have_the_shape_that_jaeger_shows() -> None:
    assert json.loads(messages_json([("system", "Be brief."), ("user", "Hi")])) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
    ]


def test_the_last_messages_are_kept_and_the_first_of_them_is_cut() -> None:
    long = [("user", "a" * 9_000), ("assistant", "b" * 7_000), ("user", "the end")]
    shown = json.loads(messages_json(long))
    assert shown[-1]["parts"][0]["content"] == "the end"
    assert shown[-2]["parts"][0]["content"] == "b" * 7_000
    assert "more characters" in shown[0]["parts"][0]["content"]


@given(
    st.lists(st.tuples(st.sampled_from(["user", "tool"]), st.text(max_size=200)), max_size=6),
    st.integers(min_value=80, max_value=600),
)
def test_the_result_is_json_within_the_limit(messages: list[tuple[str, str]], limit: int) -> None:
    text = messages_json(messages, limit=limit)
    assert len(text.encode()) <= limit
    assert len(json.loads(text)) <= len(messages)


def test_text_that_grows_in_json_stays_within_the_limit() -> None:
    text = messages_json([("tool", '"\n\x01' * 9_000)])
    assert len(text.encode()) <= MAX_CONTENT_BYTES
    assert len(text.encode()) > MAX_CONTENT_BYTES // 2
    json.loads(text)


def test_half_a_character_is_shown_and_not_raised() -> None:
    assert json.loads(messages_json([("user", "a\ud83d")]))[0]["parts"][0]["content"] == "a?"


@given(st.text(max_size=300), st.integers(min_value=40, max_value=300))
def test_a_clipped_text_is_within_the_limit(text: str, limit: int) -> None:
    assert len(clip(text, limit=limit).encode()) <= limit
