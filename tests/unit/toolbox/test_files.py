"""The file tools against paths, links, files and patterns that mean harm."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agents.errors import ToolDefinitionError, ToolDenied
from agents.tool_decorator import FunctionTool
from agents.toolbox import files as files_module
from agents.toolbox.files import files, write_file
from agents.toolbox.root import Root
from agents.tools import Tool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a secret beside it and links of every kind within."""
    (tmp_path / "secret.txt").write_text("swordfish")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "deep.txt").write_text("swordfish")
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "docs" / "在庫.md").write_bytes("\ufeff在庫は十個\nStock: TEN\n".encode())
    (root / ".env").write_text("KEY=1")
    (root / "link.txt").symlink_to("../secret.txt")
    (root / "absolute.txt").symlink_to(tmp_path / "secret.txt")
    (root / "way").symlink_to("../outside")
    (root / "loop").symlink_to("loop")
    (root / "inner.txt").symlink_to("docs/在庫.md")
    return root


def tools(root: Path, **options: Any) -> dict[str, Tool]:
    return {t.name: t for t in (*files(root, **options), *write_file(root))}


def call(made: Tool, **arguments: Any) -> Any:
    assert isinstance(made, FunctionTool)
    return made(**made.validate(arguments))


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


ESCAPES = [
    "../secret.txt",
    "docs/../../secret.txt",
    "/etc/passwd",
    "~/x",
    "link.txt",
    "absolute.txt",
    "way/deep.txt",
    "way/new.txt",
    "loop",
    "a.txt\0.md",
    "x" * 2_000,
    "x" * 300,
    "a.txt/x",
    ".env",
    "docs/../.env",
    "docs/.git/hooks/pre-commit",
]


@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_no_path_leads_out_of_the_folder(root: Path, name: str, path: str) -> None:
    arguments = {"path": path} | ({"content": "x"} if name == "write_file" else {})
    with pytest.raises(ToolDenied) as denied:
        call(tools(root)[name], **arguments)
    assert str(root.parent) not in str(denied.value)
    assert (root.parent / "secret.txt").read_text() == "swordfish"
    assert names(root / "docs") == ["在庫.md"]
    assert names(root.parent / "outside") == ["deep.txt"]


def test_an_absolute_path_is_refused_even_within_the_folder(root: Path) -> None:
    with pytest.raises(ToolDenied, match="is not relative"):
        call(tools(root)["read_file"], path=str(root / "a.txt"))


def test_a_link_put_in_place_after_the_check_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worst moment: the path was resolved while it was still a plain folder or file.
    folder = Root(root, max_bytes=100)
    for parts in (("way", "deep.txt"), ("link.txt",)):
        monkeypatch.setattr(folder, "parts", lambda name, parts=parts: parts)
        with pytest.raises(ToolDenied, match="cannot be opened"):
            folder.read("x")
    monkeypatch.setattr(folder, "parts", lambda name: ("way", "new.txt"))
    with pytest.raises(ToolDenied, match="cannot be written"):
        folder.write("x", "y")
    assert names(root.parent / "outside") == ["deep.txt"]


def test_a_root_that_is_itself_a_link_works(root: Path) -> None:
    (root.parent / "alias").symlink_to("root")
    made = tools(root.parent / "alias")
    assert call(made["read_file"], path="a.txt") == "one\ntwo\nthree"
    assert call(made["read_file"], path="inner.txt") == "在庫は十個\nStock: TEN"


def test_a_folder_that_is_not_there_is_a_definition_error(tmp_path: Path) -> None:
    with pytest.raises(ToolDefinitionError, match="there is no folder"):
        files(tmp_path / "nowhere")


def test_files_are_listed_without_hidden_ones_and_without_links_outwards(root: Path) -> None:
    listed = call(tools(root)["list_files"])
    assert listed == {
        "files": [
            {"path": "a.txt", "bytes": 14},
            {"path": "inner.txt", "bytes": 30},
            {"path": "docs/在庫.md", "bytes": 30},
        ],
        "truncated": False,
    }
    for glob in ("*.md", "docs/*", "**/*.md", "./docs/*.md"):
        found = call(tools(root)["list_files"], glob=glob)
        assert [f["path"] for f in found["files"]] == ["docs/在庫.md"]
    inside = call(tools(root)["list_files"], path="docs")
    assert [f["path"] for f in inside["files"]] == ["docs/在庫.md"]
    with pytest.raises(ToolDenied):
        call(tools(root)["list_files"], path="way")


