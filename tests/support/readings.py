"""One table as three readers see it: Java's, ours through Spark, and ours without Spark.

Tables are named as the oracle names them, `java_hadoop.db.events` or `java_sql.db.events`; ours are
opened through our own catalog on the same folder or SQLite file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.spark.options import parse_read_options
from iceberg_pyspark.table.scan import TableScan, scan_table
from tests.support.oracle import Oracle
from tests.support.rows import PlainRow, arrow_rows, spark_rows


def table_path(oracle: Oracle, name: str) -> str:
    """Return the folder of a table of `java_hadoop`, by which it can be named too."""
    catalog, namespace, table = name.split(".")
    assert catalog == "java_hadoop"
    return f"{oracle.warehouse}/{namespace}/{table}"


def catalog_properties(oracle: Oracle, catalog: str) -> dict[str, str]:
    """Return what our catalog needs to see the tables of that catalog of the oracle."""
    if catalog == "java_hadoop":
        return {"type": "hadoop", "warehouse": str(oracle.warehouse)}
    return {
        "type": "sql",
        "uri": f"sqlite:///{oracle.sql_file}",
        "warehouse": str(oracle.sql_warehouse),
    }


def our_table(oracle: Oracle, name: str) -> Table:
    """Open a table of the oracle through our catalog."""
    catalog = name.partition(".")[0]
    return load_catalog(catalog, **catalog_properties(oracle, catalog)).load_table(name)


def our_scan(oracle: Oracle, name: str, **options: str) -> TableScan:
    """Scan a table of the oracle without Spark; options are those of `spark.read`."""
    read = parse_read_options(_spelled(options))
    table = our_table(oracle, name)
    return scan_table(
        name,
        table.metadata,
        table.io,
        selector=read.selector,
        columns=read.columns,
        filter=read.filter,
        case_sensitive=read.case_sensitive,
        split_overrides=read.split_properties,
    )


def our_rows(oracle: Oracle, name: str, **options: str) -> list[PlainRow]:
    """Read without Spark: rows in the form of tests.support.rows, sorted."""
    return arrow_rows(our_scan(oracle, name, **options).to_arrow())


def our_frame(oracle: Oracle, name: str, **options: str) -> DataFrame:
    """Open a table of the oracle through Spark and our data source."""
    catalog, _, rest = name.partition(".")
    reader = oracle.spark.read.format("iceberg-py").option("catalog", catalog)
    for key, value in catalog_properties(oracle, catalog).items():
        reader = reader.option(f"catalog.{key}", value)
    return reader.options(**_spelled(options)).load(rest)


def path_frame(oracle: Oracle, name: str, **options: str) -> DataFrame:
    """Open a table of `java_hadoop` by its path, through Spark and our data source."""
    reader = oracle.spark.read.format("iceberg-py").options(**_spelled(options))
    return reader.load(table_path(oracle, name))


def assert_read_alike(
    oracle: Oracle,
    name: str,
    java: DataFrame | None = None,
    *,
    through_spark: bool = False,
    **options: str,
) -> list[PlainRow]:
    """Compare our rows with Java's, which are the whole table unless `java` says else; return them.

    `through_spark` reads a third time, through our data source, and compares schemas too. A second
    DataFrame costs a second; tests of what happens below Spark do without.
    """
    expected_frame = oracle.spark.table(name) if java is None else java
    expected = spark_rows(expected_frame.collect())
    assert our_rows(oracle, name, **options) == expected
    if through_spark:
        frame = our_frame(oracle, name, **options)
        assert plain_schema(frame) == plain_schema(expected_frame)  # names, types, nullability
        assert spark_rows(frame.collect()) == expected
    return expected


def plain_schema(frame: DataFrame) -> Any:
    """Return names, types and nullability of a DataFrame's columns, without their metadata."""
    return _without_metadata(frame.schema.jsonValue())


def _without_metadata(value: Any) -> Any:
    match value:
        case dict():
            return {k: _without_metadata(v) for k, v in value.items() if k != "metadata"}
        case list():
            return [_without_metadata(item) for item in value]
    return value


def _spelled(options: Mapping[str, str]) -> dict[str, str]:
    """Return options under their own names: snapshot_id=... stands for snapshot-id."""
    return {name.replace("_", "-"): str(value) for name, value in options.items()}


def rows_selected(
    oracle: Oracle, name: str, filters: Iterable[str], columns: str = "id"
) -> dict[str, list[PlainRow]]:
    """Return for each filter the rows that Spark finds to match it, in one job for all.

    The filters are columns here, so that Java skips no file: a wrong skip of ours shows.
    """
    filters = list(filters)
    flags = ", ".join(f"({text})" for text in filters)
    rows = oracle.sql(f"SELECT {columns}, {flags} FROM {name}").collect()
    width = len(rows[0]) - len(filters)
    return {
        text: spark_rows(row[:width] for row in rows if row[width + i] is True)
        for i, text in enumerate(filters)
    }


def assert_filters_alike(
    oracle: Oracle, name: str, filters: Iterable[str], columns: str = "id"
) -> None:
    """Compare the rows we read by each filter with those that Spark finds to match it.

    A filter that selects nothing tests nothing and fails.
    """
    for text, expected in rows_selected(oracle, name, filters, columns).items():
        assert our_rows(oracle, name, columns=columns, filter=text) == expected, text
        assert expected, text


def java_planned_files(oracle: Oracle, name: str, filter_text: str) -> int:
    """Return how many data files Java would read for a filter."""
    converter = oracle.jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    expression = converter.convertToIcebergExpression(
        converter.collectResolvedSparkExpression(oracle.java_session, name, filter_text)
    )
    tasks = oracle.load_java_table(name).newScan().filter(expression).planFiles()
    paths = set()
    iterator = tasks.iterator()
    while iterator.hasNext():
        paths.add(iterator.next().file().location())
    tasks.close()
    return len(paths)
