"""Code as users write it is accepted by the strictest type checking, and does what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.source import PACKAGES, ROOT

HERE = Path(__file__).parent
USER_FILES = ("user_code.py", "shop.py", "pipeline.yaml", "replies.yaml")
SAID = """\
asked: approval Agent 'buyer' wants to call order(sku="A1", pieces=10).
ended: completed final_answer []
answer: (A person changed the arguments to {"pieces":5,"sku":"A1"}.) ordered 5 of A1
spent: 4 2 0.001 32
seen: True run.completed
in python: completed It is 42.
functions: {'words': 3}
called: 8 words repeats loudly
wrong: unknown key 'modle' in agents.a
  did you mean 'model'?
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the user's files and nothing of the repository."""
    for name in USER_FILES:
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "note.txt").write_text("Shelf 3 is broken.")
    return tmp_path


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MYPYPATH")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_user_code_runs_without_a_warning(folder: Path) -> None:
    done = python(folder, "-W", "error", "user_code.py")
    assert done.stderr == ""
    assert done.stdout == SAID
    assert done.returncode == 0


@pytest.mark.timeout(120)  # mypy reads everything that we import, without a cache
def test_user_code_passes_strict_type_checking_and_a_mistake_in_it_does_not(folder: Path) -> None:
    mistake = "async def wrong() -> None:\n    number: int = await stock(1)\n"
    (folder / "mistake.py").write_text(f"from shop import stock\n\n\n{mistake}")
    done = python(
        folder, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", os.devnull,
        "user_code.py", "shop.py", "mistake.py",
    )  # fmt: skip
    found = [line.split(": ", 2) for line in done.stdout.splitlines()]
    assert {where.partition(":")[0] for where, *_ in found} == {"mistake.py"}, done.stdout
    assert sorted(line[-1].rpartition("[")[2] for line in found) == ["arg-type]", "call-arg]"]


def test_the_wheel_says_that_all_of_it_is_typed(tmp_path: Path) -> None:
    done = python(ROOT, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert {f"{name}/py.typed" for name in (*PACKAGES, "cadenza")} <= names
    assert "cadenza.py" in names
    assert "cadenza/__init__.py" not in names, "a package would hide the module of its name"
