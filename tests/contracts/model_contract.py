"""What every model keeps, whoever answers; each adapter inherits these tests."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.content import Blob, Text
from agents.errors import (
    BrokenStream,
    ContextOverflow,
    EmptyReply,
    ModelRefused,
    ModelUnavailable,
    UnsupportedMedia,
)
from agents.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agents.models.base import CallKey, Delta, Model, ModelRequest, ToolSchema

WEATHER = ToolSchema(
    "get_weather",
    "The weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@dataclass(frozen=True)
class Answer:
    """What the model is made to answer once.

    Attributes:
        text: Visible text.
        calls: Name, arguments and id of tool calls.
        usage: Input, output and cached tokens, or None.
        error: unavailable, refused, context_overflow or broken_stream.
    """

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any], str]] = ()
    usage: tuple[int, int, int] | None = (11, 7, 3)
    error: str | None = None


@dataclass
class Asked:
    """A model under test and its pieces of text."""

    model: Model
    shown: list[Delta] = field(default_factory=list)

    async def ask(self, *messages: Any, call: int = 0, **options: Any) -> Any:
        given = messages or (SystemMessage("Be brief."), user("What is the weather in Paris?"))
        key = CallKey("agent", "subtask", call)
        return await self.model.complete(ModelRequest(given, key, **options), self.shown.append)


class ModelContract(ABC):
    """Inherit it, and say how to make a model that gives certain answers, one a call."""

    @abstractmethod
    def model(self, *answers: Answer) -> AbstractAsyncContextManager[Model]:
        """Return a context in which there is a model that takes text alone."""

    @pytest.fixture
    async def asked(self, request: pytest.FixtureRequest) -> AsyncIterator[Asked]:
        async with self.model(*request.param) as model:
            yield Asked(model)
            await model.aclose()
            await model.aclose()

    @pytest.mark.parametrize("asked", [[Answer("Sunny.")]], indirect=True)
    async def test_text_arrives_whole_and_in_pieces(self, asked: Asked) -> None:
        reply = await asked.ask()
        assert reply.message == AssistantMessage("Sunny.")
        assert "".join(d.text for d in asked.shown) == "Sunny."
        assert not any(d.discard for d in asked.shown)
        assert reply.finish_reason == "stop"
        assert reply.model == asked.model.name

    @pytest.mark.parametrize("asked", [[Answer("Sunny.")]], indirect=True)
    async def test_usage_counts_one_call_and_its_tokens(self, asked: Asked) -> None:
        usage = (await asked.ask()).usage
        assert (usage.llm_calls, usage.tool_calls) == (1, 0)
        assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (11, 7, 3)

    @pytest.mark.parametrize(
        "asked",
        [
            [
                Answer(calls=[("get_weather", {"city": "Paris"}, "x"), ("get_weather", {}, "y")]),
                Answer(calls=[("get_weather", {"city": "Oslo"}, "x")]),
                Answer("Sunny in both."),
            ]
        ],
        indirect=True,
    )
    async def test_tool_calls_have_unique_ids_and_can_be_answered(self, asked: Asked) -> None:
        first = await asked.ask(tools=(WEATHER,))
        assert first.finish_reason == "tool_calls"
        assert [(c.name, c.arguments) for c in first.message.tool_calls] == [
            ("get_weather", {"city": "Paris"}),
            ("get_weather", {}),
        ]
        history = [user("Weather?"), first.message, *answers(first.message)]
        second = await asked.ask(*history, call=1, tools=(WEATHER,))
        history += [second.message, *answers(second.message)]
        ids = [c.id for m in history if isinstance(m, AssistantMessage) for c in m.tool_calls]
        assert len(set(ids)) == len(ids) == 3
        assert (await asked.ask(*history, call=2)).message.text == "Sunny in both."

    @pytest.mark.parametrize(
        ("asked", "error"),
        [
            ([Answer(error="unavailable")], ModelUnavailable),
            ([Answer(error="refused")], ModelRefused),
            ([Answer(error="context_overflow")], ContextOverflow),
            ([Answer("Sunny.", error="broken_stream")], BrokenStream),
            ([Answer("")], EmptyReply),
        ],
        indirect=["asked"],
    )
    async def test_errors_are_ours_and_say_what_was_paid(
        self, asked: Asked, error: type[Exception]
    ) -> None:
        with pytest.raises(error) as caught:
            await asked.ask()
        paid = getattr(caught.value, "usage").llm_calls  # noqa: B009 - the class is a parameter
        assert paid == (1 if error in (BrokenStream, EmptyReply) else 0)

    @pytest.mark.parametrize("asked", [[Answer("Sunny.")]], indirect=True)
    async def test_media_it_does_not_take_fail_before_spending(self, asked: Asked) -> None:
        picture = UserMessage((Text("What is it?"), Blob("image/png", "0" * 64, "a.png")))
        with pytest.raises(UnsupportedMedia, match=r"image/png.*a\.png"):
            await asked.ask(picture)

    @pytest.mark.parametrize("asked", [[Answer("One.")] * 4], indirect=True)
    async def test_calls_may_run_at_the_same_time(self, asked: Asked) -> None:
        replies = await asyncio.gather(*(asked.ask(call=0) for _ in range(4)))
        assert [r.message.text for r in replies] == ["One."] * 4

    @pytest.mark.parametrize("asked", [[Answer("Sunny.")]], indirect=True)
    async def test_an_unpaired_history_is_still_answered(self, asked: Asked) -> None:
        lost = AssistantMessage(tool_calls=(ToolCall("lost", "get_weather", {}),))
        stray = ToolMessage("stray", "get_weather", "Observation [SUCCESS]: 12C")
        assert (await asked.ask(user("hi"), lost, user("and?"), stray)).message.text == "Sunny."


def answers(message: AssistantMessage) -> list[ToolMessage]:
    return [ToolMessage(c.id, c.name, "Observation [SUCCESS]: 12C") for c in message.tool_calls]
