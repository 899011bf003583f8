"""Special columns: variants, types that Spark lacks, `_deleted`, partition values."""

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame

from tests.support.java_records import create_java_table
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.readings import INTERPRETED_QUERY
from tests.support.spark_settings import configured

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


def same_rows(lake: Oracle, query: str) -> str:
    """Check that a query has equal rows on both catalogs; return our plan as text."""
    ours = lake.spark.sql(query.format(t="lake"))
    java = lake.spark.sql(query.format(t="java_hadoop"))
    assert rows_of(ours) == rows_of_java(lake, java)
    return str(ours._jdf.queryExecution().executedPlan().toString())


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, map(tuple, frame.collect())))


def rows_of_java(lake: Oracle, frame: DataFrame) -> list[str]:
    with configured(lake.spark, INTERPRETED_QUERY):
        return rows_of(frame)


def portably(lake: Oracle, name: str) -> DataFrame:
    table = lake.warehouse.joinpath(*name.split("."))
    return lake.spark.read.format("iceberg-py").option("native", "false").load(str(table))


VALUES = """
    SELECT id, parse_json(concat('{"a":', id, ',"b":"x","c":{"d":[1,2,', id, '],"e":1.25,"o":[]},',
        '"f":', if(id = 3, '"q"', 'true'), if(id % 2 = 0, ',"zz":null', ''), '}')) v
    FROM range(8)"""


@pytest.mark.parametrize("shredded", [False, True])
def test_variants_are_read_on_both_paths(lake: Oracle, shredded: bool) -> None:
    name = f"variants.shredded_{shredded}".lower()
    lake.sql(
        f"CREATE TABLE java_hadoop.{name} (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES "
        f"('format-version' = '3', 'write.parquet.shred-variants' = '{shredded}')"
    )
    lake.sql(f"INSERT INTO java_hadoop.{name} {VALUES}")
    lake.sql(f"INSERT INTO java_hadoop.{name} VALUES (10, null), (11, parse_json('null'))")
    plan = same_rows(lake, "SELECT id, to_json(v) FROM {t}." + name)
    assert "IcebergPyParquetScan" in plan
    java = lake.spark.table(f"java_hadoop.{name}")
    actual = portably(lake, name)
    for frame in (lake.spark.table(f"lake.{name}"), actual):
        assert frame.dtypes == java.dtypes
    columns = ("id", "to_json(v)", "variant_get(v, '$.c.d[2]', 'int')", "schema_of_variant(v)")
    assert rows_of(actual.selectExpr(*columns)) == rows_of_java(lake, java.selectExpr(*columns))


def test_nested_variants_are_read_on_both_paths(lake: Oracle) -> None:
    name = "variants.nested"
    lake.sql(
        f"CREATE TABLE java_hadoop.{name} (s STRUCT<n: INT, w: VARIANT>, l ARRAY<VARIANT>, "
        "m MAP<STRING, VARIANT>) USING iceberg TBLPROPERTIES ('format-version' = '3')"
    )
    one = "parse_json('{\"a\":[1,null]}')"
    lake.sql(
        f"INSERT INTO java_hadoop.{name} SELECT named_struct('n', 1, 'w', {one}), array({one}, "
        f"null), map('k', {one}) UNION ALL SELECT named_struct('n', 2, 'w', null), null, map()"
    )
    same_rows(lake, "SELECT to_json(s), to_json(l), to_json(m) FROM {t}." + name)
    java = lake.spark.table(f"java_hadoop.{name}")
    columns = ("to_json(s)", "to_json(l)", "to_json(m)")
    actual = portably(lake, name)
    assert rows_of(actual.selectExpr(*columns)) == rows_of_java(lake, java.selectExpr(*columns))


