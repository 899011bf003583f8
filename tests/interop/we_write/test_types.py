"""Every type in every format version, extremes, nulls at each level: read alike by all readers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.every_type import SPARK_KNOWS_NOT, every_type
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import (
    VERSIONS,
    assert_all_read,
    our_catalog,
    pyiceberg_table,
    write_frame,
)
from tests.support.rows import arrow_rows

# PyIceberg 0.12 reads a null list or map of structs as an empty one, whoever wrote it
PYICEBERG_LOSES_NULLS_OF = ("li", "ma")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_sql.we_write_types.every_{version}"
    rows = every_type(version)
    table = our_catalog(oracle, "java_sql").create_table(
        name, rows.schema, properties={"format-version": str(version)}
    )
    table.append(rows)
    assert_all_read(java, name, rows, with_pyiceberg=False)
    columns = [c for c in rows.column_names if c not in PYICEBERG_LOSES_NULLS_OF]
    with pyiceberg_table(oracle, name) as theirs:
        found = theirs.scan(selected_fields=tuple(columns)).to_arrow()
    assert show_rows(found.select(columns)) == show_rows(rows.select(columns))


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_of_spark(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_hadoop.we_write_types.spark_{version}"
    every = every_type(version)
    rows = every.select([c for c in every.column_names if c not in SPARK_KNOWS_NOT])
    table = our_catalog(oracle, "java_hadoop").create_table(
        name, rows.schema, properties={"format-version": str(version)}
    )
    table.append(rows)
    assert oracle.table_rows(name) == arrow_rows(with_uuids_as_text(rows))
    # the same rows once more, as Spark reads them, through our data source
    write_frame(oracle, oracle.spark.table(name), name)
    assert java.rows(name) == sorted([*show_rows(rows), *show_rows(rows)])


def with_uuids_as_text(rows: pa.Table) -> pa.Table:
    """Spark has no uuid: it shows them as text."""
    text = [None if u is None else str(u) for u in rows["u"].to_pylist()]
    return rows.set_column(rows.column_names.index("u"), "u", pa.array(text, pa.string()))


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_that_no_row_has_a_value_in(oracle: Oracle, java: JavaTables, version: int) -> None:
    name = f"java_hadoop.we_write_types.nulls_{version}"
    rows = every_type(version).slice(2, 1)
    table = our_catalog(oracle, "java_hadoop").create_table(
        name, rows.schema, properties={"format-version": str(version)}
    )
    table.append(rows)
    assert_all_read(java, name, rows, with_pyiceberg=False)
