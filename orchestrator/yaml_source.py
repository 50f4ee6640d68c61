"""Pipeline files as text: strict YAML with a line for every value, and ``${VAR}`` replaced.

Stricter than YAML 1.1 where that has bitten people: ``on``, ``off``, ``yes`` and ``no`` are
strings, as are dates and ``012``; only ``true``, ``false``, ``null`` and decimal numbers are more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from orchestrator.settings_errors import Problem, SettingsError

MAX_BYTES = 1_000_000
MAX_VALUES = 20_000  # values after aliases are expanded
MAX_DEPTH = 40

YamlPath = tuple[str | int, ...]
Place = tuple[int, int]

VARIABLE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?:(:-)([^{}]*))?\})?")
_TOO_DEEP = f"the nesting is deeper than {MAX_DEPTH} levels"
_TOO_MANY = f"with its aliases expanded the file holds more than {MAX_VALUES:,} values"
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True)
class YamlSource:
    """A parsed file.

    Attributes:
        value: The tree: dicts, lists, strings, numbers, booleans, None.
        file: What errors call the file.
        places: Path to (line, column) of the value, from 1.
        keys: Path to (line, column) of the key that leads to the value.
        written: Path to the text of values that came from ``${VAR}`` or an override and were
            taken for a number or a boolean; it is what they are where a string is expected.
        variables: Names of the variables that the file refers to.
        origins: Path to the variable or flag that brought the value, for overrides.
    """

    value: Any
    file: str
    places: dict[YamlPath, Place] = field(default_factory=dict)
    keys: dict[YamlPath, Place] = field(default_factory=dict)
    written: dict[YamlPath, str] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    origins: dict[YamlPath, str] = field(default_factory=dict)

    @classmethod
    def of_python(cls, tree: dict[str, Any]) -> YamlSource:
        """Return a tree that was made in code: its problems name no file."""
        return cls(tree, "")

    def problem(
        self, path: YamlPath, message: str, *, hint: str = "", key: bool = False
    ) -> Problem:
        """Return a problem at the nearest known place of a path.

        Args:
            path: Where; need not exist.
            message: What is wrong.
            hint: What to do next.
            key: Whether the key is meant rather than its value.
        """
        for end in range(len(path), -1, -1):
            known = path[:end]
            if known in self.origins:
                return Problem(message, self.origins[known], hint=hint)
            for places in (self.keys, self.places) if key or end < len(path) else (self.places,):
                if known in places:
                    return Problem(message, self.file, *places[known], hint)
        return Problem(message, self.file, hint=hint)


def read_scalar(text: str) -> Any:
    """Return what a plain scalar stands for: None, a boolean, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def read_yaml(
    data: bytes,
    file: str,
    *,
    env: Mapping[str, str],
    verbatim: Callable[[YamlPath], bool] = lambda path: False,
) -> YamlSource:
    """Parse a file's bytes.

    Args:
        data: The file, UTF-8.
        file: What errors call it.
        env: Values of ``${VAR}``; ``${VAR:-default}`` where it is unset or empty; ``$${`` is a
            literal ``${``.
        verbatim: Paths whose text is left as it is, for references to secrets.

    Raises:
        SettingsError: With the line and column of everything that was found.
    """
    text = _decode(data, file)
    node = _compose(text, file)
    reader = _Reader(text, YamlSource(None, file), env, verbatim)
    if not isinstance(node, yaml.MappingNode):
        place = (1, 1) if node is None else _place(node)
        word = "the file is empty" if node is None else "the file is not a mapping of settings"
        hint = "a pipeline needs at least `agents:` with one agent"
        raise SettingsError(word, file, line=place[0], column=place[1], hint=hint)
    reader.source.value = reader.read(node, ())
    if reader.problems:
        raise SettingsError.of(reader.problems)
    return reader.source


def _decode(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data):,} bytes, more than {MAX_BYTES:,}"
        raise SettingsError(message, file, hint="move long texts to files of their own")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line, column = _locate(data[: exc.start].decode("utf-8-sig"), exc.start)
        message = f"byte 0x{data[exc.start]:02x} is not UTF-8"
        hint = "save the file with the encoding UTF-8"
        raise SettingsError(message, file, line=line, column=column, hint=hint) from exc


class _Loader(yaml.SafeLoader):
    """Composes nodes; leaves untagged scalars alone, refuses endless depth and length."""

    depth = count = 0

    def resolve(self, *_: Any) -> Any:
        """Tag nothing, so that a tag in the file can be told from none."""
        return ""

    def compose_node(self, *where: Any) -> Any:
        """Compose one node, unless it lies too deep or is one too many."""
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH or self.count > 2 * MAX_VALUES:  # keys count here, not below
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # stubs lack it
            raise yaml.MarkedYAMLError(
                problem=_TOO_DEEP if self.depth > MAX_DEPTH else _TOO_MANY, problem_mark=mark
            )
        node = super().compose_node(*where)
        self.depth -= 1
        return node


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
        node: yaml.Node | None = loader.get_single_node()
    except yaml.reader.ReaderError as exc:
        line, column = _locate(text, exc.position)
        message = f"character U+{int(exc.character):04X} is not allowed in YAML"
        raise SettingsError(message, file, line=line, column=column) from exc
    except yaml.MarkedYAMLError as exc:
        raise _syntax_error(text, file, exc) from exc
    return node