def test_column_without_a_spark_type_hides_no_other(lake: Oracle) -> None:
    """Java's connector cannot open such a table at all."""
    name = "java_hadoop.odd.types"
    columns = [
        {"name": "id", "type": "int"},
        {"name": "place", "type": "geometry"},
        {"name": "at", "type": "timestamp_ns"},
        {"name": "nothing", "type": "unknown"},
    ]
    create_java_table(lake, name, columns, properties={"format-version": "3"})
    shown = {
        r.col_name: (r.data_type, r.comment) for r in lake.sql("DESCRIBE lake.odd.types").collect()
    }
    assert shown["id"] == ("int", None)
    assert shown["nothing"] == ("void", None)
    assert shown["at"] == (
        "binary",
        "timestamp_ns, for which Spark has no type here: not to be selected",
    )
    assert lake.sql("SELECT id, nothing FROM lake.odd.types").collect() == []
    assert shown["place"] == ("binary", "geometry, as WKB")
    assert lake.sql("SELECT place FROM lake.odd.types").collect() == []
    for query, column in (
        ("SELECT * FROM lake.odd.types", "at"),
        ("SELECT id FROM lake.odd.types WHERE at IS NULL", "at"),
        ("SELECT count(at) FROM lake.odd.types", "at"),
    ):
        with pytest.raises(Exception, match=f"column '{column}' has type .*select the other"):
            lake.sql(query).collect()


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_are_returned_where_the_query_asks_which_they_are(
    lake: Oracle, version: int
) -> None:
    name = f"marks.v{version}"
    lake.sql(
        f"CREATE TABLE java_hadoop.{name} USING iceberg TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read') AS "
        "SELECT id, id % 3 g FROM range(10)"
    )
    lake.sql(f"DELETE FROM java_hadoop.{name} WHERE id IN (2, 3)")
    if version == 2:
        lake.write_equality_deletes(f"java_hadoop.{name}", ["id"], [(5,), (6,)])
    lake.sql(f"INSERT INTO java_hadoop.{name} VALUES (20, 2)")
    for query in (
        "SELECT _deleted, * FROM {t}." + name,
        "SELECT id, _deleted, _pos FROM {t}." + name + " WHERE g = 2",
        "SELECT count(*) FROM {t}." + name + " WHERE _deleted",
        "SELECT id FROM {t}." + name + " WHERE NOT _deleted",
        "SELECT id FROM {t}." + name,
    ):
        plan = same_rows(lake, query)
        assert "IcebergPyParquetScan" in plan, "files without deletes are still Spark's own"


def test_conditions_on_metadata_columns_select_rows(lake: Oracle) -> None:
    """Spark itself drops a condition on partition columns after it has listed the files."""
    name = "facts.conditions"
    lake.sql(
        f"CREATE TABLE java_hadoop.{name} USING iceberg PARTITIONED BY (g) AS "
        "SELECT id, id % 3 g FROM range(9)"
    )
    lake.sql(f"ALTER TABLE java_hadoop.{name} ADD PARTITION FIELD bucket(2, id)")
    lake.sql(f"INSERT INTO java_hadoop.{name} VALUES (100, 1), (101, null)")
    conditions = (
        "_spec_id = 1",
        "_spec_id % 2 = 0 AND id > 3",
        "_file LIKE '%g=2%'",
        "g % 2 = 1",
        "g IS NULL OR _spec_id = 0 AND g = 2",
        "g IN (SELECT max(g) FROM {t}." + name + ")",
    )
    queries = (
        f"SELECT {number}, id, g FROM {{t}}.{name} WHERE {condition}"
        for number, condition in enumerate(conditions)
    )
    same_rows(lake, " UNION ALL ".join(queries))


def test_partition_values_stand_in_for_columns_that_files_lack(lake: Oracle) -> None:
    """Files of migrated tables lack partition columns and field ids (docs/conformance.md 62)."""
    folder = lake.warehouse.parent / "hive_table"
    hive = f"parquet.`{folder}`"
    rows = (
        "SELECT id, concat('s', id) s, cast(id % 3 AS INT) g, "
        "if(id = 5, null, 'a/b\\\\\\\\t=' || id % 2) t,"
        " date_add(DATE '2020-01-01', cast(id % 2 AS INT)) d, cast(1.50 AS DECIMAL(9, 2)) n,"
        " id % 2 = 0 b FROM range(9)"
    )
    frame = lake.sql(rows)
    frame.write.partitionBy("g", "t", "d", "n", "b").parquet(str(folder))
    name = "migrated.hive"
    lake.sql(
        f"CREATE TABLE java_hadoop.{name} (id BIGINT, s STRING, g INT, t STRING, d DATE, "
        "n DECIMAL(9, 2), b BOOLEAN) USING iceberg PARTITIONED BY (g, t, d, n, b)"
    )
    lake.sql(f"CALL java_hadoop.system.add_files(table => '{name}', source_table => '{hive}')")
    same_rows(lake, "SELECT * FROM {t}." + name)
    lake.sql(f"INSERT INTO java_hadoop.{name} VALUES (100, 'x', 1, 't', null, null, null)")
    same_rows(lake, "SELECT * FROM {t}." + name)
    same_rows(lake, "SELECT t, count(*), min(d) FROM {t}." + name + " WHERE g % 2 = 1 GROUP BY t")
