"""JSON as small models write it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.dialects.loose_json import Decoded, decode, scrub


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": "x\ny"}', {"a": "x\ny"}, ()),
        ("{'a': True, 'b': None, 'c': \"it's\"}", {"a": True, "b": None, "c": "it's"}, "python"),
        ("{'a': 'it\\'s', 'b': '\\x41\\u0042'}", {"a": "it's", "b": "AB"}, "python"),
        ('{"a": "\\d+"}', {"a": "\\d+"}, "loose_json"),
        ("{a: 1, b: -2.5e3,}", {"a": 1, "b": -2500.0}, "loose_json"),
        ("{{'a': {{'b': 1}}}}", {"a": {"b": 1}}, "doubled_braces"),
        ("{{}}", {}, "doubled_braces"),
        ('｛"a"：［１２，３］｝', {"a": [12, 3]}, "full_width"),
        ("{“a”: “東京、大阪：，”}", {"a": "東京、大阪：，"}, "full_width"),
        ("{‘a’： ‘b’}", {"a": "b"}, "full_width"),
        ('{"a": "full ＂ width ： inside"}', {"a": "full ＂ width ： inside"}, ()),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}, ()),
        ("{'a': '\\ud83d\\ude00'}", {"a": "😀"}, "python"),
    ],
)
def test_a_whole_value_is_read(text: str, value: Any, repairs: str | tuple[()]) -> None:
    got = decode(f"{text} and more")
    assert (got.value, got.end) == (value, len(text))
    assert any(str(repairs) in r for r in got.repairs) if repairs else got.repairs == ()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 14:25:07}', "expected '}' but found ':'"),
        ("{12: 3}", "a key must be in double quotes"),
        ('{"a": b}', "'b' is not a JSON value"),
        ('{"a": 007}', "'007' is not a JSON value"),
        ('{"a": NaN}', "'NaN' is not a JSON value"),
        ('{"a": 1e999}', "not JSON compliant"),
        ('{"a" 1}', "expected ':'"),
        ('{"a": "say "hi""}', "expected '}'"),
        ("{'a': 'it's'}", "expected '}'"),
        ('{"a": "b”}', "no closing quote"),
        ('{{"a": 1}, {"b": 2}}', "expected '}'"),
        ("[" * 200 + "]" * 200 + ",", "nested too deeply"),
        ("", "ends before it is complete"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, fault: str) -> None:
    if text.startswith("[["):
        text = text.replace("]", "],", 1)
    with pytest.raises(ValueError, match=r".+") as caught:
        decode(text)
    assert fault in str(caught.value)


def test_reading_begins_where_it_is_told() -> None:
    assert decode('x = {"a": 1} y', 4) == Decoded({"a": 1}, 12)


def test_scrub_joins_pairs_and_replaces_lone_surrogates() -> None:
    assert scrub("a\ud83d\ude00b\ud83dc\ude00") == "a😀b\ufffdc\ufffd"
