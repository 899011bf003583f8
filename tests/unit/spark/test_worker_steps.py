"""A step in a worker leaves no finder of an archive, and archives stay on the path."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from iceberg_pyspark.spark.worker_steps import worker_step


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "modules.zip"
    with zipfile.ZipFile(path, "w") as modules:
        modules.writestr("first_of_archive.py", "number = 1")
        modules.writestr("second_of_archive.py", "number = 2")
    monkeypatch.syspath_prepend(str(path))
    for name in ("first_of_archive", "second_of_archive"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return str(path)


def test_an_archive_is_not_read_again_for_the_next_step(archive: str) -> None:
    with worker_step():
        assert importlib.import_module("first_of_archive").number == 1
        assert isinstance(sys.path_importer_cache[archive], zipimport.zipimporter)
    assert not any(isinstance(f, zipimport.zipimporter) for f in sys.path_importer_cache.values())
    importlib.invalidate_caches()
    with worker_step():
        assert importlib.import_module("second_of_archive").number == 2


def test_a_step_that_fails_drops_them_too(archive: str) -> None:
    def fails() -> None:
        with worker_step():
            importlib.import_module("first_of_archive")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert archive not in sys.path_importer_cache
