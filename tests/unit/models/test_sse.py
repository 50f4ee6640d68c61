"""The frame parser: any split of the bytes gives the same objects."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BrokenStream
from agents.models.sse import FrameParser
from tests.gear.fake_openai import stream_bytes
from tests.unit.models.shapes import CASES


def parse(raw: bytes, *cuts: int) -> tuple[list[dict[str, Any]], bool]:
    parser = FrameParser()
    edges = [0, *sorted(cuts), len(raw)]
    frames = [f for a, b in pairwise(edges) for f in parser.feed(raw[a:b])]
    return [*frames, *parser.close()], parser.done


@pytest.mark.parametrize(
    "raw",
    [
        b'data: {"a": 1}\n\ndata: [DONE]\n\n',
        b'data:{"a": 1}\r\n\r\ndata:[DONE]\r\n\r\n',
        b'data: {"a": 1}\r\rdata: [DONE]\r\r',
        b': keep-alive\n\nevent: x\nid: 1\nretry: 3\ndata: {"a": 1}\n\n: ping\ndata: [DONE]',
        b'data: {"a": 1}\ndata: [DONE]\n',
        b'data: {\ndata:   "a":\ndata:   1}\n\ndata: [DONE]\n\n',
        b'\xef\xbb\xbfdata: {"a": 1}\n\ndata: [DONE]\n\ndata: {"b": 2}\n\n',
        b'\n\ndata\ndata:\n\ndata: null\n\ndata: 7\n\ndata: {"a": 1}\n\ndata: [DONE] \n\n',
    ],
)
def test_every_way_to_write_an_event_is_read(raw: bytes) -> None:
    assert parse(raw) == ([{"a": 1}], True)
    assert parse(raw, *range(1, len(raw))) == ([{"a": 1}], True)


@pytest.mark.parametrize("raw", [b'{"a": 1}', b'\n {"a":\r\n 1}\n', b'\xef\xbb\xbf{"a": 1}'])
def test_a_json_body_is_read_where_a_stream_was_asked_for(raw: bytes) -> None:
    assert parse(raw) == ([{"a": 1}], False)
    assert parse(raw, *range(1, len(raw))) == ([{"a": 1}], False)


def test_a_body_that_is_no_object_yields_nothing() -> None:
    assert parse(b"[1, 2]") == ([], False)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b'event: error\ndata: {"message": "x"}\n\n', {"message": "x"}),
        (b"event: error\ndata: overloaded\n\n", "overloaded"),
        (b'event: error\ndata: {"error": "x"}\n\n', "x"),
        (b'error: {"code": 500, "message": "x"}\n\n', {"code": 500, "message": "x"}),
        (b"error: slot unavailable\n\n", "slot unavailable"),
    ],
)
def test_an_error_event_becomes_an_error_object(raw: bytes, error: Any) -> None:
    assert parse(raw)[0] == [{"error": error}]


@pytest.mark.parametrize("raw", [b'data: {"a": \n\n', b'data: {"a"', b"{", b"data: [[\n" * 1_002])
def test_what_is_not_json_breaks_the_stream(raw: bytes) -> None:
    with pytest.raises(BrokenStream):
        parse(raw)


def test_a_line_without_end_is_not_collected_for_ever() -> None:
    parser = FrameParser(max_bytes=100)
    with pytest.raises(BrokenStream, match="100 bytes"):
        parser.feed(b"data: " + b"x" * 100)


STREAM = b"".join(stream_bytes(c.shape) for c in CASES[:12]).replace(b"data: [DONE]\n\n", b"")
TEXT = json.dumps({"a": "é\u2028😀"}, ensure_ascii=False)


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_split_of_a_stream_gives_the_same_objects(cuts: list[int]) -> None:
    assert parse(STREAM, *cuts) == parse(STREAM)


def test_a_character_may_be_split_over_chunks() -> None:
    raw = b"data: " + TEXT.encode() + b"\n\n"
    assert parse(raw, *range(1, len(raw))) == ([json.loads(TEXT)], False)


@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([b"data: ", b"\n", b"\r", b"{}", b"error:", b"[" * 9])
    )
)
def test_no_bytes_raise_anything_but_a_broken_stream(pieces: list[bytes]) -> None:
    parser = FrameParser()
    try:
        frames = [f for piece in pieces for f in parser.feed(piece)] + parser.close()
    except BrokenStream:
        return
    assert all(isinstance(f, dict) for f in frames)


def test_deep_nesting_is_a_broken_stream() -> None:
    with pytest.raises(BrokenStream):
        parse(b"data: " + b"[" * 200_000 + b"\n\n")
