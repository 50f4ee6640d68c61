"""`module:attribute` is found beside the pipeline, and a failure says where."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.references import resolve
from orchestrator.settings_errors import SettingsError


@pytest.fixture(autouse=True)
def _clean_imports() -> Iterator[None]:
    path, modules = sys.path.copy(), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def error_of(reference: str, folder: Path) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        resolve(reference, folder)
    return caught.value


def test_an_attribute_of_a_module_beside_the_pipeline_is_found(tmp_path: Path) -> None:
    (tmp_path / "cz_shop.py").write_text("def stock(): return 7\n")
    assert resolve("cz_shop:stock", tmp_path)() == 7


def test_packages_and_submodules_are_found(tmp_path: Path) -> None:
    (tmp_path / "cz_pack").mkdir()
    (tmp_path / "cz_pack" / "__init__.py").touch()
    (tmp_path / "cz_pack" / "inner.py").write_text("class Finding: pass\n")
    assert resolve("cz_pack.inner:Finding", tmp_path).__name__ == "Finding"


def test_installed_modules_are_found_too(tmp_path: Path) -> None:
    import json

    assert resolve("json:dumps", tmp_path) is json.dumps


def test_the_folder_is_appended_once_and_never_first(tmp_path: Path) -> None:
    (tmp_path / "cz_shop.py").write_text("a = b = 1\n")
    resolve("cz_shop:a", tmp_path)
    resolve("cz_shop:b", tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[-1] == str(tmp_path)


def test_a_missing_module_and_attribute_have_near_names(tmp_path: Path) -> None:
    (tmp_path / "cz_shop.py").write_text("def stock(): ...\n")
    error = error_of("cz_shpo:stock", tmp_path)
    assert "there is no module 'cz_shpo'" in error.message
    assert error.hint == "did you mean 'cz_shop'?"
    error = error_of("cz_shop:stok", tmp_path)
    assert "module 'cz_shop' has no attribute 'stok'" in error.message
    assert error.hint == "did you mean 'stock'?"


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        ("x = 1\nraise ValueError('no stock')\n", 2, "ValueError: no stock"),
        ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError: Expecting property name"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("import cz_nowhere\n", 1, "ModuleNotFoundError: No module named 'cz_nowhere'"),
        ("def f(:\n", 1, "SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_raises_is_reported_with_its_line(
    tmp_path: Path, code: str, line: int, said: str
) -> None:
    (tmp_path / "cz_bad.py").write_text(code)
    error = error_of("cz_bad:x", tmp_path)
    assert said in error.message
    assert (error.file, error.line) == (str(tmp_path / "cz_bad.py"), line)


@pytest.mark.parametrize("name", ["json", "pydantic", "sys", "yaml"])
def test_a_module_hidden_by_another_is_refused_and_says_which(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("def mine(): ...\n")
    error = error_of(f"{name}:mine", tmp_path)
    assert f"{name}.py is hidden by the module {name!r} of " in error.message
    assert "rename" in error.hint


def test_a_module_of_another_pipeline_is_not_taken_for_this_one(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cz_shop.py").write_text(f"name = {folder!r}\n")
    assert resolve("cz_shop:name", tmp_path / "one") == "one"
    assert (
        str(tmp_path / "one" / "cz_shop.py") in error_of("cz_shop:name", tmp_path / "two").message
    )


@pytest.mark.parametrize("reference", ["shop", "shop:", ":x", "a/b:c", "a:b:c", "a:b()", "..a:b"])
def test_what_is_no_reference_is_refused(tmp_path: Path, reference: str) -> None:
    assert "is not a reference" in error_of(reference, tmp_path).message
