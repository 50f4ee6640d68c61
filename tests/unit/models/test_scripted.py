"""The scripted model: found by key or pattern, filled from the conversation, recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.errors import EmptyReply, ModelRefused, ModelUnavailable
from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, user
from agents.models.base import CallKey, Delta, ModelReply, ModelRequest
from agents.models.recording import Recording
from agents.models.script import Conversation
from agents.models.scripted import ScriptedModel
from agents.usage import Usage

ROWS = ToolMessage("c1", "sql", 'Observation [SUCCESS]: {"rows": [{"sku": "A7", "qty": 3}]}')
PLAIN = user("Observation [ERROR]: no such table {{user.0}}")


def ask(
    *messages: Message, agent: str = "a", subtask: str = "s", call: int = 0, generation: int = 0
) -> ModelRequest:
    key = CallKey(agent, subtask, call, generation)
    return ModelRequest(messages or (SystemMessage("You help."), user("Count the stock.")), key)


async def said(model: ScriptedModel, request: ModelRequest | None = None) -> str:
    return (await model.complete(request or ask())).message.text


async def test_texts_of_a_list_answer_the_calls_of_any_subtask_by_number() -> None:
    model = ScriptedModel(["one", "two"])
    for subtask in ("x", "y", "x"):
        assert await said(model, ask(subtask=subtask, call=1)) == "two"
        assert await said(model, ask(subtask=subtask, call=0)) == "one"


async def test_replies_are_numbered_within_their_agent_and_subtask() -> None:
    model = ScriptedModel(
        [
            {"subtask": "x", "text": "x0"},
            {"subtask": "y", "text": "y0"},
            {"subtask": "x", "text": "x1"},
            {"agent": "b", "text": "b0"},
            {"match": "stock", "text": "any"},
        ]
    )
    assert await said(model, ask(subtask="x", call=1)) == "x1"
    assert await said(model, ask(subtask="y", call=0)) == "y0"
    assert await said(model, ask(agent="b", subtask="z")) == "b0"
    assert await said(model, ask(subtask="y", call=7)) == "any"


async def test_generation_and_pattern_choose() -> None:
    model = ScriptedModel(
        [{"generation": 1, "text": "again"}, {"match": r"(?i)\bCOUNT\b", "text": "counted"}]
    )
    assert await said(model, ask(generation=1)) == "again"
    assert await said(model) == "counted"


async def test_a_missing_reply_is_named_with_what_there_is() -> None:
    model = ScriptedModel([{"subtask": "x", "text": "x0"}], name="scripted/s.yaml")
    with pytest.raises(ModelRefused) as caught:
        await model.complete(ask(subtask="plan/b", call=2))
    for word in ("scripted/s.yaml", "'plan/b'", "call=2", "subtask='x' call=0", "Count the"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{observation.0.rows.0.sku}} has {{ observation.0.rows.0.qty }}", "A7 has 3"),
        ("{{observation.-2.rows}}", '[{"sku": "A7", "qty": 3}]'),
        ("{{user.0}} {{user.-1}}", "Count the stock. Count the stock."),
        ("{{observation.-1}}", "no such table {{user.0}}"),
        ("{{match.1}}/{{match.what}}", "table/table"),
        (
            "{{a}} {{plan/b}} {{observation}} {{input.x}}",
            "{{a}} {{plan/b}} {{observation}} {{input.x}}",
        ),
    ],
)
async def test_tokens_are_replaced_once_from_the_conversation(template: str, text: str) -> None:
    model = ScriptedModel([{"match": "no such (?P<what>[a-z]+)", "text": template}])
    request = ask(SystemMessage("s"), user("Count the stock."), ROWS, PLAIN)
    assert await said(model, request) == text


async def test_a_token_alone_keeps_its_type_in_arguments() -> None:
    call = {
        "name": "order",
        "arguments": {"qty": "{{observation.0.rows.0.qty}}", "n": ["{{user.0}}!"]},
    }
    model = ScriptedModel([{"tool_calls": [call]}])
    reply = await model.complete(ask(user("go"), ROWS))
    assert reply.message.tool_calls[0].arguments == {"qty": 3, "n": ["go!"]}


def test_json_is_found_behind_a_fence() -> None:
    fenced = ToolMessage("c", "t", 'Observation [SUCCESS]: <untrusted>\n{"a": 1}\n</untrusted>')
    assert Conversation((fenced,), None).fill("{{observation.0.a}}") == 1


@pytest.mark.parametrize(
    "token",
    ["{{observation.5}}", "{{observation.0.nope}}", "{{user.0.x}}", "{{match.1}}", "{{user.x}}"],
)
async def test_a_token_for_what_is_not_there_is_refused(token: str) -> None:
    with pytest.raises(ModelRefused, match="is not there"):
        await said(ScriptedModel([token]), ask(user("go"), ROWS))


async def test_tool_calls_get_ids_that_are_free() -> None:
    model = ScriptedModel([{"tool_calls": [{"name": "t", "id": "c1"}, {"name": "t"}]}])
    history = (user("x"), AssistantMessage(tool_calls=(ToolCall("c1", "t", {}),)), ROWS)
    ids = {c.id for c in (await model.complete(ask(*history))).message.tool_calls}
    assert len(ids) == 2
    assert "c1" not in ids


async def test_one_script_serves_both_dialects() -> None:
    replies = [{"text": "Look.", "tool_calls": [{"name": "sql", "arguments": {"q": "x"}}]}]
    native = await ScriptedModel(replies).complete(ask())
    assert native.message.tool_calls[0].arguments == {"q": "x"}
    text = await ScriptedModel(replies, dialect="text").complete(ask())
    assert text.message.text == 'Thought: Look.\nAction: sql\nAction Input: {"q": "x"}'
    assert text.message.tool_calls == ()
    answers = ["42", "Final Answer: 42", {"text": "42", "verbatim": True}]
    said_as_text = [await said(ScriptedModel([a], dialect="text")) for a in answers]
    told = "Thought: I now know the final answer.\nFinal Answer: 42"
    assert said_as_text == [told, "Final Answer: 42", "42"]
    with pytest.raises(ModelRefused, match="one action"):
        await said(ScriptedModel([{"tool_calls": [{"name": "a"}, {"name": "b"}]}], dialect="text"))


async def test_it_streams_in_pieces() -> None:
    shown: list[Delta] = []
    await ScriptedModel([{"text": "abcdefg", "pieces": 3}]).complete(ask(), shown.append)
    assert [d.text for d in shown] == ["abc", "def", "g"]


async def test_errors_carry_what_was_scripted() -> None:
    error = {"kind": "unavailable", "message": "busy", "status": 429, "retry_after_s": 2}
    with pytest.raises(ModelUnavailable, match="busy") as caught:
        await said(ScriptedModel([{"error": error}]))
    assert (caught.value.status, caught.value.retry_after_s) == (429, 2)
    with pytest.raises(EmptyReply):
        await said(ScriptedModel([""]))


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"txt": "x"}, "'txt'; did you mean 'text'"),
        ({"error": "boom"}, "kind is one of"),
        ({"error": {"kind": "refused", "retries": 1}}, "'retries'"),
        ({"tool_calls": [{"arguments": {}}]}, "needs a `name`"),
        ({"tool_calls": ["x"]}, "needs a mapping"),
        ({"match": "("}, "not a pattern"),
        (7, "a text or a mapping"),
    ],
)
def test_a_malformed_reply_is_refused_when_it_is_read(reply: Any, words: str) -> None:
    with pytest.raises(ValueError, match="reply 0") as caught:
        ScriptedModel([reply])
    assert words in str(caught.value)


async def test_a_function_may_answer() -> None:
    async def later(request: ModelRequest) -> Any:
        return {"text": f"call {request.key.call}"}

    assert await said(ScriptedModel(later), ask(call=3)) == "call 3"
    made = ModelReply(AssistantMessage("whole"))
    assert await ScriptedModel(lambda _: made).complete(ask()) == ModelReply(
        AssistantMessage("whole"), model="scripted/replies"
    )


def test_scripts_are_read_from_yaml_and_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "replies:\n  - one\n  - {text: two, usage: {input_tokens: 3}}\n"
    )
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n\n{"text": "two"}\n')
    for name in ("a.yaml", "b.jsonl"):
        assert ScriptedModel.load(tmp_path / name).name.endswith(name)


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.yaml", "{"), ("a.yaml", "x: 1"), ("a.yaml", "7"), ("a.jsonl", "{"), ("none.yaml", None)],
)
def test_a_script_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: Any) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=name):
        ScriptedModel.load(tmp_path / name)


async def test_a_recording_replays_the_same_replies(tmp_path: Path) -> None:
    path = tmp_path / "new" / "r.jsonl"
    usage = {"input_tokens": 5, "output_tokens": None, "cost_usd": 0.5}
    original = ScriptedModel(
        [
            {"text": "{{user.0}}", "tool_calls": [{"name": "t", "arguments": {"x": "ü"}}]},
            {"text": "done", "usage": usage, "reasoning": "hm"},
        ]
    )
    recorded = Recording(original, path)
    requests = [ask(user("{{match.1}}")), ask(user("{{match.1}}"), call=1)]
    first = [await recorded.complete(r) for r in requests]
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["call"] for line in lines] == [0, 1]
    replayed = ScriptedModel(lines)
    assert [await replayed.complete(r) for r in requests] == first
    assert first[1].usage == Usage(1, 0, 5, None, 0, 0.5)
    with pytest.raises(ModelRefused):
        await replayed.complete(ask(subtask="other"))
    await recorded.aclose()
