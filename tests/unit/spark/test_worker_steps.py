"""A worker's step leaves no archive finder behind, and no traceback of our own errors.

After the first step of a worker, garbage collection leaves out what is imported.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import zipfile
import zipimport
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from iceberg_pyspark.errors import IcebergError, StorageError
from iceberg_pyspark.spark.rows.worker_steps import _freeze_objects, worker_step


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


def test_failed_step_clears_path_caches(archive: str) -> None:
    def fails() -> None:
        with worker_step():
            importlib.import_module("first_of_archive")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert archive not in sys.path_importer_cache


@pytest.mark.parametrize(
    ("main", "error", "hidden"),
    [
        ("pyspark.daemon", StorageError("no file"), "1"),
        ("pyspark.sql.worker.create_data_source", IcebergError("x"), "1"),
        ("pyspark.daemon", KeyError("a bug of ours"), None),
        ("a_program_of_a_user", StorageError("no file"), None),
        (None, StorageError("no file"), None),
    ],
)
def test_pyspark_shows_an_error_of_ours_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, main: str | None, error: Exception, hidden: str | None
) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "to be put back")
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK")
    spec = None if main is None else ModuleSpec(main, None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    with pytest.raises(type(error)), worker_step():
        raise error
    assert os.environ.pop("SPARK_HIDE_TRACEBACK", None) == hidden


@pytest.mark.parametrize(
    ("main", "is_frozen"), [("pyspark.daemon", True), ("a_program_of_a_user", False), (None, False)]
)
def test_a_worker_leaves_imported_objects_out_of_garbage_collection(
    monkeypatch: pytest.MonkeyPatch, main: str | None, is_frozen: bool
) -> None:
    spec = None if main is None else ModuleSpec(main, None)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    gc.unfreeze()
    _freeze_objects.cache_clear()
    try:
        with worker_step():
            assert gc.get_freeze_count() == 0
        first = gc.get_freeze_count()
        objects_of_the_next_step: list[list[object]] = [[] for _ in range(1000)]
        with worker_step():
            pass
        assert (first > 0) is is_frozen
        assert gc.get_freeze_count() <= first
        assert len(objects_of_the_next_step) == 1000
    finally:
        gc.unfreeze()
        _freeze_objects.cache_clear()
