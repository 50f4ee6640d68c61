"""The system prompts: packaged Markdown templates, one a purpose and language, overridable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from agents.dialects.base import Language, PromptParts
from agents.dialects.signatures import describe, example_input, tool_names

_LANGUAGES: tuple[Language, ...] = ("en", "ja")
_PURPOSES = ("native", "output", "parallel", "plain", "planner", "synthesizer", "team", "text")
# A token alone on its line takes the lines below it along when it is empty; {{id}} is no token.
_TOKEN = re.compile(r"^\{(\w+)\}[ \t]*\n+|(?<!\{)\{(\w+)\}(?!\})", re.MULTILINE)
_JAPANESE = re.compile(r"[\u3041-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9d々]")
_LATIN = re.compile(r"[A-Za-z]")


def detect_language(text: str) -> Language:
    """Return ``ja`` for text in kana and kanji, else ``en``.

    A foreign word does not decide: four Latin letters weigh as much as one Japanese character.
    """
    japanese = len(_JAPANESE.findall(text))
    return "ja" if japanese and 4 * japanese >= len(_LATIN.findall(text)) else "en"


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{token}`` that ``values`` has, in one pass; values are never re-scanned."""

    def replace(match: re.Match[str]) -> str:
        value = values.get(match[1] or match[2])
        if value is None:
            return match[0]
        if match[1] is None:
            return value
        return value + match[0][match[0].index("}") + 1 :] if value else ""

    return _TOKEN.sub(replace, template).strip()


@dataclass(frozen=True, slots=True)
class Prompts:
    """All templates, read once.

    Attributes:
        templates: File name without ``.md``, for example ``text.ja``, to its text.
    """

    templates: Mapping[str, str]

    def system(self, dialect: Literal["native", "text"], prompt: PromptParts) -> str:
        """Return the system prompt of an agent; without tools both dialects have the same."""
        frame = dialect if prompt.tools else "plain"
        tool = prompt.tools[0] if prompt.tools else None
        values = {
            "agent": prompt.agent,
            "instructions": prompt.instructions.strip(),
            "job": self._job(prompt),
            "team": self._team(prompt),
            "output": self._output(prompt),
            "parallel": self._get("parallel", prompt) if prompt.parallel else "",
            "tools": describe(prompt.tools),
            "tool_names": tool_names(prompt.tools),
            "example_name": tool.name if tool else "",
            "example_input": example_input(tool) if tool else "",
        }
        return fill(self._get(frame, prompt) + "\n", values)

    def _get(self, purpose: str, prompt: PromptParts) -> str:
        return self.templates[f"{purpose}.{prompt.language}"].strip()

    def _job(self, prompt: PromptParts) -> str:
        purpose = {"plan": "planner", "synthesize": "synthesizer", "act": None}[prompt.kind]
        if purpose is None:
            return ""
        names = list(prompt.team) or [prompt.agent]
        values = {"team": _members(prompt), "first_agent": names[0], "last_agent": names[-1]}
        return fill(self._get(purpose, prompt), values)

    def _team(self, prompt: PromptParts) -> str:
        if not prompt.team or prompt.kind == "plan":
            return ""
        return fill(self._get("team", prompt), {"team": _members(prompt)})

    def _output(self, prompt: PromptParts) -> str:
        if prompt.output_schema is None:
            return ""
        schema = json.dumps(prompt.output_schema, ensure_ascii=False)
        return fill(self._get("output", prompt), {"schema": schema})


def _members(prompt: PromptParts) -> str:
    return "\n".join(f"- {name}: {' '.join(said.split())}" for name, said in prompt.team.items())


def load_prompts(folder: Path | None = None) -> Prompts:
    """Read the templates; call it while a pipeline is loaded, not inside a run.

    Args:
        folder: Files in it, for example ``text.ja.md``, take the place of the packaged ones.

    Raises:
        ValueError: The folder cannot be read, or holds a ``.md`` file that is no template.
    """
    packaged = resources.files("agents") / "prompts"
    names = [f"{purpose}.{language}" for purpose in _PURPOSES for language in _LANGUAGES]
    templates = {n: (packaged / f"{n}.md").read_text(encoding="utf-8") for n in names}
    if folder is None:
        return Prompts(MappingProxyType(templates))
    if not folder.is_dir():
        raise ValueError(f"prompts folder {str(folder)!r} is not a folder; create it or drop it")
    for path in sorted(folder.glob("*.md")):
        if path.stem not in templates:
            raise ValueError(f"{str(path)!r} is no template; the names are: {', '.join(names)}")
        try:
            templates[path.stem] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise ValueError(f"{str(path)!r} cannot be read as UTF-8 text: {exc}") from exc
    return Prompts(MappingProxyType(templates))
