"""The search tool: text documents ranked by BM25, Japanese and Chinese included.

SQLite's FTS5 ranks. Its own tokenizers either keep a run of Japanese as one word or, by trigrams,
miss words of two characters, which most are; so such runs are indexed as overlapping pairs.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
import weakref
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from agents.tool_decorator import tool
from agents.toolbox.root import Root
from agents.tools import Tool

MOST_DOCUMENTS = 5_000
MOST_TERMS = 64
SNIPPET_CHARS = 240

# Han, kana, hangul, and the marks of repetition and length.
_WIDE = re.compile(
    "[\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]+"
)
_TERM = re.compile(rf"{_WIDE.pattern}|(?:(?!{_WIDE.pattern})\w)+")

Stamp = tuple[tuple[str, int, int], ...]


def search(
    root: Path,
    *,
    name: str = "search_documents",
    glob: str = "*",
    max_bytes: int = 2_000_000,
    reads: Literal["trusted", "untrusted"] = "untrusted",
) -> tuple[Tool, ...]:
    """Return a tool that searches the .txt and .md files beneath a folder.

    The index is made at the first search, and again when a file has changed.

    Args:
        root: The folder. Links that lead out of it are left out.
        name: Tool name, for pipelines with several folders.
        glob: Which of the files, for example ``faq/*``.
        max_bytes: Files above this size are left out.
        reads: ``trusted`` when nobody else writes in the folder.

    Raises:
        ToolDefinitionError: There is no such folder.
    """
    folder = Root(root, max_bytes=max_bytes)

    def paths() -> list[str]:
        found = (
            path
            for path, size in folder.walk(glob)
            if path.lower().endswith((".txt", ".md")) and size <= max_bytes
        )
        return list(islice(found, MOST_DOCUMENTS))

    def stamp() -> Stamp:
        states = ((path, (folder.path / path).stat()) for path in paths())
        return tuple((path, state.st_mtime_ns, state.st_size) for path, state in states)

    def load(path: str) -> str:
        try:
            return folder.read(path)
        except ValueError:  # binary, or not UTF-8: there is nothing to find in it
            return ""

    return (_search_tool(_Index(stamp, load), name, reads),)


def search_texts(
    documents: Mapping[str, str],
    *,
    name: str = "search_documents",
    reads: Literal["trusted", "untrusted"] = "trusted",
) -> Tool:
    """Return a tool that searches the given documents.

    Args:
        documents: Id to text.
        name: Tool name.
        reads: Whether the texts come from outside.
    """
    kept = dict(documents)
    stamp = tuple((key, 0, len(text)) for key, text in kept.items())
    return _search_tool(_Index(lambda: stamp, kept.__getitem__), name, reads)


def _search_tool(index: _Index, name: str, reads: Literal["trusted", "untrusted"]) -> Tool:
    @tool(name=name, reads=reads)
    def search_documents(query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Find the documents that fit some words best; any of the words counts.

        Args:
            query: Words to look for.
            limit: How many documents, at most 20.
        """
        return index.find(query, max(1, min(limit, 20)))

    return search_documents


class _Index:
    """A full-text index in memory, rebuilt when its documents' stamp changes."""

    def __init__(self, stamp: Callable[[], Stamp], load: Callable[[str], str]) -> None:
        self._stamp = stamp
        self._load = load
        self._built: Stamp | None = None
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._connection.close)

    def find(self, query: str, limit: int) -> list[dict[str, Any]]:
        terms = list(dict.fromkeys(_terms(query, for_query=True)))[:MOST_TERMS]
        if not terms:
            raise ValueError("the query holds no word: give words to look for")
        with self._lock:
            self._refresh()
            rows = self._connection.execute(
                "SELECT id, body, -bm25(documents) FROM documents JOIN texts "
                "ON texts.rowid = documents.rowid WHERE documents MATCH ? "
                "ORDER BY bm25(documents), id LIMIT ?",
                (" OR ".join(terms), limit),
            ).fetchall()
        words = [term.strip('"*') for term in terms]
        return [
            {"id": key, "score": float(f"{score:.3g}"), "snippet": _snippet(body, words)}
            for key, body, score in rows
        ]

    def _refresh(self) -> None:
        stamp = self._stamp()
        if stamp == self._built:
            return
        self._built = None
        texts = [(key, self._load(key)) for key, *_ in stamp]
        with self._connection as connection:
            connection.execute("DROP TABLE IF EXISTS texts")
            connection.execute("DROP TABLE IF EXISTS documents")
            connection.execute("CREATE TABLE texts (id TEXT, body TEXT)")
            connection.execute(
                "CREATE VIRTUAL TABLE documents USING fts5 "
                "(terms, content='', tokenize='porter unicode61')"
            )
            for number, (key, text) in enumerate(texts, 1):
                connection.execute(
                    "INSERT INTO texts (rowid, id, body) VALUES (?, ?, ?)", (number, key, text)
                )
                connection.execute(
                    "INSERT INTO documents (rowid, terms) VALUES (?, ?)",
                    (number, " ".join(_terms(f"{key} {text}", for_query=False))),
                )
        self._built = stamp


def _terms(text: str, *, for_query: bool) -> Iterable[str]:
    """Yield words as they are indexed; for a query, each quoted, so that none is an operator."""
    for word in _TERM.findall(unicodedata.normalize("NFKC", text)):
        if not _WIDE.match(word):
            yield f'"{word}"' if for_query else word
        elif len(word) == 1:
            yield f'"{word}"*' if for_query else word
        else:
            for i in range(len(word) - 1):
                yield f'"{word[i : i + 2]}"' if for_query else word[i : i + 2]
            if not for_query:
                yield word[-1]  # so that a query of this one character finds it


def _snippet(text: str, words: list[str]) -> str:
    """Return the part of the text that holds the first of the words, on one line."""
    plain = unicodedata.normalize("NFKC", text)
    lower = plain.lower()
    # The index stems English words; their first letters are found in the text again.
    places = [lower.find(w.lower()[: max(2, len(w) * 2 // 3)]) for w in words]
    start = max(0, min((p for p in places if p >= 0), default=0) - SNIPPET_CHARS // 4)
    part = " ".join(plain[start : start + SNIPPET_CHARS].split())
    return f"{'…' if start else ''}{part}{'…' if start + SNIPPET_CHARS < len(plain) else ''}"
