"""Every type in every format version, with extremes and nulls at each level: all readers agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.spec.values import decimal_of
from tests.support.every_type import SPARK_KNOWS_NOT, every_type
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import (
    VERSIONS,
    assert_all_read,
    new_table,
    pyiceberg_table,
    write_frame,
)
from tests.support.parameters import cases
from tests.support.raw_avro import raw_data_files
from tests.support.readings import our_table
from tests.support.rows import arrow_rows

# PyIceberg 0.12 reads a null list or map of structs as empty, whoever wrote it.
PYICEBERG_LOSES_NULLS_OF = ("li", "ma")


@cases("version", fast=[3], nightly=[1, 2])
def test_every_type(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write_types.every_{version}"
    rows = every_type(version)
    table = new_table(oracle, name, rows.schema, properties={"format-version": str(version)})
    table.append(rows)
    assert_all_read(java, name, rows, with_pyiceberg=False)
    columns = [c for c in rows.column_names if c not in PYICEBERG_LOSES_NULLS_OF]
    with pyiceberg_table(oracle, name) as theirs:
        actual = theirs.scan(selected_fields=tuple(columns)).to_arrow()
    assert show_rows(actual.select(columns)) == show_rows(rows.select(columns))


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
def test_every_type_of_spark(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_hadoop.we_write_types.spark_{version}"
    every = every_type(version)
    rows = every.select([c for c in every.column_names if c not in SPARK_KNOWS_NOT])
    table = new_table(oracle, name, rows.schema, properties={"format-version": str(version)})
    table.append(rows)
    assert oracle.table_rows(name) == arrow_rows(with_uuids_as_text(rows))
    # Write the rows again, as Spark reads them, through our data source.
    write_frame(oracle, oracle.spark.table(name), name)
    assert java.rows(name) == sorted([*show_rows(rows), *show_rows(rows)])


def with_uuids_as_text(rows: pa.Table) -> pa.Table:
    """Replace uuids by text, since Spark shows uuids as text."""
    text = [None if u is None else str(u) for u in rows["u"].to_pylist()]
    return rows.set_column(rows.column_names.index("u"), "u", pa.array(text, pa.string()))


@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_that_no_row_has_a_value_in(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_hadoop.we_write_types.nulls_{version}"
    rows = every_type(version).slice(2, 1)
    table = new_table(oracle, name, rows.schema, properties={"format-version": str(version)})
    table.append(rows)
    assert_all_read(java, name, rows, with_pyiceberg=False)


@pytest.mark.nightly
@pytest.mark.parametrize("version", VERSIONS)
def test_files_have_the_schema_of_java(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write_types.schema_{version}"
    # Leave out "b b": Java and PyIceberg escape in Parquet names that only Avro forbids; we do not.
    rows = every_type(version).drop_columns(["st"])
    table = new_table(oracle, name, rows.schema, properties={"format-version": str(version)})
    table.append(rows)
    java.create(f"{name}_twin", like=name)
    java.copy(name, f"{name}_twin")
    [ours], [javas] = data_files(oracle, name), data_files(oracle, f"{name}_twin")
    # Names, repetition, physical and logical types, and field ids at every level.
    assert parquet_columns(ours) == parquet_columns(javas)
    assert field_ids(pq.read_schema(ours)) == field_ids(pq.read_schema(javas))


def data_files(oracle: Oracle, name: str) -> list[str]:
    return [str(file["file_path"]) for file in raw_data_files(our_table(oracle, name))]


def parquet_columns(location: str) -> list[tuple[str, str, str, int, int]]:
    schema = pq.ParquetFile(location).schema
    columns = [schema.column(i) for i in range(len(schema))]
    return [
        (
            *(c.path, c.physical_type, str(c.logical_type)),
            *(c.max_definition_level, c.max_repetition_level),
        )
        for c in columns
    ]


def field_ids(fields: Iterable[pa.Field]) -> list[tuple[str, bytes | None, list[Any]]]:
    return [
        (f.name, (f.metadata or {}).get(b"PARQUET:field_id"), field_ids(children(f.type)))
        for f in fields
    ]


def children(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    return [type_.field(i) for i in range(type_.num_fields)]


@pytest.mark.nightly
def test_decimals_of_every_precision(oracle: Oracle, java: JavaTables) -> None:
    name = "java_hadoop.we_write_types.decimals"
    columns = {
        f"d{p}_{s}": pa.array(
            [decimal_of(10**p - 1, s), decimal_of(1 - 10**p, s), decimal_of(-1, s), None],
            pa.decimal128(p, s),
        )
        for p in range(1, 39)
        for s in {0, p // 2, p}
    }
    rows = pa.table(columns)
    table = new_table(oracle, name, rows.schema)
    table.append(rows)
    assert_all_read(java, name, rows, through_spark=True)
    java.create(f"{name}_twin", like=name)
    java.copy(name, f"{name}_twin")
    [ours], [javas] = data_files(oracle, name), data_files(oracle, f"{name}_twin")
    assert parquet_columns(ours) == parquet_columns(javas)
    our_file, java_file = raw_data_files(table), raw_data_files(our_table(oracle, f"{name}_twin"))
    for key in ("lower_bounds", "upper_bounds", "value_counts", "null_value_counts"):
        assert our_file[0][key] == java_file[0][key]