def test_part_of_a_file_is_read_with_a_note_of_which(root: Path) -> None:
    read = tools(root)["read_file"]
    assert call(read, path="a.txt", start_line=2, max_lines=1) == (
        "[a.txt: lines 2 to 2 of 3]\ntwo"
    )
    assert call(read, path="a.txt", start_line=9) == "[a.txt has 3 lines; nothing from line 9]"
    with pytest.raises(ValueError, match="begin at 1"):
        call(read, path="a.txt", start_line=0)


def test_what_is_no_text_file_is_refused(root: Path) -> None:
    read = tools(root, max_bytes=100)["read_file"]
    (root / "big.txt").write_text("x" * 101)
    (root / "image.bin").write_bytes(b"\x89PNG\0\0")
    (root / "sjis.txt").write_bytes("在庫".encode("cp932"))
    os.mkfifo(root / "pipe")
    for path, told in (
        ("big.txt", "more than 100 bytes"),
        ("image.bin", "is binary"),
        ("sjis.txt", "not UTF-8"),
        ("b.txt", r"there is no file 'b.txt' \(did you mean .*'a.txt'"),
    ):
        with pytest.raises(ValueError, match=told):
            call(read, path=path)
    for path in ("pipe", "docs", "."):
        with pytest.raises(ToolDenied, match="is not a file"):
            call(read, path=path)


def test_lines_are_found_as_text_or_by_pattern(root: Path) -> None:
    grep = tools(root)["grep_files"]
    assert call(grep, pattern="ten") == {
        "matches": ["inner.txt:2: Stock: TEN", "docs/在庫.md:2: Stock: TEN"],
        "files_searched": 3,
    }
    found = call(grep, pattern="^t(wo|hree)$", glob="*.txt", regex=True)
    assert found["matches"] == ["a.txt:2: two", "a.txt:3: three"]
    assert (call(grep, pattern="t(wo", glob="a.txt"))["matches"] == []
    assert (call(grep, pattern="swordfish"))["matches"] == []
    assert (call(grep, pattern="在庫", regex=True, glob="docs/*"))["matches"] == [
        "docs/在庫.md:1: 在庫は十個"
    ]


def test_bad_patterns_are_refused_and_hostile_ones_are_stopped(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "REGEX_TIMEOUT_S", 0.3)
    (root / "a.txt").write_text("a" * 40 + "!")
    grep = tools(root)["grep_files"]
    for pattern, told in (
        ("(a+)+$", "took longer than 0.3 s: avoid repeats within repeats"),
        ("t(wo", "is no regular expression"),
        ("", "1 to 300 characters"),
        ("x" * 301, "1 to 300 characters"),
    ):
        with pytest.raises(ValueError, match=told):
            call(grep, pattern=pattern, regex=True)


def test_a_long_search_is_cut_and_says_what_was_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "MOST_SEARCHED_BYTES", 2_000)
    (root / "a.txt").write_text("hit " + "x" * 900 + "\n")
    (root / "b.txt").write_text("hit\n" * 200)
    (root / "docs" / "bad.md").write_bytes(b"hit\0")
    (root / "docs" / "big.md").write_text("hit " * 900)
    found = call(tools(root)["grep_files"], pattern="hit")
    assert len(found["matches"]) == 100
    assert len(found["matches"][0]) < 420
    assert "only the first 100" in found["truncated"]
    assert found["skipped"] == [
        "'docs/bad.md' is binary: only text can be read",
        "docs/big.md and what follows: narrow the glob",
    ]


def test_writing_replaces_in_one_step_and_leaves_nothing_behind(root: Path) -> None:
    write = tools(root)["write_file"]
    assert (write.effect, write.needs_approval, write.destination_args) == (
        "guarded",
        True,
        ("path",),
    )
    assert call(write, path="new/deep/在庫.txt", content="十") == (
        "wrote 3 bytes to new/deep/在庫.txt"
    )
    before = (root / "a.txt").stat().st_ino
    call(write, path="a.txt", content="other")
    assert (root / "a.txt").read_text() == "other"
    assert (root / "a.txt").stat().st_ino != before
    call(write, path="inner.txt", content="through the link")
    assert (root / "docs" / "在庫.md").read_text() == "through the link"
    for path in ("docs", ".", "docs/", ""):
        with pytest.raises(ToolDenied, match=r"is a folder|Is a directory"):
            call(write, path=path, content="x")
    assert names(root / "new" / "deep") == ["在庫.txt"]
    assert names(root / "docs") == ["在庫.md"]
