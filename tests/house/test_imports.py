"""Importing Cadenza changes nothing, reads nothing, and is quick."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.house.source import PACKAGES, ROOT

FRONT = f"import {', '.join(PACKAGES)}, cadenza\n"

# Imports every module, with an environment that notes which of our files ask it for something
# while they are imported. What a library asks in the course of its own import is not ours.
EVERYTHING = """
import importlib, os, pkgutil, sys
from collections.abc import MutableMapping

ours = tuple(os.path.join(sys.argv[1], name) for name in sys.argv[2:])
asked = set()

def note():
    frame = sys._getframe(2)
    while frame and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if "site-packages" in frame.f_code.co_filename:
            return
        if frame.f_code.co_filename.startswith(ours):
            asked.add(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            return
        frame = frame.f_back

class Noting(MutableMapping):
    def __init__(self, real): self.real = real
    def __getitem__(self, name): note(); return self.real[name]
    def __iter__(self): note(); return iter(self.real)
    def __len__(self): note(); return len(self.real)
    def __setitem__(self, name, value): note(); self.real[name] = value
    def __delitem__(self, name): note(); del self.real[name]
    def copy(self): note(); return self.real.copy()

os.environ = Noting(os.environ)
for package in sys.argv[2:]:
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(getattr(found, "__path__", []), package + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print("\\n".join(sorted(asked)), end="")
"""


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_module_of_ours_reads_the_environment_when_imported() -> None:
    assert python(EVERYTHING, str(ROOT), *PACKAGES, "cadenza") == ""


def test_the_check_above_sees_a_module_that_reads_the_environment() -> None:
    code = "exec(compile('import os; os.getenv(\"HOME\")', sys.argv[1] + '/bus/x.py', 'exec'))\n"
    planted = EVERYTHING.replace("for package in", code + "for package in", 1)
    assert python(planted, str(ROOT), "bus") == f"{ROOT}/bus/x.py:1"


def test_importing_the_front_does_not_import_what_is_slow() -> None:
    slow = "litellm", "aiohttp", "opentelemetry.sdk"
    code = f"{FRONT}import sys; print([name for name in {slow!r} if name in sys.modules])"
    assert python(code) == "[]\n"


def test_importing_the_front_leaves_signals_logging_and_tracing_alone() -> None:
    code = (
        "import logging, signal, sys\n"
        "before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]\n"
        f"{FRONT}from opentelemetry import trace\n"
        "assert before == [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]\n"
        "assert not logging.getLogger().handlers\n"
        "print(type(trace.get_tracer_provider()).__name__)\n"
    )
    assert python(code) == "ProxyTracerProvider\n"
