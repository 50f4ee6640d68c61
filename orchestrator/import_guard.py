"""Refuses to start when ``agents``, ``bus`` or ``tracing`` would be somebody else's package.

The names are short, so they can collide: with a folder of the user's, or with the OpenAI Agents
SDK, whose import package is ``agents`` too. Python then imports whichever comes first on
``sys.path``, and what fails is far from the cause. This module imports the standard library
alone and runs before anything else of ours is imported.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

SIBLINGS = ("agents", "bus", "tracing")

_HOME = Path(__file__).absolute().parent.parent
_SDK = "openai_agents-*.dist-info"  # overwrites agents/ where both are installed in one place


class SiblingCollision(ImportError):
    """A package of Cadenza is shadowed by one of the same name.

    Attributes:
        name: The package's name.
        path: Where Python would import it from, or None when it is found nowhere.
    """


def check_siblings() -> None:
    """Check, without importing them, that the sibling packages are Cadenza's own.

    Raises:
        SiblingCollision: One of them does not lie beside ``orchestrator``, or is incomplete.
    """
    for name in SIBLINGS:
        _check(name)


def guard_or_exit() -> None:
    """Do as ``check_siblings``, but end the process with exit code 2 and the message alone.

    Raises:
        SystemExit: A sibling package is not Cadenza's own.
    """
    try:
        check_siblings()
    except SiblingCollision as exc:
        sys.stderr.write(f"cadenza: {exc}\n")
        raise SystemExit(2) from None


def _check(name: str) -> None:
    own = _HOME / name
    found = _location(name)
    if found is None:
        raise SiblingCollision(
            f"Cadenza's package {name!r} is missing beside 'orchestrator' in {str(_HOME)!r}; "
            "install cadenza-agents again",
            name=name,
        )
    if found.resolve() != own.resolve():
        raise SiblingCollision(_collision(name, found, own), name=name, path=str(found))
    if name == "agents" and any(_HOME.glob(_SDK)):
        raise SiblingCollision(
            f"the OpenAI Agents SDK (openai-agents) is installed into Cadenza's folder "
            f"{str(own)!r}, so that their files are mixed; uninstall both, and install "
            "cadenza-agents into a virtual environment of its own",
            name=name,
            path=str(found),
        )
    if not any(own.glob("__init__.py*")) and own.is_dir():
        raise SiblingCollision(
            f"Cadenza's folder {str(own)!r} has lost its __init__.py; install cadenza-agents again",
            name=name,
            path=str(found),
        )


def _location(name: str) -> Path | None:
    """Return the folder, or the file, that a top-level name is or would be imported from."""
    module = sys.modules.get(name)
    spec: ModuleSpec | None = getattr(module, "__spec__", None)
    if module is None:
        spec = find_spec(name)
    elif spec is None:  # put into sys.modules by hand
        return Path(getattr(module, "__file__", None) or f"<{name} in sys.modules>")
    if spec is None:
        return None
    if spec.submodule_search_locations is None:
        return Path(spec.origin or f"<{name}>")
    if spec.has_location and spec.origin:
        return Path(spec.origin).parent
    return next((Path(folder) for folder in spec.submodule_search_locations), None)


def _collision(name: str, found: Path, own: Path) -> str:
    message = (
        f"the package {name!r} that Python finds is {str(found)!r}, not Cadenza's own "
        f"{str(own)!r}; "
    )
    if {"site-packages", "dist-packages"} & set(found.parts):
        sdk = " (the OpenAI Agents SDK has this name)" if name == "agents" else ""
        return message + (
            f"another installed distribution brings it{sdk}; install cadenza-agents into a "
            "virtual environment without it"
        )
    return message + (
        f"rename yours, or keep {str(found.parent)!r} off the front of sys.path: start from "
        "another folder, and unset PYTHONPATH"
    )
