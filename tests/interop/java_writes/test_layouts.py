"""Locations that Java may use: object storage, other folders, compressed metadata, odd names."""

from __future__ import annotations

import gzip
from itertools import cycle
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from tests.support.oracle import Oracle
from tests.support.readings import (
    EVERY_READ,
    assert_filters_alike,
    assert_read_alike,
    our_frame,
    our_scan,
    our_table,
    path_frame,
    rows_alike,
    table_path,
)
from tests.support.rows import spark_rows

pytestmark = pytest.mark.nightly

PROPERTIES = {
    "object_storage": {"write.object-storage.enabled": "true"},
    "object_storage_flat": {
        "write.object-storage.enabled": "true",
        "write.object-storage.partitioned-paths": "false",
    },
    "gzip": {"write.metadata.compression-codec": "gzip"},
    "manifests": {
        "write.avro.compression-codec": "snappy",
        "commit.manifest.min-count-to-merge": "2",
    },
    "no_merge": {"commit.manifest-merge.enabled": "false", "write.avro.compression-codec": "zstd"},
    "few_versions": {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    },
    "parquet_v2_gzip": {
        "write.parquet.compression-codec": "gzip",
        "write.parquet.page-version": "v2",
        "write.parquet.dict-size-bytes": "1",
    },
    "parquet_snappy": {
        "write.parquet.compression-codec": "snappy",
        "write.parquet.bloom-filter-enabled.column.id": "true",
    },
    "plain_avro": {
        "write.summary.partition-limit": "10",
        "write.avro.compression-codec": "uncompressed",
    },
}


@pytest.mark.parametrize(
    ("layout", "catalog"),
    [*zip(PROPERTIES, cycle(["java_sql", "java_hadoop"])), ("gzip", "java_hadoop")],
)
def test_properties_that_change_files(oracle: Oracle, layout: str, catalog: str) -> None:
    name = f"{catalog}.layouts.{layout}"
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES[layout].items())
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ({properties})"
    )
    for start in (0, 10):
        oracle.sql(
            f"INSERT INTO {name} SELECT id, concat('p/', id % 2) FROM range({start}, {start + 5})"
        )
    oracle.sql(f"DELETE FROM {name} WHERE id = 3")
    rows = assert_read_alike(oracle, name)
    assert len(rows) == 9
    scan = our_scan(oracle, name, filter="id >= 10 AND p = 'p/0'", columns="id")
    assert scan.describe().statistics.data_files_kept == 1
    assert scan.to_arrow().num_rows == 3
    if layout.startswith("object_storage"):
        in_partitions = all("/p=p%2F" in path for path in oracle.data_files(name))
        assert in_partitions == (layout == "object_storage")
    if layout == "gzip":
        loaded = our_table(oracle, name).loaded.metadata_location
        assert loaded.endswith(".gz.metadata.json")
        assert gzip.decompress(Path(loaded).read_bytes()).startswith(b"{")
        if catalog == "java_hadoop":
            assert spark_rows(path_frame(oracle, name).collect()) == rows


def test_data_and_metadata_in_folders_outside_the_table(oracle: Oracle) -> None:
    name = "java_sql.layouts.elsewhere"
    elsewhere = oracle.sql_warehouse.parent / "elsewhere"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT) USING iceberg TBLPROPERTIES "
        f"('write.data.path' = '{elsewhere}/data', 'write.metadata.path' = '{elsewhere}/meta', "
        "'write.object-storage.enabled' = 'true')"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (1), (2)")
    assert_read_alike(oracle, name, through_spark=EVERY_READ)
    assert all(str(elsewhere / "data") in path for path in oracle.data_files(name))
    assert str(elsewhere / "meta") in our_table(oracle, name).loaded.metadata_location
    # Files that were written to the former folders still belong to the table.
    oracle.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('write.data.path', 'write.metadata.path')")
    assert_read_alike(oracle, name, through_spark=EVERY_READ)
    with pytest.raises(PySparkException, match="restrict-locations"):
        our_frame(oracle, name, **{"read.restrict-locations": "true"}).collect()


def test_a_location_of_its_own_and_files_with_a_scheme(oracle: Oracle) -> None:
    name = "java_sql.layouts.located"
    folder = oracle.sql_warehouse.parent / "a folder with spaces+and %41 signs"
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) "
        f"LOCATION 'file://{folder}'"
    )
    oracle.sql(f"INSERT INTO {name} VALUES (1, 'a b'), (2, 'ä/ö?x=1&y#z')")
    oracle.sql(f"INSERT INTO {name} VALUES (3, '%41+'), (4, null)")
    oracle.sql(f"DELETE FROM {name} WHERE id = 3")
    assert len(assert_read_alike(oracle, name, through_spark=EVERY_READ)) == 3
    assert_filters_alike(oracle, name, ["p = 'ä/ö?x=1&y#z'", "p IS NULL"], natively=True)


def test_the_hadoop_folder_without_a_hint_or_with_a_stale_one(oracle: Oracle) -> None:
    name = "java_hadoop.layouts.hints"
    oracle.sql(f"CREATE TABLE {name} (id INT) USING iceberg")
    oracle.sql(f"INSERT INTO {name} VALUES (1)")
    oracle.sql(f"INSERT INTO {name} VALUES (2)")
    hint = Path(table_path(oracle, name)) / "metadata/version-hint.text"
    crc = hint.with_name(".version-hint.text.crc")
    assert hint.read_text() == "3"
    for stale in ("1", "2", None, "not a number"):
        crc.unlink(missing_ok=True)
        if stale is None:
            hint.unlink()
        else:
            hint.write_text(stale)
        assert rows_alike(oracle, name) == [(1,), (2,)]
        if stale != "not a number":
            assert oracle.table_rows(name) == [(1,), (2,)]


def test_names_with_special_characters(oracle: Oracle) -> None:
    odd = ["a.b", "with space", "1st", "é𐍈", "a", "UPPER", "-", "select", "a`b", "x/y", "%20", "?"]
    definitions = ", ".join(f"`{c.replace('`', '``')}` INT" for c in odd)
    name = "java_sql.layouts.names"
    oracle.sql(
        f"CREATE TABLE {name} ({definitions}, s STRUCT<`b.c`: INT, `2 d`: STRUCT<`😀`: STRING>>) "
        "USING iceberg PARTITIONED BY "
        "(`a.b`, bucket(2, `with space`), truncate(2, `1st`), `é𐍈`, `x/y`)"
    )
    values = ", ".join(str(i) for i in range(len(odd)))
    oracle.sql(f"INSERT INTO {name} VALUES ({values}, struct(1, struct('x')))")
    oracle.sql(f"INSERT INTO {name} SELECT {', '.join(['null'] * len(odd))}, null")
    oracle.write_equality_deletes(name, ["UPPER"], [(77,)], (0, 0, 2, 3, 9))
    assert len(assert_read_alike(oracle, name, through_spark=True)) == 2
    filters = [
        "`a.b` = 0",
        "`with space` = 1",
        "`1st` >= 2",
        "`é𐍈` IS NOT NULL",
        "`x/y` = 9 AND `%20` = 10",
        "`a``b` = 8",
        "upper = 5",
        "`s`.`b.c` = 1 AND s.`2 d`.`😀` = 'x'",
    ]
    some = ["`a.b`, a", "`a``b`, `with space`, `1st`", "UPPER, `x/y`, `%20`, `?`, s"]
    for columns in some if EVERY_READ else [", ".join(some)]:
        assert_filters_alike(oracle, name, filters, columns, natively=True)
