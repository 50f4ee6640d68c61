"""What no file may say, and how prose is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.prose import fenced_blocks, prose_faults, tree
from tests.house.source import ROOT, lines_with, text_files

# Put together here, so that this file may say what no file may say.
UNFINISHED = [
    "TO" + "DO",
    "FIX" + "ME",
    "XX" + "X:",
    "pragma: no " + "cover",
    "mark." + "skip",
    "mark." + "xfail",
]
REGISTRIES = [
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".",
    "proxy.golang" + ".org",
    "crates" + ".io",
    "repo1.maven" + ".org",
    "rubygems" + ".org",
    "anaconda" + ".org",
]
WORKSHOP = [
    "/wo" + "rk/",
    *(name + ".md" for name in ("DESIGN", "RULES", "SHAPES", "SERVICES", "EXAMPLES")),
]


def found(*words: str) -> list[str]:
    return [f"{path}:{n}" for path, text in text_files() for n in lines_with(text, *words)]


def test_nothing_is_left_unfinished_or_switched_off() -> None:
    assert found(*UNFINISHED) == []


def test_no_file_names_a_package_registry() -> None:
    assert found(*REGISTRIES) == []


def test_no_file_knows_this_machine() -> None:
    home = str(Path.home())
    assert found(str(ROOT), *([f"{home}/"] if home != "/" else [])) == []


def test_no_file_speaks_of_papers_that_are_not_in_the_repository() -> None:
    assert found(*WORKSHOP) == []


def test_lines_end_plainly_and_files_end_with_a_newline() -> None:
    wrong = [
        str(path)
        for path, text in text_files()
        if text and (not text.endswith("\n") or "\r\n" in text or text.endswith("\n\n"))
    ]
    assert wrong == []


def test_markdown_has_one_sentence_a_line() -> None:
    faults = [
        f"{path}:{n}: {fault}"
        for path, text in text_files()
        if path.suffix == ".md" and path.parts[:2] != ("agents", "prompts")  # set for models
        for n, fault in prose_faults(text)
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("markdown", "faults"),
    [
        ("One sentence. And another.\n", [(1, "two sentences")]),
        ("It begins here\nand ends here.\n", [(1, "the sentence goes on in the next line")]),
        ("- An item. With two.\n", [(1, "two sentences")]),
        ("1. An item\n2. another\n", []),
        ("一文です。\n次の文です。\n", []),
        ("一文です。次の文です。\n", [(1, "two sentences")]),
        ("Take e.g. Kafka, version 3.2.\nThen go on.\n", []),
        ("Call `a. B` or [a. B](x.md).\n", [(1, "two sentences")]),
        ("```\nOne. Two.\n```\n| a. B | c |\n# A title. Or two\n", []),
        ('Does it end? "Yes." It does.\n', [(1, "two sentences")]),
    ],
)
def test_the_sentence_rule_sees_what_it_should(
    markdown: str, faults: list[tuple[int, str]]
) -> None:
    assert prose_faults(markdown) == faults


@pytest.mark.parametrize(
    "drawn",
    [
        "cadenza/\n├── cadenza.py # front\n├── bus/  carries\n│   └── memory.py m\n└── docs/ words",
        "cadenza/   root\n  cadenza.py  front\n  bus/  carries\n\n    memory.py m\n  docs/ words",
    ],
)
def test_a_drawn_tree_is_read_however_it_is_drawn(drawn: str) -> None:
    entries = tree(f"# Title\n```sh\nmake\n```\n```text\n{drawn}\n```\n", "cadenza/")
    assert [(e.path, e.folder, e.about) for e in entries] == [
        ("cadenza.py", False, "front"),
        ("bus", True, "carries"),
        ("bus/memory.py", False, "m"),
        ("docs", True, "words"),
    ]


def test_a_missing_tree_is_told() -> None:
    with pytest.raises(ValueError, match="cadenza/"):
        tree("```\nother/\n```\n", "cadenza/")


def test_a_fence_within_a_longer_fence_does_not_end_it() -> None:
    assert fenced_blocks("````\n```\na\n```\n````\n") == [["```", "a", "```"]]
