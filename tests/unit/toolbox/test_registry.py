"""The registry: what a pipeline file may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import ToolDefinitionError
from agents.toolbox.registry import BUILT_IN, build_tools


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for folder in ("data", "docs", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data" / "a.csv").write_text("x\n1\n")
    (tmp_path / "data" / "b.csv").write_text("y\n2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options", "made"),
    [
        ("calculator", {}, ["calculator"]),
        ("clock", {}, ["get_current_time", "get_current_date"]),
        ("files", {"root": "data"}, ["list_files", "read_file", "grep_files"]),
        ("sql", {"path": "data/a.csv"}, ["sql"]),
        ("sql", {"path": ["data/a.csv", "data/b.csv"], "name": "shop"}, ["shop"]),
        ("search", {"root": "docs"}, ["search_documents"]),
        ("write_file", {"root": "out"}, ["write_file"]),
    ],
)
def test_each_built_in_tool_is_made_relative_to_the_pipeline(
    base: Path, name: str, options: dict[str, Any], made: list[str]
) -> None:
    tools = build_tools(name, options, base)
    assert [t.name for t in tools] == made
    assert all(t.description for t in tools)
    if name == "sql":
        assert ("b(y INTEGER)" in tools[0].description) == isinstance(options["path"], list)


def test_every_built_in_tool_is_covered_here() -> None:
    assert sorted(BUILT_IN) == ["calculator", "clock", "files", "search", "sql", "write_file"]


def test_an_absolute_path_is_taken_as_it_is(base: Path) -> None:
    assert build_tools("files", {"root": str(base / "data")}, Path("/nowhere"))


def test_limits_can_be_set_on_any_tool(base: Path) -> None:
    options = {"root": "data", "timeout_s": "5", "max_chars": 100, "reads": "trusted"}
    for made in build_tools("files", options, base):
        assert (made.timeout_s, made.max_chars, made.reads) == (5.0, 100, "trusted")
    (asked,) = build_tools("calculator", {"needs_approval": True}, base)
    assert asked.needs_approval
    (free,) = build_tools("write_file", {"root": "out", "needs_approval": False}, base)
    assert (free.needs_approval, free.effect) == (False, "guarded")


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("calculater", {}, r"no built-in tool 'calculater' \(did you mean 'calculator'\?\)"),
        ("files", {}, "tool 'files': missing argument 'root'"),
        ("files", {"rot": "data"}, r"unknown argument 'rot' \(did you mean 'root'\?\)"),
        ("files", {"root": "nowhere"}, "there is no folder '.*/nowhere'"),
        ("files", {"root": "data", "reads": "maybe"}, "'trusted' or 'untrusted'"),
        ("sql", {"path": "data/c.csv"}, "there is no file '.*/data/c.csv'"),
        ("sql", {"path": "data/a.csv", "max_rows": "many"}, "argument 'max_rows'"),
        ("sql", {"path": "data/a.csv", "name": "a b"}, "tool 'a b': a name is"),
        ("calculator", {"root": "x"}, "unknown argument 'root'; valid arguments: none"),
        ("calculator", {"timeout_s": "soon"}, "tool 'calculator': .*valid number"),
    ],
)
def test_what_is_wrong_is_named(base: Path, name: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ToolDefinitionError, match=told):
        build_tools(name, options, base)
