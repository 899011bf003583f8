"""ORC and Avro data files that we write: all readers agree, and the metrics equal Java's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.arrow.formats.parquet_writer import WRITES_BLOOM_FILTERS
from tests.interop.we_write.test_metrics import plain
from tests.interop.we_write.test_types import PYICEBERG_LOSES_NULLS_OF, with_uuids_as_text
from tests.support.every_type import SPARK_KNOWS_NOT, every_type
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import VERSIONS, new_table, pyiceberg_table
from tests.support.raw_avro import raw_data_files
from tests.support.readings import our_table
from tests.support.rows import arrow_rows

pytestmark = pytest.mark.nightly

FORMATS = pytest.mark.parametrize("file_format", ["orc", "avro"])
# The counts that Java's ORC writer collects too, for columns with a value in each row.
COUNTS = ("value_counts", "null_value_counts")
BOUNDS = ("lower_bounds", "upper_bounds")
# Java's ORC writer collects no bounds for these columns.
UNBOUNDED = ("bin", "fx", "u")
# PyIceberg 0.12 does not look at the Iceberg type of ORC's bytes and longs.
PYICEBERG_READS_NOT = ("u", "fx", "tm")


def rows_of(version: int, file_format: str) -> pa.Table:
    """Return every type; for ORC, without fractional seconds before 1970."""
    rows = every_type(version)
    if file_format == "avro":
        return rows
    for name in ("ts", "tz", "ns", "tzns"):
        if name in rows.column_names:
            i = rows.column_names.index(name)
            type_ = rows.schema.field(i).type
            second = 1_000_000 if type_.unit == "us" else 1_000_000_000
            values = [2**62, -7_000_000_000 * second, None, -second]
            if type_.unit == "us":
                values[:2] = [253402300799999999, -62135510400 * second]
            rows = rows.set_column(i, name, pa.array(values, type_))
    return rows


@FORMATS
@pytest.mark.parametrize("version", VERSIONS)
def test_every_type(oracle: Oracle, java: JavaTables, version: int, file_format: str) -> None:
    name = f"java_sql.we_write_formats.every_{file_format}_{version}"
    rows = rows_of(version, file_format)
    table = new_table(
        oracle,
        name,
        rows.schema,
        properties={"format-version": str(version), "write.format.default": file_format},
    )
    table.append(rows)
    assert java.rows(name) == show_rows(rows)
    # Arrow reads ORC timestamps as nanoseconds, and refuses timestamps outside that range.
    near = rows.drop_columns(["ts", "tz"]) if file_format == "orc" else rows
    scanned = our_table(oracle, name).scan(columns=near.column_names)
    assert show_rows(scanned.to_arrow()) == show_rows(near)
    if file_format == "orc" and version < 3:
        columns = [
            c
            for c in near.column_names
            if c not in (*PYICEBERG_LOSES_NULLS_OF, *PYICEBERG_READS_NOT)
        ]
        with pyiceberg_table(oracle, name) as theirs:
            actual = theirs.scan(selected_fields=tuple(columns)).to_arrow()
        assert show_rows(actual) == show_rows(rows.select(columns))


@FORMATS
def test_every_type_of_spark(oracle: Oracle, java: JavaTables, file_format: str) -> None:
    name = f"java_sql.we_write_formats.spark_{file_format}"
    every = rows_of(2, file_format)
    rows = every.select([c for c in every.column_names if c not in SPARK_KNOWS_NOT])
    table = new_table(oracle, name, rows.schema, properties={"write.format.default": file_format})
    table.append(rows)
    assert oracle.table_rows(name) == arrow_rows(with_uuids_as_text(rows))
    if file_format == "avro":
        # Java's Avro writer collects no metrics.
        return
    twin = f"{name}_twin"
    java.create(twin, like=name)
    oracle.sql(f"INSERT INTO {twin} SELECT /*+ COALESCE(1) */ * FROM {name}")
    [ours], [javas] = raw_data_files(table), raw_data_files(our_table(oracle, twin))
    ids = table.schema.id_by_name
    for key in ("record_count", "nan_value_counts", "sort_order_id", "file_format", "content"):
        assert plain(ours.get(key)) == plain(javas.get(key)), key
    for key in COUNTS:
        # Java also counts structs, lists and maps.
        assert ours[key].items() <= javas[key].items(), key
    for key in BOUNDS:
        bounded = without(ours[key], {ids[c] for c in UNBOUNDED})
        assert plain(bounded) == plain(javas[key]), key


def without(metrics: Mapping[int, Any], ids: set[int]) -> dict[int, Any]:
    return {i: value for i, value in metrics.items() if i not in ids}


@FORMATS
def test_partitions_and_many_files(oracle: Oracle, java: JavaTables, file_format: str) -> None:
    name = f"java_hadoop.we_write_formats.parts_{file_format}"
    count = 6000
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "p": pa.array([("a b", "é/1", None)[i % 3] for i in range(count)]),
            "s": pa.array(
                [{"x": None if i % 5 == 0 else f"{i * 7919 % 20011}" * 9} for i in range(count)]
            ),
        }
    )
    table = new_table(
        oracle,
        name,
        rows.schema,
        partitioned_by=("p",),
        properties={
            "write.format.default": file_format,
            "write.target-file-size-bytes": "50000",
            f"write.{file_format}.compression-codec": "none",
        },
    )
    table.append(rows)
    assert java.rows(name) == show_rows(rows)
    assert show_rows(our_table(oracle, name).scan().to_arrow()) == show_rows(rows)
    sizes = [f["file_size_in_bytes"] for f in raw_data_files(table)]
    assert len(sizes) >= 3
    assert max(sizes) < 100_000
    counted = oracle.sql(f"SELECT count(*) FROM {name} WHERE p = 'é/1' AND id < 300")
    assert counted.collect()[0][0] == 100


@pytest.mark.skipif(not WRITES_BLOOM_FILTERS, reason="this pyarrow writes none")
def test_parquets_bloom_filters_are_javas(oracle: Oracle) -> None:
    rows = pa.table({"id": range(1000), "s": [f"s{i * 2}" for i in range(1000)]})
    table = new_table(
        oracle,
        "java_hadoop.we_write_formats.bloom",
        rows.schema,
        properties={
            "write.parquet.bloom-filter-enabled.column.s": "true",
            "write.parquet.bloom-filter-ndv.column.s": "1000",
        },
    )
    table.append(rows)
    [file] = raw_data_files(table)
    jvm = oracle.jvm
    path = jvm.org.apache.hadoop.fs.Path(file["file_path"])
    conf = jvm.org.apache.hadoop.conf.Configuration()
    parquet = jvm.org.apache.parquet.hadoop
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, conf))
    id_, s = reader.getRowGroups().get(0).getColumns()
    assert reader.readBloomFilter(id_) is None
    actual = reader.readBloomFilter(s)
    text = jvm.org.apache.parquet.io.api.Binary.fromString
    has = {value: actual.findHash(actual.hash(text(value))) for value in ("s0", "s998", "s1", "t")}
    reader.close()
    assert has == {"s0": True, "s998": True, "s1": False, "t": False}
