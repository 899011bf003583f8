"""Data files in Avro and ORC, beside Parquet and with deletes of each kind."""

from __future__ import annotations

import pytest

from tests.interop.java_writes.test_types import COLUMNS, ROWS
from tests.support.oracle import Oracle
from tests.support.readings import assert_read_alike


@pytest.mark.parametrize("file_format", ["avro", "orc"])
def test_all_types(oracle: Oracle, file_format: str) -> None:
    name = f"java_hadoop.formats.types_{file_format}"
    oracle.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg "
        f"TBLPROPERTIES ('write.format.default' = '{file_format}')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES {ROWS}")
    rows = assert_read_alike(oracle, name, through_spark=True)
    assert len(rows) == 4
