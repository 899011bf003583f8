"""Compare the readers of a table: Java, ours without Spark, the data source, native reads.

Tables have the oracle's names, `java_hadoop.db.events` or `java_sql.db.events`; we open them
through our own catalog on the same folder or SQLite file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.spark.data_source.read_options import parse_read_options
from iceberg_pyspark.spark.session import install
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table
from tests.amounts import FULL_WORK
from tests.support.oracle import Oracle
from tests.support.rows import PlainRow, arrow_rows, spark_rows
from tests.support.spark_settings import NOT_ADAPTIVE, configured

EVERY_READ = FULL_WORK
"""Whether tests make every read, or of several similar reads only some, as in `make test`."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for what Java does alone: compiling a plan for a few rows takes longer than running it.

What our code reads or writes, Spark compiles as it does for users.
"""

INTERPRETED_QUERY = INTERPRETED | NOT_ADAPTIVE
"""Settings for queries of Java alone, of which each stage would become a job of its own."""


def java_rows(oracle: Oracle, frame: DataFrame) -> list[PlainRow]:
    """Return the rows of a frame that Java reads alone, in the form of tests.support.rows, sorted.

    Spark interprets its plan instead of compiling it.
    """
    with configured(oracle.spark, INTERPRETED_QUERY):
        return spark_rows(frame.collect())


def table_path(oracle: Oracle, name: str) -> str:
    """Return the folder of a table of `java_hadoop`; a table can be named by its folder too."""
    catalog, namespace, table = name.split(".")
    assert catalog == "java_hadoop"
    return f"{oracle.warehouse}/{namespace}/{table}"


def catalog_properties(oracle: Oracle, catalog: str) -> dict[str, str]:
    """Return the properties with which our catalog opens the tables of the oracle's catalog."""
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


def snapshot_ids(oracle: Oracle, name: str) -> list[int]:
    """Return the ids of a table's snapshots, oldest first, from its metadata file."""
    return [snapshot.snapshot_id for snapshot in our_table(oracle, name).snapshots]


def our_scan(oracle: Oracle, name: str, **options: str) -> TableScan:
    """Return a scan of a table of the oracle without Spark; options are those of `spark.read`."""
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
        overrides=read.read_properties,
    )


def our_rows(oracle: Oracle, name: str, **options: str) -> list[PlainRow]:
    """Read a table without Spark; return rows in the form of tests.support.rows, sorted."""
    return arrow_rows(our_scan(oracle, name, **options).to_arrow())


def our_frame(oracle: Oracle, name: str, **options: str) -> DataFrame:
    """Open a table of the oracle by our data source, by default on the portable path."""
    catalog, _, rest = name.partition(".")
    reader = oracle.spark.read.format("iceberg-py").option("catalog", catalog)
    reader = reader.option("native", options.pop("native", "false"))
    for key, value in catalog_properties(oracle, catalog).items():
        reader = reader.option(f"catalog.{key}", value)
    return reader.options(**_spelled(options)).load(rest)


def native_frame(oracle: Oracle, name: str, **options: str) -> DataFrame:
    """Open a table of the oracle with Spark's own reader, in a session with Iceberg installed.

    Use our SQL catalog, or our data source if `java_hadoop` is not the table's catalog or if the
    option `columns` selects columns in a way that SELECT does differently.
    """
    assert install(oracle.spark).is_native
    catalog, _, rest = name.partition(".")
    columns = options.get("columns", "")
    by_option = "." in columns or "_deleted" in columns or "variant" in name
    if catalog != "java_hadoop" or by_option:
        return our_frame(oracle, name, native="true", **options)
    oracle.spark.conf.set("spark.sql.catalog.native", "iceberg_pyspark")
    for key, value in catalog_properties(oracle, catalog).items():
        oracle.spark.conf.set(f"spark.sql.catalog.native.{key}", value)
    arguments = dict(_spelled(options))
    for kind in ("branch", "tag"):
        if kind in arguments:
            rest += f".`{kind}_{arguments.pop(kind)}`"
    reader = oracle.spark.read
    if "split-size" in arguments:
        reader = reader.option("split-size", arguments.pop("split-size"))
    if "snapshot-id" in arguments:
        reader = reader.option("versionAsOf", arguments.pop("snapshot-id"))
    if "as-of-timestamp" in arguments:
        moment = datetime.fromtimestamp(int(arguments.pop("as-of-timestamp")) / 1000, timezone.utc)
        reader = reader.option("timestampAsOf", moment.isoformat())
    for key in ("versionAsOf", "timestampAsOf"):
        if key in arguments:
            reader = reader.option(key, arguments.pop(key))
    frame = reader.table(f"native.{rest}")
    if "filter" in arguments:
        frame = frame.filter(arguments.pop("filter"))
    if "columns" in arguments:
        frame = frame.select(*[c.strip() for c in arguments.pop("columns").split(",")])
    assert not arguments, f"a native read has no options {sorted(arguments)}"
    return frame


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
    """Assert that our readers return the rows of `java`, by default all; return the rows.

    We read without Spark and natively. `through_spark` reads again through the portable data source
    and compares schemas too; this costs a second, so tests of lower layers leave it out.
    """
    expected_frame = oracle.spark.table(name) if java is None else java
    expected = java_rows(oracle, expected_frame)
    assert our_rows(oracle, name, **options) == expected
    native = native_frame(oracle, name, **options)
    assert spark_rows(native.collect()) == expected
    if through_spark:
        frame = our_frame(oracle, name, **options)
        assert plain_schema(frame) == plain_schema(expected_frame)  # names, types, nullability
        assert spark_rows(frame.collect()) == expected
    return expected