def _syntax_error(text: str, file: str, exc: yaml.MarkedYAMLError) -> SettingsError:
    mark = exc.problem_mark or exc.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    message = ", ".join(part for part in (exc.context, exc.problem) if part)
    row = [*text.split("\n"), ""][line - 1]
    indent = row[: len(row) - len(row.lstrip())]
    hint = ""
    if "expected a single document" in message:
        message, hint = "the file holds more than one document", "one pipeline, one file: drop ---"
    elif "\t" in indent:
        message, hint, column = "a tab indents this line", "indent with spaces", row.index("\t") + 1
    elif "${" in row[: column + 1]:
        hint = 'inside { } and [ ] quote variables: "${NAME}"'
    elif "cannot start any token" in message or "mapping values" in message:
        hint = "quote texts that hold a colon or begin with @, `, %, & or *"
    return SettingsError(message, file, line=line, column=column, hint=hint)


def _locate(text: str, index: int) -> Place:
    return text.count("\n", 0, index) + 1, min(index, len(text)) - text.rfind("\n", 0, index)


def _place(node: yaml.Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


class _Reader:
    """Turns nodes into a tree and remembers where each value stands."""

    def __init__(
        self,
        text: str,
        source: YamlSource,
        env: Mapping[str, str],
        verbatim: Callable[[YamlPath], bool],
    ) -> None:
        self.text, self.source, self.env, self.verbatim = text, source, env, verbatim
        self.problems: list[Problem] = []
        self.count = 0
        self.open: set[int] = set()

    def wrong(
        self, node: yaml.Node, message: str, hint: str = "", place: Place | None = None
    ) -> None:
        self.problems.append(Problem(message, self.source.file, *(place or _place(node)), hint))
        if len(self.problems) == 100:  # a hostile file; ten are shown
            raise SettingsError.of(self.problems)

    def read(self, node: yaml.Node, path: YamlPath) -> Any:
        self.count += 1
        if self.count > MAX_VALUES or id(node) in self.open:
            self.wrong(node, _TOO_MANY)
            raise SettingsError.of(self.problems)
        self.source.places.setdefault(path, _place(node))
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if node.tag:
            self.wrong(node, f"the tag {node.tag} is not allowed", "write plain values")
        self.open.add(id(node))
        value = (
            self.mapping(node, path)
            if isinstance(node, yaml.MappingNode)
            else [self.read(item, (*path, i)) for i, item in enumerate(node.value)]
        )
        self.open.discard(id(node))
        return value

    def mapping(self, node: yaml.MappingNode, path: YamlPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            here = (*path, key)
            if key in found:
                line = self.source.keys[here][0]
                self.wrong(key_node, f"key {key!r} is given twice", f"first on line {line}")
                continue
            self.source.keys[here] = _place(key_node)
            found[key] = self.read(value_node, here)
        return found

    def key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            self.wrong(node, "a key must be a string", "this key is a list or a mapping")
            return repr(node.start_mark.index)
        plain = node.style is None
        if plain and node.value == "<<":
            self.wrong(node, "merge keys (<<) are not supported", "use an alias for a whole value")
        elif node.tag or (plain and not isinstance(read_scalar(node.value), str)):
            self.wrong(node, f"key {node.value} must be a string", f'write "{node.value}"')
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode, path: YamlPath) -> Any:
        text = str(node.value)
        if node.tag not in ("", "tag:yaml.org,2002:str"):
            self.wrong(node, f"the tag {node.tag} is not allowed", "write plain values")
        if any("\ud800" <= char <= "\udfff" for char in text):
            self.wrong(
                node, "the text holds half of a surrogate pair", "write the character itself"
            )
        if self.verbatim(path):
            return text
        plain = node.style is None and not node.tag
        filled = self.fill(node, text)
        if not plain or (filled != text and read_scalar(filled) is None):
            return filled
        value = read_scalar(filled)
        if filled != text and not isinstance(value, str):
            self.source.written[path] = filled
        return value

    def fill(self, node: yaml.ScalarNode, text: str) -> str:
        start = node.start_mark.index

        def value(match: re.Match[str]) -> str:
            nonlocal start
            if match.group() == "$${":
                return "${"
            at = self.text.find(match.group(), start, node.end_mark.index)
            start = max(at, start)
            place = _locate(self.text, at) if at >= 0 else None
            name, has_default, default = match.groups()
            if name is None:
                hint = "write ${NAME}, ${NAME:-default}, or $${ for a literal ${"
                self.wrong(node, "${ does not begin a variable's name", hint, place)
                return ""
            self.source.variables.add(name)
            found = self.env.get(name)
            if found is None and not has_default:
                hint = f"set it, or give a default: ${{{name}:-…}}"
                self.wrong(node, f"the environment variable {name} is not set", hint, place)
            return found or default or ""

        return VARIABLE.sub(value, text)
