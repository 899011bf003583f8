"""Hooks on modules of other packages: called once they are loaded, whichever way that is."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

from iceberg_pyspark.import_hooks import when_imported

PARENT = "hooked_package"
MODULE = f"{PARENT}.hooked"
SOURCE = "import hooked_package.other\nvalue = 1\ndef twice(x):\n    return 2 * x\n"


@pytest.fixture(params=["folder", "zip"])
def package(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    path = tmp_path
    files = {"__init__.py": "", "hooked.py": SOURCE, "other.py": ""}
    if request.param == "zip":
        path = tmp_path / "modules.zip"
        with ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(f"{PARENT}/{name}", text)
    else:
        (tmp_path / PARENT).mkdir()
        for name, text in files.items():
            (tmp_path / PARENT / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(path)
    finders = list(sys.meta_path)
    yield
    sys.meta_path[:] = finders
    for name in [name for name in sys.modules if name.startswith(PARENT)]:
        del sys.modules[name]


@pytest.mark.usefixtures("package")
def test_a_hook_sees_a_loaded_module_now_and_another_once_it_is_loaded() -> None:
    seen: list[tuple[str, ModuleType, int]] = []

    def hook(number: str) -> None:
        when_imported(MODULE, lambda module: seen.append((number, module, module.value)))

    hook("before")
    hook("before too")
    assert seen == []
    module = importlib.import_module(MODULE)
    assert seen == [("before", module, 1), ("before too", module, 1)]
    hook("after")
    assert seen[2:] == [("after", module, 1)]
    importlib.reload(module)
    assert [number for number, *_ in seen[3:]] == ["before", "before too", "after"]


@pytest.mark.usefixtures("package")
def test_a_module_with_a_hook_is_otherwise_the_same() -> None:
    when_imported(MODULE, lambda module: None)
    hooked = importlib.import_module(MODULE)
    other = importlib.import_module(f"{PARENT}.other")
    assert hooked.__spec__ is not None
    assert type(hooked.__spec__.loader) is type(hooked.__loader__) is type(other.__loader__)
    assert inspect.getsource(hooked.twice) == "def twice(x):\n    return 2 * x\n"


@pytest.mark.usefixtures("package")
def test_missing_module_raises_module_not_found_error() -> None:
    when_imported(f"{PARENT}.absent", lambda module: pytest.fail("called"))
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{PARENT}.absent'"):
        importlib.import_module(f"{PARENT}.absent")
