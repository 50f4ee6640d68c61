"""Strict YAML: every fault has its line and column, and words stay words."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.settings_errors import SettingsError
from orchestrator.yaml_source import MAX_VALUES, read_scalar, read_yaml

ENV = {"MODEL": "ollama/x", "N": "4711", "EMPTY": "", "T": "0.5", "B": "true", "NIL": "null"}
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]\n" for i in range(1, 9))


def read(text: str | bytes) -> Any:
    data = text if isinstance(text, bytes) else text.encode()
    return read_yaml(data, "p.yaml", env=ENV).value


def error_of(text: str | bytes) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        read(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a: 1\nb: [1, 2\nc: 3\n", 3, 2, "expected ',' or ']'"),
        ("a: 1\n  b: 2\n", 2, 4, "mapping values are not allowed"),
        ("a:\n\tb: 1\n", 2, 1, "a tab indents this line"),
        ("a:\n  b: 1\n \tc: 1\n", 3, 2, "a tab indents this line"),
        ("a: 'open\n", 2, 1, "end of stream"),
        ("a: @b\n", 1, 4, "cannot start any token"),
        ("a: 1\nb: 2\n\na: 3\n", 4, 1, "key 'a' is given twice"),
        ("x:\n  - k: 1\n    'k': 2\n", 3, 5, "key 'k' is given twice"),
        ("a: 1\n1: x\n", 2, 1, "key 1 must be a string"),
        ("true: x\n", 1, 1, "key true must be a string"),
        ("~: x\n", 1, 1, "key ~ must be a string"),
        ("? [a]\n: x\n", 1, 3, "a key must be a string"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, 3, "merge keys (<<) are not supported"),
        ("a: *nope\n", 1, 4, "undefined alias"),
        ("a: &x [*x]\n", 1, 4, "more than 20,000 values"),
        (BOMB, 1, 13, "more than 20,000 values"),
        ("a: 1\nb: {c: ${X}}\n", 2, 9, "expected ',' or '}'"),
        ("a: 1\n---\nb: 2\n", 2, 1, "more than one document"),
        ("", 1, 1, "the file is empty"),
        ("# nothing\n\n", 1, 1, "the file is empty"),
        ("- a\n", 1, 1, "not a mapping"),
        ("\nhello\n", 2, 1, "not a mapping"),
        ("a: !!python/object:os.system x\n", 1, 4, "the tag tag:yaml.org"),
        ("a: !!set {x}\n", 1, 4, "the tag tag:yaml.org"),
        ("a: !mine [1]\n", 1, 4, "the tag !mine"),
        (b"a: 1\nb: caf\xe9\n", 2, 7, "byte 0xe9 is not UTF-8"),
        ("b: é\na: 1".encode("utf-16"), 1, 1, "is not UTF-8"),
        ("é: é\nb: \x01\n", 2, 4, "U+0001 is not allowed"),
        ('a: "\\ud83d"\n', 1, 4, "half of a surrogate pair"),
        ("a: x\nb: y ${NOPE} z\n", 2, 6, "environment variable NOPE is not set"),
        ("a: |\n  one\n  two ${NOPE}\n", 3, 7, "environment variable NOPE is not set"),
        ("a: ${1X}\n", 1, 4, "does not begin a variable's name"),
        ("a: echo ${x\n", 1, 9, "does not begin a variable's name"),
        (f"a: {'[' * 50}{']' * 50}\n", 1, 43, "nesting is deeper"),
        ("[" * 100_000, 1, 41, "nesting is deeper"),
    ],
)
def test_each_fault_has_its_line_and_column(
    text: str | bytes, line: int, column: int, words: str
) -> None:
    error = error_of(text)
    assert words in error.message
    assert (error.file, error.line, error.column) == ("p.yaml", line, column)


def test_a_file_above_a_megabyte_is_refused() -> None:
    assert "1,000,004 bytes" in error_of(b"a: '" + b"x" * 999_999 + b"'").message


def test_several_faults_are_reported_together_and_at_most_ten() -> None:
    text = "".join(f"a{i}: ${{V{i}}}\n" for i in range(12))
    error = error_of(text)
    assert [p.line for p in error.problems] == list(range(1, 11))
    assert str(error).startswith("p.yaml:1:5: the environment variable V0 is not set\n  set it, or")
    assert str(error).endswith("… and 2 more")


def test_the_words_of_norway_stay_words() -> None:
    text = "a: [on, off, yes, no, Yes, NO, y, n]\nb: 2026-12-01\nc: 012\nd: 1:30\ne: 1_000\non: x"
    assert read(text) == {
        "a": ["on", "off", "yes", "no", "Yes", "NO", "y", "n"],
        "b": "2026-12-01",
        "c": "012",
        "d": "1:30",
        "e": "1_000",
        "on": "x",
    }


def test_plain_scalars_are_null_booleans_numbers_or_text_and_quoted_ones_are_text() -> None:
    assert read("a: [null, ~, true, FALSE, 3, -7, +1, 0.5, .5, 1., 1e3, -2.5E-1]\nb:") == {
        "a": [None, None, True, False, 3, -7, 1, 0.5, 0.5, 1.0, 1000.0, -0.25],
        "b": None,
    }
    assert read("a: ['null', \"true\", '3', !!str 4]\nb: ''") == {
        "a": ["null", "true", "3", "4"],
        "b": "",
    }
    assert read("a: [.inf, .nan, 1e999, 1e, e1, 99999999999999999999]")["a"] == [
        ".inf", ".nan", "1e999", "1e", "e1", "99999999999999999999",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${MODEL}", "ollama/x"),
        ("'${MODEL}'", "ollama/x"),
        ("a ${MODEL} b ${T}", "a ollama/x b 0.5"),
        ("${N}", 4711),
        ("'${N}'", "4711"),
        ("${T}", 0.5),
        ("${B}", True),
        ("${NIL}", "null"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${NOPE:-}", ""),
        ("${NOPE:-7}", 7),
        ("${MODEL:-x}", "ollama/x"),
        ("$${MODEL}", "${MODEL}"),
        ("$MODEL $5 $$", "$MODEL $5 $$"),
    ],
)
def test_variables_are_put_in(text: str, value: Any) -> None:
    assert read(f"a: {text}") == {"a": value}


def test_what_a_variable_holds_is_not_scanned_again() -> None:
    env = {"A": "${B}", "B": "x"}
    assert read_yaml(b"a: ${A}", "p", env=env).value == {"a": "${B}"}


def test_plain_aliases_are_allowed_and_expand_in_place() -> None:
    assert read("a: &x [1, 2]\nb: *x\nc: {d: *x}") == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}


def test_as_many_values_as_allowed_pass_and_one_more_does_not() -> None:
    fits = "a: [" + "1," * (MAX_VALUES - 2) + "]"
    assert len(read(fits)["a"]) == MAX_VALUES - 2
    assert "20,000 values" in error_of(fits[:-1] + "1]").message


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", ["a: [" + "1," * 400_000, "a: '" + "${X:-" * 150_000 + "'"])
def test_a_hostile_megabyte_is_refused_soon(text: str) -> None:
    assert error_of(text).line == 1


def test_a_byte_order_mark_and_windows_lines_are_understood() -> None:
    source = read_yaml(b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: x\r\n", "p", env={})
    assert source.value == {"a": 1, "b": {"c": "x"}}
    assert source.places["b", "c"] == (3, 6)
    assert source.keys["b", "c"] == (3, 3)


def test_a_problem_stands_at_the_nearest_known_place() -> None:
    source = read_yaml(b"a:\n  b: [1, {c: 2}]\n", "p", env={})
    places = {
        path: source.problem(path, "m").__getattribute__("column")
        for path in [("a", "b", 1, "c"), ("a", "b", 0), ("a", "b", 7), ("a", "x"), ("z",)]
    }
    assert list(places.values()) == [14, 7, 3, 1, 1]


def test_verbatim_paths_keep_their_reference() -> None:
    source = read_yaml(b"a: ${SECRET}\n", "p", env={}, verbatim=lambda path: path == ("a",))
    assert source.value == {"a": "${SECRET}"}


@given(st.text())
def test_a_scalar_is_itself_or_a_finite_value(text: str) -> None:
    value = read_scalar(text)
    assert value == text or value is None or math.isfinite(value)


TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_json_is_read_as_what_it_is(tree: dict[str, Any]) -> None:
    # Keys hold no variables, so nothing in them is escaped.
    tree = json.loads(json.dumps(tree).replace("${", "$"))
    assert read(json.dumps(tree)) == tree
