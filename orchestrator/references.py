"""References of the form ``module:attribute``, resolved from the pipeline's folder."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestrator.section import REFERENCE
from orchestrator.settings_errors import SettingsError, suggest


def resolve(reference: str, folder: Path) -> Any:
    """Return what a reference names.

    The folder is appended to ``sys.path``, never put first: a user's ``json.py`` must not replace
    the standard library's. A module of the folder that another one hides is therefore an error.

    Args:
        reference: ``module:attribute``, for example ``shop:stock``.
        folder: The pipeline's folder.

    Raises:
        SettingsError: There is no such module or attribute, the module is hidden by another, or
            it raised while it was imported; the error then names the line that raised.
    """
    if not re.match(REFERENCE, reference):
        hint = "write module:attribute, for example shop:stock"
        raise SettingsError(f"{reference!r} is not a reference", hint=hint)
    name, attribute = reference.split(":")
    module = _module(name, folder.resolve())
    try:
        return getattr(module, attribute)
    except AttributeError:
        known = [n for n in dir(module) if not n.startswith("_")]
        message = f"module {name!r} has no attribute {attribute!r}"
        file = getattr(module, "__file__", None) or ""
        raise SettingsError(message, file, hint=suggest(attribute, known)) from None


def _module(name: str, folder: Path) -> ModuleType:
    importlib.invalidate_caches()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    _check_not_hidden(name.split(".")[0], folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is not None and (name == exc.name or name.startswith(f"{exc.name}.")):
            known = [p.stem for p in folder.iterdir() if p.suffix == ".py" or _is_package(p)]
            hint = suggest(name, known) or "there is no Python file beside the pipeline"
            message = f"there is no module {exc.name!r} in {folder}"
            raise SettingsError(message, hint=hint) from None
        raise _raised(name, folder, exc) from exc
    except (Exception, SystemExit) as exc:
        raise _raised(name, folder, exc) from exc


def _check_not_hidden(name: str, folder: Path) -> None:
    mine = [p for p in (folder / name, folder / f"{name}.py") if _is_package(p) or p.is_file()]
    loaded = sys.modules.get(name)
    try:
        spec = importlib.util.find_spec(name) if loaded is None else loaded.__spec__
    except ValueError:  # a module without a spec, for example one made by hand
        spec = None
    if not mine or (spec is None and loaded is None):
        return
    found = getattr(loaded, "__file__", None) or (spec.origin if spec is not None else None)
    if found is None or not Path(found).resolve().is_relative_to(folder):
        message = f"{mine[0]} is hidden by the module {name!r} of {found or 'Python'}"
        hint = "rename your module, and the references to it"
        raise SettingsError(message, str(mine[0]), hint=hint)


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


def _raised(name: str, folder: Path, exc: BaseException) -> SettingsError:
    frames = traceback.extract_tb(exc.__traceback__)
    own = [f for f in frames if Path(f.filename).is_relative_to(folder)]
    file, line = (own[-1].filename, own[-1].lineno) if own else ("", None)
    if isinstance(exc, SyntaxError) and exc.filename:
        file, line = exc.filename, exc.lineno
        text = exc.msg
    else:
        text = str(exc)
    message = f"module {name!r} raised {type(exc).__name__}: {text}"
    return SettingsError(message, file, line=line, hint="make it importable: try it with python")
