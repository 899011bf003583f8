"""The files of a row-level operation that ends between its job and its commit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.spark.row_level.execution import _Run
from iceberg_pyspark.spark.row_level.row_level_job import TouchedRows
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.commit_tables import commit_table


class LostRead:
    """A read whose files cannot be planned."""

    def files(self, paths: object) -> Any:
        raise StorageError("a manifest cannot be read")


@pytest.mark.parametrize(
    ("duplicate_match", "error"), [(None, StorageError), ("/t/a.parquet", InvalidRequestError)]
)
def test_new_files_are_removed(duplicate_match: str | None, error: type[Exception]) -> None:
    io = MemoryFileIO()
    io.write_bytes("/t/new.parquet", b"rows")
    target: Any = SimpleNamespace(
        name="t",
        io=io,
        metadata=commit_table().metadata,
        selection=None,
        write=SimpleNamespace(options=None, write_id="1"),
    )
    operation: Any = SimpleNamespace(requires_single_match=True)
    new_file: Any = SimpleNamespace(file_path="/t/new.parquet")
    rows = TouchedRows(data_files=(new_file,), duplicate_match=duplicate_match)
    read: Any = LostRead()
    with pytest.raises(error):
        _Run(operation, target)._commit(target, rows, None, read)
    assert not io.exists("/t/new.parquet")
