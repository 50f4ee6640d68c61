"""The first user message: the task with its inputs put in, once, and its files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

from agents.assignment import Assignment, Input
from agents.content import Blob, Content, Text
from agents.errors import UnsupportedMedia

_TOKEN = re.compile(r"\{\{\s*([\w./-]+)\s*\}\}")
_MEDIA = ("image/*", "audio/*", "video/*", "application/pdf")


def value_text(value: Any) -> str:
    """Return a JSON value as a model reads it: a string as it is, else compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fence(tag: str, text: str, about: dict[str, str]) -> str:
    """Return text between marks that the text itself cannot contain.

    Args:
        tag: What it is, for example ``input`` or ``untrusted``.
        text: Data; whatever it says is not an instruction.
        about: Attributes of the opening mark.
    """
    mark = sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    words = "".join(f" {k}={json.dumps(v, ensure_ascii=False)}" for k, v in about.items())
    return f"<{tag}{words} mark={mark}>\n{text}\n</{tag} mark={mark}>"


def render_task(assignment: Assignment) -> str:
    """Return the task as the model reads it.

    ``{{id}}`` becomes the output of the dependency ``id`` (its path or the last segment of it) and
    ``{{task}}`` the run's task, once: what is put in is never scanned again. Other inputs follow as
    fenced blocks, then what failed (for a replan) and the files by name. An untrusted task is
    fenced.
    """
    by_id = {i.subtask.rsplit("/", 1)[-1]: i for i in assignment.inputs if i.finding is None}
    by_id |= {i.subtask: i for i in assignment.inputs if i.finding is None}
    used: set[str] = set()

    def put_in(match: re.Match[str]) -> str:
        if match[1] == "task":
            return assignment.run_task
        found = by_id.get(match[1])
        if found is None:
            return match[0]
        used.add(found.subtask)
        return _input_text(found)

    task = _TOKEN.sub(put_in, assignment.task)
    if assignment.trust == "untrusted":
        task = fence("untrusted", task, {"source": "task"})
    parts = [task]
    parts += [
        _block("input", i)
        for i in assignment.inputs
        if i.finding is not None or i.subtask not in used
    ]
    if assignment.failure is not None:
        parts.append(_block("failed", assignment.failure))
    if assignment.files:
        names = "\n".join(f"- {b.name} ({b.media_type})" for b in assignment.files)
        parts.append(f"Files:\n{names}")
    return "\n\n".join(parts)


def task_content(
    assignment: Assignment, *, media_types: Iterable[str], tools_read_files: bool
) -> Content:
    """Return the first user message: the rendered task, then the media the model takes.

    Args:
        assignment: What to do.
        media_types: What the model takes beside text; patterns allowed.
        tools_read_files: Whether a tool of the agent can read the files it does not take.

    Raises:
        UnsupportedMedia: A picture, sound, film or PDF that neither model nor tools take.
    """
    taken = tuple(media_types)
    blobs = [b for b in assignment.files if _matches(b, taken)]
    for blob in assignment.files:
        if _matches(blob, _MEDIA) and blob not in blobs and not tools_read_files:
            raise UnsupportedMedia(
                f"the model of agent {assignment.agent!r} does not take {blob.media_type} "
                f"({blob.name!r}); it takes {', '.join(taken) or 'text only'}. Choose another "
                "model, declare its media_types, or leave the file out"
            )
    return (Text(render_task(assignment)), *blobs)


def _matches(blob: Blob, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(blob.media_type, p) for p in patterns)


def _input_text(item: Input) -> str:
    if item.status == "completed":
        return value_text(item.output)
    return f"[{item.status}: {item.error or 'no reason given'}]"


def _block(tag: str, item: Input) -> str:
    about = {"from": item.subtask, "agent": item.agent, "status": item.status}
    if item.finding is not None:
        about["finding"] = item.finding
    return fence(tag, _input_text(item), about)
