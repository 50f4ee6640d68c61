"""A reply in the text format, cut into its labels: its thought, its final answer, its rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.dialects.base import Parsed
from agents.dialects.react_labels import Label, find_labels, weak_label
from agents.dialects.signatures import tool_names
from agents.dialects.thinking import strip_thinking
from agents.messages import ToolCall
from agents.tools import Tool

HOW = (
    'Write "Action:" with a tool\'s name and "Action Input:" with a JSON object, '
    'or "Final Answer:" with the answer.'
)
STEPS = ("action", "input", "final")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply being read: its text without reasoning, its labels, the repairs made so far."""

    text: str
    labels: Sequence[Label]
    tools: Sequence[Tool]
    new_id: Callable[[], str]
    repairs: tuple[str, ...] = ()

    def next(self, pos: int, *kinds: str) -> Label:
        """Return the first label at or after ``pos``; one of kind ``end`` if there is none."""
        for label in self.labels:
            if label.start >= pos and (not kinds or label.kind in kinds):
                return label
        return Label("end", len(self.text), len(self.text))

    def thought(self, stop: int) -> str:
        """Return what was thought before ``stop``, without labels and invented observations."""
        before = [label for label in self.labels if label.start < stop]
        starts = [Label("thought", 0, 0), *before]
        ends = [*(label.start for label in before), stop]
        parts = [
            _unlabelled(self.text[label.end : end])
            for label, end in zip(starts, ends, strict=True)
            if label.kind == "thought"
        ]
        return "\n\n".join(part for part in parts if part)

    def kept(self, end: int) -> str:
        """Return the reply up to ``end`` for the history, so that it begins with a label."""
        first = self.next(0)
        start = 0
        if first.kind == "observation" and not self.text[: first.start].strip():
            start = self.next(0, "thought", *STEPS).start
        text = self.text[min(start, end) : end].strip()
        labelled = bool(text) and (self.next(0).start < end)
        prose = labelled and self.text[: first.start].strip(" \t\r\n`") and start == 0
        return f"Thought: {text}" if prose and not self.text.lstrip().startswith("{") else text

    def hint(self, fault: str, *, thought: str = "") -> Parsed:
        """Return a reply that the model must write again."""
        cut, repairs, text = self.next(0, "observation"), self.repairs, self.text
        if cut.kind != "end" and text[: cut.start].strip():
            text, repairs = text[: cut.start], (*repairs, "invented_observation_cut")
        line = " ".join(fault.split())
        return Parsed(thought, repairs=repairs, hint=f"{line} {HOW}", text=text.strip())

    def no_tool(self, name: str, *, thought: str = "") -> Parsed:
        """Return the hint for an Action that names no tool."""
        names = tool_names(self.tools)
        what = f"{name[:60]!r} is not the name of a tool" if name else "The Action names no tool"
        fault = f"{what}; the tools are: {names}."
        return self.hint(fault, thought=thought)

    def call(
        self,
        call: ToolCall,
        span: tuple[int, int],
        repairs: Sequence[str],
        *,
        thought: str | None = None,
    ) -> Parsed:
        """Return a call that stands at ``span``; what follows it was written too early."""
        start, end = span
        said = self.thought(start) if thought is None else thought
        every = (*self.repairs, *self._before(start, said), *repairs, *self._dropped(end))
        return Parsed(said, (call,), repairs=every, text=self.kept(end))

    def final(self, label: Label) -> Parsed:
        """Return the final answer: all that follows its label, except an invented next turn."""
        content = self.text[label.end :]
        cut = _next_turn(content)
        thought = self.thought(label.start)
        repairs = (*self.repairs, *self._before(label.start, thought))
        if cut < len(content):
            repairs = (*repairs, "turn_after_answer_dropped")
        answer = content[:cut].strip()
        answer = strip_thinking(answer).strip() or answer
        if label.bold and answer.endswith(label.bold) and answer.count(label.bold) % 2:
            answer = answer[: -len(label.bold)].rstrip()
        if self.text[: label.start].count("```") % 2 and answer.endswith("```"):
            answer, repairs = answer[:-3].rstrip(), (*repairs, "code_fence")
        if not answer:
            return self.hint("The Final Answer is empty.", thought=thought)
        return Parsed(thought, final=answer, repairs=repairs, text=self.kept(label.end + cut))

    def _before(self, start: int, thought: str) -> list[str]:
        invented = self.next(0, "observation").start < start
        return [
            *(["invented_observation_cut"] if invented else []),
            *([] if thought else ["missing_thought"]),
        ]

    def _dropped(self, end: int) -> list[str]:
        weak = weak_label(self.text, end, len(self.text))
        cut = self.next(end, "observation")
        if weak is not None and weak.kind == "observation" and weak.start < cut.start:
            cut = weak
        kinds = {label.kind for label in self.labels if end <= label.start < cut.start}
        rest = self.text[end : min(self.next(end).start, cut.start)]
        names = {
            "trailing_text_dropped": bool(rest.strip(" \t\r\n`*)]")),
            "second_action_dropped": "action" in kinds,
            "second_input_dropped": "input" in kinds and "action" not in kinds,
            "final_answer_dropped": "final" in kinds,
            "invented_observation_cut": cut.kind != "end",
        }
        return [name for name, found in names.items() if found]


def _unlabelled(text: str) -> str:
    text = text.strip().strip("`").strip()
    while (labels := find_labels(text)[:1]) and labels[0].start == 0 and labels[0].end:
        text = text[labels[0].end :].strip()
    return text


def _next_turn(content: str) -> int:
    """Return where a turn begins that the model invented after its answer."""
    labels = find_labels(content)
    for label, following in zip(labels, [*labels, None][1:], strict=True):
        begins = following is not None and (
            label.kind in ("thought", "observation")
            or (label.kind == "action" and following.kind == "input")
        )
        outside = content[: label.start].count("```") % 2 == 0
        if begins and outside and content[: label.start].strip():
            return label.start
    return len(content)
