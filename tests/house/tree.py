"""Prints the README's tree from the first line of each file: ``python -m tests.house.tree``."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.source import PACKAGES, ROOT, python_files

_FOLDERS = {
    "tests/": "from unit over real services to acceptance; conformance, simulation, faults, house",
    "deploy/": "configuration files for brokers and trace backends",
    "examples/": "four pipelines on real input, and the demo",
    "docs/": "quickstart, how-to, explanation, reference, glossary, decisions",
}


def about(text: str) -> str:
    """Return the first line of a module's docstring without its full stop."""
    doc = ast.get_docstring(ast.parse(text)) or ""
    return doc.partition("\n")[0].rstrip(".")


def tree() -> str:
    """Return the tree as the README shows it."""
    files = {path: text for path, text in python_files() if path.parts[0] in PACKAGES}
    lines = ["cadenza/"]
    lines.append(f"├── cadenza.py  {about((ROOT / 'cadenza.py').read_text('utf-8'))}")
    for package in ("orchestrator", "agents", "bus", "tracing"):
        init = (ROOT / package / "__init__.py").read_text("utf-8")
        lines.append(f"├── {package}/  {about(init)}")
        lines += _below({p: t for p, t in files.items() if p.parts[0] == package}, 1)
    lines += [f"├── {name}  {told}" for name, told in _FOLDERS.items()]
    lines.append("└── pyproject.toml  dependencies with their reasons, and the rules of the house")
    return "\n".join(lines)


def _below(files: dict[Path, str], depth: int) -> list[str]:
    lines: list[str] = []
    folder = ""
    for path, text in sorted(files.items(), key=lambda item: (len(item[0].parts), item[0])):
        if path.name == "__init__.py":
            continue
        inner = "/".join(path.parts[1:-1])
        if inner != folder:
            folder = inner
            init = (ROOT / path.parent / "__init__.py").read_text("utf-8")
            lines.append(f"{'│   ' * depth}├── {inner}/  {about(init)}")
        indent = depth + bool(inner)
        lines.append(f"{'│   ' * indent}├── {path.name}  {about(text)}")
    return lines


if __name__ == "__main__":
    print(tree())
