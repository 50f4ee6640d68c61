"""The packaged prompts, their tokens, and a folder that overrides them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from agents.assignment import SubtaskKind
from agents.dialects.base import Dialect, Language, PromptParts
from agents.dialects.prompts import detect_language, fill, load_prompts
from agents.dialects.text import TextDialect
from agents.tools import Tool
from tests.unit.dialects.toolset import NATIVE, TEXT, TOOLS, get_weather, read_text, web_search

PARTS = PromptParts("scout", "Be brief.", tools=TOOLS, team={"writer": "Writes."})


@pytest.mark.parametrize("dialect", [NATIVE, TEXT], ids=["native", "text"])
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("kind", ["plan", "act", "synthesize"])
@pytest.mark.parametrize("tools", [(), TOOLS])
def test_every_prompt_is_filled_and_leaves_no_token(
    dialect: Dialect, language: Language, kind: SubtaskKind, tools: tuple[Tool, ...]
) -> None:
    parts = replace(PARTS, language=language, tools=tools, output_schema={"type": "object"})
    parts = replace(parts, kind=kind)
    prompt = dialect.system(parts)
    assert re.findall(r"(?<!\{)\{[a-z_]+\}(?!\})", prompt) == []
    assert "\n\n\n" not in prompt
    for expected in ("scout", "Be brief.", "- writer: Writes.", '{"type": "object"}'):
        assert prompt.count(expected) == 1
    assert (detect_language(prompt) == language) or (language == "ja" and bool(tools))
    assert ("get_weather" in prompt) == (dialect is TEXT and bool(tools))
    assert ('"subtasks"' in prompt) == (kind == "plan")


def test_the_prompt_of_each_kind_differs() -> None:
    for language in ("en", "ja"):
        parts = replace(PARTS, language=language)
        kinds = [TEXT.system(replace(parts, kind=kind)) for kind in ("plan", "act", "synthesize")]
        assert len(set(kinds)) == 3


def test_what_is_empty_leaves_no_gap() -> None:
    prompt = NATIVE.system(PromptParts("scout", tools=TOOLS, parallel=False))
    assert prompt.startswith("You are scout.\n\nUse the tools")
    assert "several tools" not in prompt
    assert "several tools" in NATIVE.system(PromptParts("scout", tools=TOOLS))


def test_the_example_of_the_text_prompt_is_a_call_that_parses() -> None:
    prompt = TEXT.system(replace(PARTS, tools=(web_search,)))
    example = prompt[prompt.index("Thought: I need") : prompt.index("When you know")]
    (call,) = read_text(example).calls
    assert (call.name, call.error, list(call.arguments)) == ("web_search", None, ["query"])
    assert "max_results (integer, optional)" in prompt


def test_the_example_of_the_planner_is_a_plan_for_the_team() -> None:
    prompt = NATIVE.system(PromptParts("lead", kind="plan", team={"a": "A.", "b": "B."}))
    line = next(line for line in prompt.splitlines() if line.startswith('{"subtasks"'))
    first, second = json.loads(line)["subtasks"]
    assert (first["agent"], second["agent"]) == ("a", "b")
    assert second["after"] == [first["id"]]
    assert f"{{{{{first['id']}}}}}" in second["task"]


def test_values_are_never_scanned_again() -> None:
    evil = "{tools} {agent} {{first}} $1 \\1"
    assert fill("{a} and {b} and {c} {{a}}", {"a": evil, "b": "{a}"}) == (
        f"{evil} and {{a}} and {{c}} {{{{a}}}}"
    )
    assert evil in TEXT.system(replace(PARTS, instructions=evil))
    assert evil in TEXT.system(replace(PARTS, kind="plan", team={"a": evil}))


def test_every_template_is_packaged_in_both_languages() -> None:
    names = {p.name for p in (resources.files("agents") / "prompts").iterdir()}
    stems = set(load_prompts().templates)
    assert names == {f"{stem}.md" for stem in stems}
    assert {s.removesuffix(".en") for s in stems if s.endswith(".en")} == {
        s.removesuffix(".ja") for s in stems if s.endswith(".ja")
    }


def test_a_folder_overrides_single_templates(tmp_path: Path) -> None:
    (tmp_path / "text.en.md").write_text("I am {agent}: {tool_names}", encoding="utf-8")
    dialect = TextDialect(load_prompts(tmp_path))
    assert dialect.system(replace(PARTS, tools=(get_weather,))) == "I am scout: get_weather"
    assert dialect.system(replace(PARTS, language="ja")) == TEXT.system(
        replace(PARTS, language="ja")
    )


def test_a_wrong_folder_is_refused_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere' is not a folder"):
        load_prompts(tmp_path / "nowhere")
    (tmp_path / "txt.en.md").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match=r"txt\.en\.md' is no template; the names are: .*text\.ja"):
        load_prompts(tmp_path)
    (tmp_path / "txt.en.md").rename(tmp_path / "text.en.md").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="cannot be read as UTF-8"):
        load_prompts(tmp_path)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What time is it?", "en"),
        ("", "en"),
        ("12 * 3", "en"),
        ("今何時？", "ja"),
        ("asyncio.TaskGroup を検索して説明して", "ja"),
        ("ｶﾀｶﾅ", "ja"),
        ("What does the word 猫 mean?", "en"),
        ("東京の人口", "ja"),
    ],
)
def test_the_language_is_that_of_most_of_the_text(text: str, language: str) -> None:
    assert detect_language(text) == language
