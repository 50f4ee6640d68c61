"""How the code is kept: ceilings, docstrings, public names, and a README that is true."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess

import pytest

from tests.house.prose import tree
from tests.house.source import PACKAGES, ROOT, python_files, text_files

FILE_CEILING = 400
CEILINGS = {"tracing": 1_000, "bus": 1_900, "agents": 10_500, "orchestrator": 12_000}
NAMES: dict[str, list[str]] = json.loads((ROOT / "tests/house/public_names.json").read_text())


def test_no_python_file_is_longer_than_its_ceiling() -> None:
    long = {
        str(path): n
        for path, text in python_files()
        if (n := len(text.splitlines())) > FILE_CEILING
    }
    assert not long


@pytest.mark.parametrize(("package", "ceiling"), CEILINGS.items())
def test_no_package_is_larger_than_its_ceiling(package: str, ceiling: int) -> None:
    lines = sum(len(text.splitlines()) for path, text in python_files() if path.parts[0] == package)
    assert 0 < lines <= ceiling


def test_the_front_module_stays_small() -> None:
    assert len((ROOT / "cadenza.py").read_text().splitlines()) <= 80


def test_every_python_file_begins_with_a_docstring() -> None:
    without = []
    for path, text in python_files():
        body = ast.parse(text).body
        empty_mark = path.name == "__init__.py" and path.parts[0] == "tests" and not text
        if not empty_mark and not (
            body and ast.get_docstring(ast.parse(text)) and body[0].lineno == 1
        ):
            without.append(str(path))
    assert not without


@pytest.mark.parametrize("module", [*PACKAGES, "cadenza"])
def test_public_names_are_those_that_are_pinned(module: str) -> None:
    found = importlib.import_module(module)
    names: list[str] = getattr(found, "__all__", [])
    assert sorted(names) == sorted(NAMES[module])
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(found, name)] == []


def test_no_error_is_caught_to_be_forgotten() -> None:
    forgotten = [
        f"{path}:{node.lineno}"
        for path, text in python_files()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler)
        and isinstance(node.body[0], ast.Pass)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
    ]
    assert not forgotten


def test_every_ignored_type_error_has_its_code_and_its_reason() -> None:
    mark = "# type: " + "ignore"
    complete = re.compile(re.escape(mark) + r"\[[a-z, -]+\] +# \S+")
    bare = [
        f"{path}:{n}"
        for path, text in python_files()
        for n, line in enumerate(text.splitlines(), 1)
        if mark in line and not complete.search(line)
    ]
    assert not bare


def test_every_ignored_lint_has_its_code_and_its_reason() -> None:
    mark = "# no" + "qa"
    complete = re.compile(re.escape(mark) + r": [A-Z]+\d+(, ?[A-Z]+\d+)* +[#-] \S+")
    bare = [
        f"{path}:{n}"
        for path, text in python_files()
        for n, line in enumerate(text.splitlines(), 1)
        if mark in line and not complete.search(line)
    ]
    assert not bare


def test_every_dependency_says_what_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(
        r"^(?:dependencies|dev|[\w-]+) = \[\n(    \".+?)^\]", text, re.MULTILINE | re.DOTALL
    )
    lines = [
        line
        for each in lists
        for line in each.splitlines()
        if re.search(r"\"[\w\[\]-]+[><=~!]", line)
    ]
    assert len(lines) > 20
    assert [line for line in lines if not re.search(r"\",\s+# \w+", line)] == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_lock_files_pin_by_hash_and_name_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    pinned = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(pinned) > 20
    assert [p.splitlines()[0] for p in pinned if "==" not in p or "--hash=sha256:" not in p] == []
    assert "://" not in text


def test_the_development_lock_agrees_with_the_other() -> None:
    pins = [
        dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    ]
    assert pins[0].items() <= pins[1].items()


def test_the_readme_lists_every_file_of_the_packages_and_nothing_that_is_not_there() -> None:
    entries = {e.path: e for e in tree((ROOT / "README.md").read_text(), "cadenza/")}
    on_disk = [str(path) for path, _ in text_files()]
    sources = {p for p in on_disk if p.split("/")[0] in PACKAGES and p.endswith(".py")}
    files = {p for p in sources if not p.endswith("/__init__.py")} | {"cadenza.py"}
    folders = {p.rsplit("/", 1)[0] for p in sources}
    assert sorted((files | folders) - set(entries)) == [], "missing in the README"
    assert [p for p in entries if not (ROOT / p).exists()] == [], "only in the README"
    assert [e.path for e in entries.values() if e.folder != (ROOT / e.path).is_dir()] == []
    assert [e.path for e in entries.values() if not e.about] == [], "without a word on it"


def test_make_help_shows_every_target() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in told.stdout.splitlines()] == [
        "help", "setup", "demo", "check", "services", "up", "test", "test-all", "bench", "lock",
    ]  # fmt: skip
