"""Tables without a snapshot, without a file and without a row."""

from __future__ import annotations

import pytest

from tests.support.oracle import Oracle
from tests.support.readings import assert_read_alike, our_scan

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("version", [1, 2, 3])
def test_no_snapshot_then_one_without_files_then_files_without_rows(
    oracle: Oracle, version: int
) -> None:
    name = f"java_{'sql' if version == 2 else 'hadoop'}.empty.table_{version}"
    oracle.sql(
        f"CREATE TABLE {name} (id INT, s STRUCT<a: STRING>) USING iceberg PARTITIONED BY (id) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    assert assert_read_alike(oracle, name, through_spark=version == 2) == []
    oracle.sql(f"INSERT INTO {name} SELECT 1, null WHERE false")
    assert assert_read_alike(oracle, name) == []
    scan = our_scan(oracle, name, filter="id = 1")
    assert scan.snapshot is not None
    assert scan.count() == 0
    oracle.sql(f"INSERT INTO {name} VALUES (1, null)")
    oracle.sql(f"DELETE FROM {name} WHERE id = 1")
    assert assert_read_alike(oracle, name, through_spark=version == 2) == []
    oracle.sql(f"DELETE FROM {name}")
    assert assert_read_alike(oracle, name) == []


def test_a_file_of_which_every_row_is_deleted(oracle: Oracle) -> None:
    name = "java_sql.empty.deleted"
    oracle.sql(f"CREATE TABLE {name} (id INT) USING iceberg")
    oracle.sql(f"INSERT INTO {name} SELECT id FROM range(0, 5, 1, 1)")
    [file] = oracle.data_files(name)
    oracle.write_position_deletes(name, [(file, i) for i in range(5)])
    assert assert_read_alike(oracle, name, through_spark=True) == []
    assert our_scan(oracle, name).count() == 0
