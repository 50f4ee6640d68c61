"""The guard against foreign packages of the same name, tried with real folders and processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import editables
import pytest

from orchestrator.import_guard import SIBLINGS, check_siblings

ROOT = Path(__file__).resolve().parents[3]
GUARD = "from orchestrator.import_guard import check_siblings; check_siblings()"
EXIT = "from orchestrator.import_guard import guard_or_exit; guard_or_exit(); print('passed')"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An installation: the guard, and three packages that fail when they are imported."""
    home = tmp_path / "lib" / "site-packages"
    for name in ("orchestrator", *SIBLINGS):
        (home / name).mkdir(parents=True)
        (home / name / "__init__.py").write_text("raise AssertionError('imported too early')\n")
    (home / "orchestrator" / "__init__.py").write_text("")
    shutil.copy(ROOT / "orchestrator" / "import_guard.py", home / "orchestrator")
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The user's own folder, from which Python is started."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def start(code: str, *, home: Path, folder: Path, first: str = "") -> tuple[int, str]:
    """Run code in a new process, the user's folder first on the path, the installation last."""
    # The checkout itself may be installed in editable form, which would hide the installation.
    path = (
        f"import sys; sys.path[:] = [p for p in sys.path if p != {str(ROOT)!r}]; "
        f"sys.path.append({str(home)!r}); {first}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", path + code],
        cwd=folder,
        env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def package(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("")
    return folder / name


def test_this_checkout_passes() -> None:
    check_siblings()


def test_an_installation_alone_passes_and_imports_nothing(home: Path, folder: Path) -> None:
    assert start(EXIT, home=home, folder=folder) == (0, "passed\n")


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_folder_of_that_name_is_refused_by_its_path(home: Path, folder: Path, name: str) -> None:
    mine = package(folder, name)
    code, told = start(GUARD, home=home, folder=folder)
    assert code == 1
    assert f"SiblingCollision: the package '{name}' that Python finds is '{mine}'" in told
    assert f"not Cadenza's own '{home / name}'" in told
    assert "rename yours" in told


def test_a_module_file_of_that_name_is_refused(home: Path, folder: Path) -> None:
    (folder / "bus.py").write_text("")
    _, told = start(GUARD, home=home, folder=folder)
    assert f"'{folder / 'bus.py'}'" in told


def test_a_folder_without_init_does_not_shadow_and_passes(home: Path, folder: Path) -> None:
    (folder / "agents").mkdir()
    (folder / "agents" / "mine.py").write_text("")
    assert start(EXIT, home=home, folder=folder) == (0, "passed\n")


def test_a_folder_without_init_is_refused_when_ours_is_gone(home: Path, folder: Path) -> None:
    (folder / "agents").mkdir()
    shutil.rmtree(home / "agents")
    _, told = start(GUARD, home=home, folder=folder)
    assert f"finds is '{folder / 'agents'}'" in told


def test_the_command_line_exits_with_2_and_without_a_traceback(home: Path, folder: Path) -> None:
    mine = package(folder, "agents")
    code, told = start(EXIT, home=home, folder=folder)
    assert code == 2
    assert told.startswith(f"cadenza: the package 'agents' that Python finds is '{mine}'")
    assert "Traceback" not in told
    assert told.count("\n") == 1


def test_a_foreign_package_that_was_imported_before_is_refused(home: Path, folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    mine = package(elsewhere, "agents")
    first = f"sys.path.insert(0, {str(elsewhere)!r}); import agents; del sys.path[0]"
    _, told = start(GUARD, home=home, folder=folder, first=first)
    assert f"finds is '{mine}'" in told


def test_a_module_put_into_place_by_hand_is_refused(home: Path, folder: Path) -> None:
    first = "import types; sys.modules['tracing'] = types.ModuleType('tracing')"
    code, told = start(EXIT, home=home, folder=folder, first=first)
    assert code == 2
    assert "<tracing in sys.modules>" in told


def test_another_distributions_package_is_told_apart_from_a_folder(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "venv" / "site-packages"
    package(other, "agents")
    first = f"sys.path.insert(0, {str(other)!r})"
    _, told = start(GUARD, home=home, folder=folder, first=first)
    assert "another installed distribution brings it (the OpenAI Agents SDK has this name)" in told


def test_the_sdk_installed_over_ours_is_refused(home: Path, folder: Path) -> None:
    (home / "openai_agents-0.9.0.dist-info").mkdir()
    code, told = start(EXIT, home=home, folder=folder)
    assert code == 2
    assert "the OpenAI Agents SDK (openai-agents) is installed into Cadenza's folder" in told


def test_a_missing_package_is_told(home: Path, folder: Path) -> None:
    shutil.rmtree(home / "tracing")
    code, told = start(EXIT, home=home, folder=folder)
    assert code == 2
    assert "'tracing' is missing beside 'orchestrator'" in told


def test_a_package_that_lost_its_init_is_told(home: Path, folder: Path) -> None:
    (home / "bus" / "__init__.py").unlink()
    code, told = start(EXIT, home=home, folder=folder)
    assert code == 2
    assert f"'{home / 'bus'}' has lost its __init__.py" in told


def test_an_installation_behind_a_symbolic_link_passes(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    link = tmp_path / "linked"
    link.symlink_to(home, target_is_directory=True)
    first = f"sys.path.insert(0, {str(link)!r})"
    assert start(EXIT, home=home, folder=folder, first=first) == (0, "passed\n")


def test_an_editable_install_that_maps_single_packages_passes(home: Path, folder: Path) -> None:
    # The import hook that hatchling's editable installs use for mapped packages.
    names = ("orchestrator", *SIBLINGS)
    mapped = "; ".join(f"F.map_module({n!r}, {str(home / n / '__init__.py')!r})" for n in names)
    libraries = str(Path(editables.__file__).parents[1])
    first = (
        f"sys.path.remove({str(home)!r}); sys.path.append({libraries!r}); "
        f"from editables.redirector import RedirectingFinder as F; F.install(); {mapped}"
    )
    assert start(EXIT, home=home, folder=folder, first=first) == (0, "passed\n")


def test_a_wheel_that_is_imported_as_a_zip_passes(home: Path, folder: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "cadenza"), "zip", home)
    first = f"sys.path.remove({str(home)!r}); sys.path.append({archive!r})"
    assert start(EXIT, home=home, folder=folder, first=first) == (0, "passed\n")
