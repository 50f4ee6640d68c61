"""The search tool: ranking, Japanese, stemming, and queries that mean harm."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from agents.tool_decorator import FunctionTool
from agents.toolbox.search import search, search_texts
from agents.tools import Tool

DOCUMENTS = {
    "returns": "Returning goods: customers may return an article within thirty days.",
    "shipping": "Shipping takes three days. " + "Goods leave the warehouse daily. " * 30,
    "在庫": "東京の倉庫には、ねじの在庫が十個あります。",
    "大阪": "大阪の倉庫は休みです。京都から送ります。ＡＢＣ－１２",
}


def find(made: Tool, query: str, **options: Any) -> list[dict[str, Any]]:
    assert isinstance(made, FunctionTool)
    found: list[dict[str, Any]] = made(**made.validate({"query": query, **options}))
    return found


def ids(made: Tool, query: str, **options: Any) -> list[str]:
    return [hit["id"] for hit in find(made, query, **options)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("returns of articles", ["returns"]),
        ("WAREHOUSES", ["shipping"]),
        ("goods", ["returns", "shipping"]),
        ("東京", ["在庫"]),
        ("京", ["大阪", "在庫"]),
        ("休", ["大阪"]),
        ("ABC", ["大阪"]),
        ("エベレスト", []),
    ],
)
def test_the_fitting_documents_are_found(query: str, expected: list[str]) -> None:
    assert sorted(ids(search_texts(DOCUMENTS), query)) == sorted(expected)


def test_a_question_in_japanese_finds_the_fitting_document_first() -> None:
    assert ids(search_texts(DOCUMENTS), "ねじの在庫はありますか")[0] == "在庫"
    assert ids(search_texts(DOCUMENTS), "どこが休みですか")[0] == "大阪"


def test_the_better_document_comes_first_with_score_and_snippet() -> None:
    hits = find(search_texts(DOCUMENTS), "goods return")
    assert [h["id"] for h in hits] == ["returns", "shipping"]
    assert hits[0]["score"] > hits[1]["score"] > 0
    assert ids(search_texts(DOCUMENTS), "goods return", limit=1) == ["returns"]
    text = "x " * 500 + "here lies the 答え of all questions " + "y " * 500
    (hit,) = find(search_texts({"d": text}), "答え")
    assert "答え of all" in hit["snippet"]
    assert hit["snippet"].startswith("…")
    assert len(hit["snippet"]) < 260


@pytest.mark.parametrize(
    "query",
    ['" OR 1', "goods AND (", "NEAR(goods)", "terms:goods", "goods*", "'; DROP TABLE texts;"],
)
def test_operators_in_a_query_are_only_words(query: str) -> None:
    made = search_texts(DOCUMENTS)
    find(made, query)
    assert "returns" in ids(made, "goods")


def test_a_query_without_words_is_an_error() -> None:
    for query in ("", "!?", "。"):
        with pytest.raises(ValueError, match="holds no word"):
            find(search_texts(DOCUMENTS), query)


def test_only_the_first_words_of_an_endless_query_count() -> None:
    numbers = " ".join(map(str, range(100, 5_000)))
    assert ids(search_texts(DOCUMENTS), f"{numbers} goods") == []
    assert len(ids(search_texts(DOCUMENTS), f"goods {numbers}")) == 2


def test_a_folder_is_searched_and_looked_at_again_when_it_changes(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    (root / "faq").mkdir(parents=True)
    (root / "faq" / "a.md").write_text("goods")
    (root / "b.TXT").write_text("goods goods")
    (root / "c.py").write_text("goods")
    (root / "bad.txt").write_bytes(b"goods\0")
    (root / "big.txt").write_text("goods" * 100)
    (tmp_path / "secret.txt").write_text("goods")
    (root / "link.txt").symlink_to("../secret.txt")
    (made,) = search(root, max_bytes=100)
    assert made.reads == "untrusted"
    assert sorted(ids(made, "goods")) == ["b.TXT", "faq/a.md"]
    assert ids(search(root, glob="faq/*")[0], "goods") == ["faq/a.md"]
    (root / "b.TXT").unlink()
    (root / "faq" / "a.md").write_text("bads!")
    (root / "new.md").write_text("more goods")
    assert ids(made, "goods") == ["new.md"]


def test_searches_from_several_threads_agree(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i:02}.md").write_text(f"goods {i}")
    (made,) = search(tmp_path)
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(ids(made, "goods", limit=20)))
        for _ in range(min(8, 2 * (os.cpu_count() or 1)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == len(threads)
    assert {tuple(f) for f in found} == {tuple(f"{i:02}.md" for i in range(20))}
