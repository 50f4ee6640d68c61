"""The text format and the ways in which models miss it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.content import Text
from agents.messages import AssistantMessage, ToolCall, UserMessage
from tests.unit.dialects.toolset import TEXT, TOOLS, read_text

OSLO = {"city": "Oslo"}
WEATHER = 'Action: get_weather\nAction Input: {"city": "Oslo"}'


def call_of(text: str) -> tuple[str, dict[str, Any]]:
    parsed = read_text(text)
    (call,) = parsed.calls
    assert call.error is None, call.error
    assert parsed.final is None
    assert parsed.hint is None
    return call.name, call.arguments


def error_of(text: str) -> str:
    (call,) = read_text(text).calls
    assert call.arguments == {}
    assert call.error is not None
    return call.error


def hint_of(text: str) -> str:
    parsed = read_text(text)
    assert (parsed.calls, parsed.final) == ((), None)
    assert parsed.hint is not None
    assert "\n" not in parsed.hint
    return parsed.hint


def test_a_well_formed_call_needs_no_repair() -> None:
    parsed = read_text(f"Thought: I need it.\n{WEATHER}")
    assert parsed.calls == (ToolCall("call_0", "get_weather", OSLO),)
    assert (parsed.thought, parsed.repairs) == ("I need it.", ())
    assert parsed.text == f"Thought: I need it.\n{WEATHER}"


@pytest.mark.parametrize(
    "text",
    [
        "THOUGHT: x\nACTION: get_weather\nACTION INPUT: {args}",
        "**Thought:** x\n**Action:** get_weather\n**Action Input:** {args}",
        "**Thought**: x\n**Action**: `get_weather`\n**Action Input**: `{args}`",
        "### Thought: x\n### Action: get_weather\n### Action Input: {args}",
        "Thought 1: x\nAction 1: get_weather\nAction Input 1: {args}",
        "  Thought : x\n  Action : get_weather.\n  Action Input : {args}",
        "Thought: x\r\nAction: get_weather\r\nAction Input: {args}\r\n",
        "思考: x\n行動: get_weather\n行動入力: {args}",
        "思考：x\n行動：get_weather\n行動の入力：{args}",
        "思考：x\nアクション：「get_weather」\nアクション入力：{args}",
        "Ｔｈｏｕｇｈｔ：x\nＡｃｔｉｏｎ：get_weather\nＡｃｔｉｏｎ　Ｉｎｐｕｔ：{args}",
        "Thought: x\nAction:\nget_weather\nAction Input:\n{args}",
        "Thought: x\nAction: get_weather Action Input: {args}",
        "Thought: x. Action: get_weather Action Input: {args}",
        "Thought: x.\nAction: Get Weather\nAction Input: {args}",
        "Thought: x\nAction: functions.get_weather\nAction Input: {args}",
        "Thought: x\nAction: get_weather: tell the weather\nAction Input: {args}",
        "Thought: x\nAction: get_weather\nInput: {args}",
        "Thought: x\nAction: get_weather\n入力：{args}",
        "Thought: x\nAction: get_weather\n{args}",
        "Thought: x\nAction: get_weather {args}",
        "Thought: x\nget_weather\nAction Input: {args}",
        "Thought: x\nAction: get_weather({args})",
        "Thought: x\nAction: `get_weather({args})`",
        "Thought: x\nAction: get_weather()\nAction Input: {args}",
        "Thought: x\nAction: get_weather(city: string)\nAction Input: {args}",
        "Thought: x\nAction: get_weather\nAction Input:\n```json\n{args}\n```",
        "```\nThought: x\nAction: get_weather\nAction Input: {args}\n```",
        'Thought: x\nAction: {{"name": "get_weather", "arguments": {args}}}',
        'Thought: x\nAction:\n```json\n{{"action": "get_weather", "action_input": {args}}}\n```',
        '{{"thought": "x", "action": "get_weather", "action_input": {args}}}',
        '```json\n{{"Thought": "x", "Tool": "get_weather", "Action Input": {args}}}\n```',
        '{{"思考": "x", "行動": "get_weather", "行動入力": {args}}}',
        'x\n<tool_call>{{"name": "get_weather", "arguments": {args}}}</tool_call>',
        "x\nAction: get_weather\nAction Input: {args}",
        "Thought: Thought: x\nAction: get_weather\nAction Input: {args}",
    ],
)
def test_a_call_is_read_however_its_labels_are_written(text: str) -> None:
    text = text.replace("{args}", '{"city": "Oslo"}').replace("{{", "{").replace("}}}", "}}")
    assert call_of(text) == ("get_weather", OSLO)
    assert read_text(text).thought.rstrip(".") == "x"


@pytest.mark.parametrize(
    ("given", "repair"),
    [
        ("{'city': 'Oslo'}", "python_literal"),
        ('{{"city": "Oslo"}}', "doubled_braces"),
        ("｛＂city＂：＂Oslo＂｝", "full_width"),
        ("{“city”：“Oslo”}", "full_width"),
        ('{city: "Oslo",}', "loose_json"),
        ('"{\\"city\\": \\"Oslo\\"}"', "double_encoded"),
        ("Oslo", "bare_argument"),
        ('"Oslo"', "bare_argument"),
        ("city: Oslo", "bare_argument"),
        ('city="Oslo"', "keyword_arguments"),
        ("```\nOslo\n```", "bare_argument"),
        ('{"city": "Oslo"} and then I will compare', "trailing_text_dropped"),
        ('{"city": "Oslo"}\nAction Input: {}', "second_input_dropped"),
    ],
)
def test_an_input_is_repaired_and_the_repair_is_named(given: str, repair: str) -> None:
    text = f"Thought: x\nAction: get_weather\nAction Input: {given}"
    assert call_of(text) == ("get_weather", OSLO)
    assert repair in read_text(text).repairs


@pytest.mark.parametrize(
    ("action", "name", "arguments"),
    [
        ("calculator(12 * (3 + 7))", "calculator", {"expression": "12 * (3 + 7)"}),
        ("calculator[12 * (3 + 7)]", "calculator", {"expression": "12 * (3 + 7)"}),
        ('get_weather("Paris (France)")', "get_weather", {"city": "Paris (France)"}),
        ("get_weather（'Paris'）", "get_weather", {"city": "Paris"}),
        ("send_email(to='a', body='b, c')", "send_email", {"to": "a", "body": "b, c"}),
        ('web_search(query="x", max_results=3)', "web_search", {"query": "x", "max_results": 3}),
        ("get_current_time()", "get_current_time", {}),
        ("get_current_time", "get_current_time", {}),
        ("get_current_time\nAction Input:", "get_current_time", {}),
        ("get_current_time\nAction Input: None", "get_current_time", {}),
        ("list_items\nAction Input: なし", "list_items", {}),
        ("mean\nAction Input: [1, 2]", "mean", {"values": [1, 2]}),
        ("calculator\nAction Input: 12 * 3\nOutput: 36", "calculator", {"expression": "12 * 3"}),
    ],
)
def test_arguments_are_read_in_the_style_of_a_function(
    action: str, name: str, arguments: dict[str, Any]
) -> None:
    assert call_of(f"Thought: x\nAction: {action}") == (name, arguments)


def test_code_in_a_fence_is_the_argument_whole_although_it_holds_labels() -> None:
    code = "for i in range(3):\n    print(i)\n\n# Action: none\nprint('Final Answer:')"
    text = f"Action: python_exec\nAction Input:\n```python\n{code}\n```\nObservation: 0"
    assert call_of(text) == ("python_exec", {"code": code})


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ('{"city": "Os', "no closing quote"),
        ('{"city": "Oslo"', "ends before it is complete"),
        ("{'city': 'Os", "no closing quote"),
        ('{{"city": "Oslo"}', "ends before it is complete"),
        ('"Os', "no closing quote"),
        ('{"city": Oslo}', "put text in double quotes"),
        ("```json\nOslo", "code fence of Action Input has no end"),
        ('["Oslo"]', "must be a JSON object"),
        ("null", "missing"),
        ("", "missing"),
        ("first line\nsecond line", "must be one JSON object"),
    ],
)
def test_an_input_that_is_cut_or_unclear_becomes_an_error_that_says_what_to_write(
    given: str, fault: str
) -> None:
    error = error_of(f"Thought: x\nAction: get_weather\nAction Input: {given}")
    assert fault in error
    assert 'Write: Action Input: {"city": "…"}' in error


def test_a_missing_input_is_an_error_for_a_tool_that_needs_one() -> None:
    assert "missing" in error_of("Thought: x\nAction: get_weather")
    assert "missing" in error_of("Thought: x\nAction: list_items\nAction Input:")


@pytest.mark.parametrize("label", ["Observation", "Observation [SUCCESS]", "観察", "Action Output"])
@pytest.mark.parametrize("colon", [":", "："])
def test_an_invented_observation_is_cut_and_the_tool_is_run(label: str, colon: str) -> None:
    text = f"Thought: x\n{WEATHER}\n{label}{colon} 12C\nThought: done\nFinal Answer: 12C"
    assert call_of(text) == ("get_weather", OSLO)
    parsed = read_text(text)
    assert "invented_observation_cut" in parsed.repairs
    kept = TEXT.assistant(AssistantMessage(text, reasoning="hm"), parsed)
    assert kept == AssistantMessage(f"Thought: x\n{WEATHER}", reasoning="hm")


def test_of_two_actions_the_first_is_run_and_kept() -> None:
    second = 'Action: calculator\nAction Input: {"expression": "1"}'
    parsed = read_text(f"Thought: x\n{WEATHER}\n\nThought: y\n{second}")
    assert [call.name for call in parsed.calls] == ["get_weather"]
    assert parsed.repairs == ("second_action_dropped",)
    assert parsed.text == f"Thought: x\n{WEATHER}"


def test_of_action_and_final_answer_the_first_counts() -> None:
    assert call_of(f"Thought: x\n{WEATHER}\nFinal Answer: 12C") == ("get_weather", OSLO)
    parsed = read_text(f"Thought: x\nFinal Answer: 12C\n{WEATHER}")
    assert (parsed.final, parsed.calls) == ("12C", ())
    assert parsed.repairs == ("turn_after_answer_dropped",)


@pytest.mark.parametrize("newline", ["\\n", "\n"])
@pytest.mark.parametrize("label", ["Final Answer", "Observation", "Action"])
def test_a_label_inside_the_input_stays_inside(newline: str, label: str) -> None:
    body = f"Hi{newline}{label}: yes"
    given = f'{{"to": "a", "body": "{body}"}}'
    for text in (
        f"Thought: x\nAction: send_email\nAction Input: {given}\nObservation: sent",
        f"Thought: x\nAction: send_email({given})",
        f'Thought: x\nAction: {{"name": "send_email", "arguments": {given}}}',
    ):
        assert call_of(text) == ("send_email", {"to": "a", "body": f"Hi\n{label}: yes"})


@pytest.mark.parametrize(
    "answer",
    [
        "Paris (France) is best",
        "one\n\ntwo (2)\n- three: 3",
        "**42** is bold",
        '{"a": [1, 2]}',
        "Minutes\nAction: Bob writes\nObservation: it rained",
        "Use this:\n```\nThought: x\nAction: f\nAction Input: {}\n```",
        "Write <think> to think.",
        "Thought: is not a label here",
        "はい（東京）です。\n結果: 良い",
    ],
)
@pytest.mark.parametrize(
    "label", ["Final Answer:", "FINAL ANSWER :", "**Final Answer:**", "最終回答：", "最終的な答え:"]
)
def test_the_final_answer_is_all_that_follows_its_label(label: str, answer: str) -> None:
    parsed = read_text(f"Thought: done\n{label} {answer}\n")
    assert parsed.final == answer
    assert (parsed.thought, parsed.repairs, parsed.hint) == ("done", (), None)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("**Final Answer: 42**", "42"),
        ("I know it. Final Answer: 42", "42"),
        ("分かった。最終回答: 42", "42"),
        ("```\nThought: x\nFinal Answer: 42\n```", "42"),
        ("Sure:\n```\nFinal Answer: 42\n```", "42"),
        ("Thought: x\nAction: None\nFinal Answer: 42", "42"),
        ("Action: Finish(Paris (France) is best)", "Paris (France) is best"),
        ("Action: Finish[a\n(b)\nc]", "a\n(b)\nc"),
        ("Action: Final Answer\nAction Input: 42 (approx.)\nin all", "42 (approx.)\nin all"),
        ('Action: final_answer\nAction Input: {"answer": "42"}', "42"),
        ('{"thought": "x", "final_answer": "42"}', "42"),
        ('{"thought": "x", "final_answer": {"a": 1, "b": 2}}', '{"a": 1, "b": 2}'),
        ('Action:\n```\n{"action": "Final Answer", "action_input": "42"}\n```', "42"),
        ("Observation: 42\nThought: done\nFinal Answer: 42", "42"),
    ],
)
def test_a_final_answer_is_found_in_other_places(text: str, answer: str) -> None:
    parsed = read_text(text)
    assert (parsed.final, parsed.calls, parsed.hint) == (answer, (), None)


@pytest.mark.parametrize(
    "text",
    [
        "<think>\nAction: delete_all\nAction Input: {}\n</think>\nThought: x\n{call}",
        "Thought: x\n<think>Action: delete_all</think>\n{call}",
        "Thought: <thinking>hm\nFinal Answer: no\n</thinking> x\n{call}",
        "Action: delete_all\nAction Input: {}\n</think>\n\nThought: x\n{call}",
        "<THINK>a</THINK><think>b</think>Thought: x\n{call}",
    ],
)
def test_steps_inside_reasoning_are_ignored(text: str) -> None:
    parsed = read_text(text.replace("{call}", WEATHER))
    assert [(c.name, c.arguments) for c in parsed.calls] == [("get_weather", OSLO)]
    assert parsed.thought == "x"
    assert parsed.repairs == ("think_removed",)


def test_reasoning_without_end_is_no_step() -> None:
    assert "empty" in hint_of(f"<think>I could\n{WEATHER}")
    assert "Thought alone" in hint_of(f"Thought: x\n<think>I could\n{WEATHER}")


def test_reasoning_tags_inside_arguments_are_data() -> None:
    body = "use <think>quietly</think>"
    text = f'Action: send_email\nAction Input: {{"to": "a", "body": "{body}"}}'
    assert call_of(text) == ("send_email", {"to": "a", "body": body})


def test_an_unknown_tool_is_still_a_call_so_that_near_names_can_be_told() -> None:
    parsed = read_text('Thought: x\nAction: lookup_weather\nAction Input: {"city": "Oslo"}')
    assert parsed.calls == (ToolCall("call_0", "lookup_weather", OSLO),)


@pytest.mark.parametrize("name", ["12 * 3 + 7", "I will look it up", "天気", "17 × 23 = 391", ""])
def test_an_action_that_cannot_be_a_name_gets_the_names(name: str) -> None:
    hint = hint_of(f"Thought: x\nAction: {name}\nAction Input: 12\nFinal Answer: 19")
    assert "get_weather" in hint
    assert "calculator" in hint


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("It is 12C in Oslo.", "neither an Action nor a Final Answer"),
        ("Thought: I wonder", "Thought alone"),
        ("Observation: 12C", "neither"),
        ("", "empty"),
        (" \n ", "empty"),
        ("Thought: x\nFinal Answer:  \n", "Final Answer is empty"),
        ("Action: Finish()", "Final Answer is empty"),
        ('Action Input: {"city": "Oslo"}', "without an Action"),
        ('Action: {"name": get_weather}', "JSON cannot be read"),
        ('{"thought": "x", "action": "get_wea', "JSON cannot be read"),
        ('Thought: x\n<tool_call>{"name": "get_weather", "argum', "not valid JSON"),
        ('You say "Thought:" then "Final Answer:".', "neither"),
        ("5. **Final Answer**: comes last", "neither"),
    ],
)
def test_a_reply_without_a_step_gets_a_hint_of_one_line(text: str, fault: str) -> None:
    hint = hint_of(text)
    assert fault in hint
    assert '"Final Answer:"' in hint


def test_without_tools_plain_text_is_the_answer() -> None:
    for text in ("It is 12C.", "Notes\nAction: Bob\nFinal Answer: none", "Thought: It is 12C."):
        assert read_text(text, ()).final == text.removeprefix("Thought: ")
    assert read_text("Thought: x\n**Final Answer: a\nb**", ()).final == "a\nb"
    hint = read_text(f"Thought: x\n{WEATHER}", ()).hint
    assert hint is not None
    assert "No tool" in hint
    assert read_text(" ", ()).hint is not None


def test_a_native_call_in_the_text_dialect_is_kept_as_text() -> None:
    calls = (ToolCall("a", "get_weather", OSLO), ToolCall("a", "get_current_time", {}))
    message = AssistantMessage("I need it.", calls)
    parsed = TEXT.parse(message, TOOLS, new_id=lambda: "n1")
    assert parsed.calls == (ToolCall("n1", "get_weather", OSLO),)
    assert TEXT.assistant(message, parsed) == AssistantMessage(f"Thought: I need it.\n{WEATHER}")


def test_lone_surrogates_are_replaced() -> None:
    text = 'Thought: \ud83d\nAction: get_weather\nAction Input: {"city": "x\\ud83dy"}'
    assert call_of(text) == ("get_weather", {"city": "x\ufffdy"})
    parsed = read_text(text)
    assert (parsed.text + parsed.thought).encode()


def test_observations_and_nudges_are_user_messages() -> None:
    call = ToolCall("c", "get_weather", OSLO)
    assert TEXT.observation(call, "12C") == UserMessage((Text("Observation: 12C"),))
    labelled = "Observation [SUCCESS]: 12C"
    assert TEXT.observation(call, labelled) == UserMessage((Text(labelled),))
    assert TEXT.nudge("again") == UserMessage((Text("again"),))
    assert TEXT.tools(TOOLS) == ()


def test_stop_sequences_end_invented_observations_but_not_sentences() -> None:
    assert len(TEXT.stop) <= 4
    for invented in ("\nObservation: 12C", "\nObservation [SUCCESS]: 12C", "\n観察：12C"):
        assert any(stop in invented for stop in TEXT.stop)
    assert not any(stop in "My Observation: it rains" for stop in TEXT.stop)
