"""Use the oracle's tables with our code; `tests.support.readings` compares the readers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergSqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as PyIcebergTable
from pyspark.sql import DataFrame

from iceberg_pyspark import Schema, Table, TableCatalog, load_catalog
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.readings import catalog_properties, our_table
from tests.support.rows import spark_rows

CATALOGS = ("java_hadoop", "java_sql")
VERSIONS = (1, 2, 3)


def our_catalog(oracle: Oracle, catalog: str) -> TableCatalog:
    """Open our catalog on the folder or SQLite file of one of the oracle's catalogs."""
    return load_catalog(catalog, **catalog_properties(oracle, catalog))


def new_table(oracle: Oracle, name: str, schema: str | Schema | pa.Schema, **more: Any) -> Table:
    """Create a table of a full name, and its namespace, in our catalog of the oracle's."""
    catalog = our_catalog(oracle, name.partition(".")[0])
    catalog.create_namespace(name.partition(".")[2].rpartition(".")[0], if_not_exists=True)
    return catalog.create_table(name, schema, **more)


def write_frame(
    oracle: Oracle, frame: DataFrame, name: str, mode: str = "append", **options: str
) -> None:
    """Write a DataFrame through our data source; options are spelled with _ for -."""
    catalog, _, rest = name.partition(".")
    writer = frame.write.format("iceberg-py").mode(mode).option("catalog", catalog)
    for key, value in catalog_properties(oracle, catalog).items():
        writer = writer.option(f"catalog.{key}", value)
    for key, value in options.items():
        writer = writer.option(key.replace("_", "-"), value)
    writer.save(rest)


@contextlib.contextmanager
def pyiceberg_table(oracle: Oracle, name: str) -> Iterator[PyIcebergTable]:
    """Open a table with PyIceberg: by its SQL catalog, or else from the metadata file."""
    catalog, _, rest = name.partition(".")
    if catalog == "java_hadoop":
        yield StaticTable.from_metadata(our_table(oracle, name).loaded.metadata_location)
        return
    theirs = PyIcebergSqlCatalog(catalog, **catalog_properties(oracle, catalog))
    try:
        yield theirs.load_table(rest)
    finally:
        theirs.engine.dispose()


def assert_all_read(
    java: JavaTables,
    name: str,
    expected: pa.Table,
    *,
    through_spark: bool = False,
    with_pyiceberg: bool = True,
) -> None:
    """Assert that all readers see exactly these rows, and that Java finds no file misplaced."""
    rows = show_rows(expected)
    assert java.rows(name) == rows
    assert java.file_problems(name) == []
    ours = our_table(java.oracle, name).scan().to_arrow()
    assert show_rows(ours) == rows
    if with_pyiceberg:
        with pyiceberg_table(java.oracle, name) as theirs:
            assert show_rows(theirs.scan().to_arrow()) == rows
    if through_spark:
        frame = java.oracle.spark.createDataFrame(ours)
        assert java.oracle.table_rows(name) == spark_rows(frame.collect())
