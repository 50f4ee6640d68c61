"""Memory: append-only, cut once to 70 %, calls never parted from their results."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.memory import Memory, estimate_tokens, shorten
from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, user
from tests.unit.agents.kit import check_pairs

HEAD = (SystemMessage("You are an agent."), user("Find out."))


def turn(n: int, calls: int, chars: int) -> list[Message]:
    ids = [f"c{n}_{i}" for i in range(calls)]
    asked = AssistantMessage("", tuple(ToolCall(i, "big", {"n": chars}) for i in ids))
    return [asked, *(ToolMessage(i, "big", "x" * chars) for i in ids)]


@settings(deadline=None)
@given(
    turns=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4_000), st.integers(0, 3)), max_size=20
    ),
    limit=st.integers(200, 4_000),
    overflow=st.booleans(),
)
def test_a_cut_keeps_the_head_and_the_pairing(
    turns: list[tuple[int, int, int]], limit: int, overflow: bool
) -> None:
    memory = Memory(HEAD, limit=limit)
    for n, (calls, chars, importance) in enumerate(turns):
        memory.add(*(turn(n, calls, chars) if calls else [user("hint")]), importance=importance)
        memory.fit()
        check_pairs(memory.messages())
    if overflow:
        memory.reduce()
    check_pairs(memory.messages())
    assert memory.messages()[:2] == HEAD


def test_it_only_grows_until_over_the_limit_and_is_then_cut_once_to_70_percent() -> None:
    memory = Memory(HEAD, limit=5_000)
    cuts, before = 0, memory.messages()
    for n in range(30):
        memory.add(*turn(n, 1, 1_000), importance=2)
        memory.fit()
        now = memory.messages()
        if now[: len(before)] != before:
            cuts += 1
            assert estimate_tokens(now) <= 3_500
        before = now
    assert 1 < cuts < 6


def test_what_matters_stays_longest() -> None:
    memory = Memory(HEAD, limit=2_000, keep_last=1)
    memory.add(*turn(0, 1, 1_500), importance=1)
    memory.mark_important()
    for n in range(1, 12):
        memory.add(*turn(n, 1, 1_500), importance=1)
        memory.fit()
    ids = [m.call_id for m in memory.messages() if isinstance(m, ToolMessage)]
    assert ids[0] == "c0_0"
    assert ids[-1] == "c11_0"
    assert "left out" in str(memory.messages()[2])


def test_one_huge_result_is_shortened_with_a_note() -> None:
    memory = Memory(HEAD, limit=2_000)
    memory.add(*turn(0, 1, 60_000), importance=2)
    memory.fit()
    assert memory.tokens() <= 1_400
    assert "characters cut" in str(memory.messages()[-1])


def test_shortened_text_keeps_its_beginning_and_its_end() -> None:
    text = shorten("a" * 500 + "z" * 500, 100)
    assert text.startswith("a" * 75)
    assert text.endswith("z" * 25)
    assert "900 characters cut" in text
    assert shorten("short", 100) == "short"