def plain_schema(frame: DataFrame) -> Any:
    """Return names, types and nullability of a DataFrame's columns, without metadata."""
    return _without_metadata(frame.schema.jsonValue())


def _without_metadata(value: Any) -> Any:
    match value:
        case dict():
            return {k: _without_metadata(v) for k, v in value.items() if k != "metadata"}
        case list():
            return [_without_metadata(item) for item in value]
    return value


def _spelled(options: Mapping[str, str]) -> dict[str, str]:
    """Return options under their real names: the keyword snapshot_id stands for snapshot-id."""
    return {name.replace("_", "-"): str(value) for name, value in options.items()}


def rows_selected(
    oracle: Oracle, name: str, filters: Iterable[str], columns: str = "id"
) -> dict[str, list[PlainRow]]:
    """Return for each filter the rows that Spark finds to match, computed in one job.

    Spark evaluates the filters as columns here, so Java prunes no file, and a wrong prune of ours
    is found.
    """
    filters = list(filters)
    flags = ", ".join(f"({text})" for text in filters)
    with configured(oracle.spark, INTERPRETED):
        rows = oracle.sql(f"SELECT {columns}, {flags} FROM {name}").collect()
    width = len(rows[0]) - len(filters)
    return {
        text: spark_rows(row[:width] for row in rows if row[width + i] is True)
        for i, text in enumerate(filters)
    }


def assert_filters_alike(
    oracle: Oracle,
    name: str,
    filters: Iterable[str],
    columns: str = "id",
    *,
    natively: bool = False,
    may_be_empty: bool = False,
) -> None:
    """Assert that we read by each filter exactly the rows that Spark finds to match.

    We read without Spark, and with `natively` also by Spark's own reader. A filter that selects no
    row would test nothing, so it fails unless it `may_be_empty`, as a random one may.
    """
    selected = rows_selected(oracle, name, filters, columns)
    native = _native_rows_selected(oracle, name, list(selected), columns) if natively else selected
    for text, expected in selected.items():
        assert our_rows(oracle, name, columns=columns, filter=text) == expected, text
        assert native[text] == expected, text
        assert expected or may_be_empty, text


def _native_rows_selected(
    oracle: Oracle, name: str, filters: Sequence[str], columns: str
) -> dict[str, list[PlainRow]]:
    """Read natively with each filter in one job; each filter prunes its own scan."""
    frames = [
        native_frame(oracle, name, columns=columns, filter=text).select(lit(i), "*")
        for i, text in enumerate(filters)
    ]
    rows = reduce(DataFrame.union, frames).collect()
    return {text: spark_rows(r[1:] for r in rows if r[0] == i) for i, text in enumerate(filters)}


def rows_alike(oracle: Oracle, name: str, **options: str) -> list[PlainRow]:
    """Assert that reading without Spark and natively gives the same rows; return the rows."""
    rows = our_rows(oracle, name, **options)
    assert spark_rows(native_frame(oracle, name, **options).collect()) == rows
    return rows


def java_planned_files(oracle: Oracle, name: str, filter_text: str) -> int:
    """Return the number of data files that Java would read for a filter."""
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
