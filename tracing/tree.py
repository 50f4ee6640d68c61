"""The tree of a trace as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracing import attributes as names
from tracing.reader import SpanRecord


def draw(spans: Sequence[SpanRecord]) -> list[str]:
    """Return a trace as lines: name, service, duration, tokens, cost, errors.

    Children stand under their parent in the order they started. A span whose parent is missing
    stands at the top and says so.
    """
    known = {span.span_id for span in spans}
    children: dict[str, list[SpanRecord]] = {}
    for span in sorted(spans, key=lambda s: (s.start_ns, s.span_id)):
        parent = span.parent_id if span.parent_id in known else ""
        children.setdefault(parent, []).append(span)
    lines: list[str] = []
    for root in children.get("", []):
        lost = " (its parent is missing)" if root.parent_id else ""
        lines.append(_line(root) + lost)
        lines.extend(_below(root, children, ""))
    return lines


def _below(span: SpanRecord, children: dict[str, list[SpanRecord]], indent: str) -> Iterator[str]:
    own = children.get(span.span_id, [])
    for child in own:
        last = child is own[-1]
        yield f"{indent}{'└─' if last else '├─'} {_line(child)}"
        yield from _below(child, children, indent + ("   " if last else "│  "))


def _line(span: SpanRecord) -> str:
    parts = [span.name, f"[{span.service}]", _duration(span)]
    about = span.attributes
    tokens = _tokens(span)
    if tokens:
        parts.append(tokens)
    cost = about.get(names.COST_USD, about.get(names.TOTAL_COST_USD))
    if cost:
        parts.append(f"${cost:.4f}")
    attempt = about.get(names.ATTEMPT)
    if attempt and attempt > 1 and about.get(names.OPERATION) == names.INVOKE_AGENT:
        parts.append(f"attempt {attempt}")
    reason = about.get(names.STOP_REASON)
    if reason and reason != "final_answer":
        parts.append(f"({reason})")
    if span.error is not None:
        said = (str(about.get(names.ERROR_TYPE, "")), span.error)
        parts.append(f"ERROR {': '.join(text for text in said if text)}".rstrip())
    return "".join(c if c.isprintable() else " " for c in "  ".join(parts))


def _tokens(span: SpanRecord) -> str:
    about = span.attributes
    into = about.get(names.INPUT_TOKENS, about.get(names.TOTAL_INPUT_TOKENS))
    out = about.get(names.OUTPUT_TOKENS, about.get(names.TOTAL_OUTPUT_TOKENS))
    return "" if into is None and out is None else f"{into or 0:,}→{out or 0:,} tokens"


def _duration(span: SpanRecord) -> str:
    if not span.end_ns:
        return "never ended"
    ms = (span.end_ns - span.start_ns) / 1e6
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.1f} ms"
