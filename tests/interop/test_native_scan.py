"""Native scans through a Spark SQL catalog return Java's rows, read by Spark's own reader."""

import re
from collections.abc import Iterator

import pytest

from iceberg_pyspark.spark.native_read import deleted_rows
from tests.amounts import FULL_WORK
from tests.support.native_lake import native_lake, same_rows
from tests.support.oracle import Oracle
from tests.support.parameters import cases

ROWS = "select id, cast(id % 3 as int) g, cast(id as string) s, id * 1.5 d from range(100)"


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        yield installed


@pytest.mark.nightly
def test_a_table_without_deletes_is_read_by_sparks_own_reader(lake: Oracle) -> None:
    lake.sql("create table java_hadoop.native.plain using iceberg partitioned by (g) as " + ROWS)
    plan = same_rows(lake, "select * from {t}.native.plain where id > 10 and g = 1")
    assert "IcebergPyParquetScan" in plan


@pytest.mark.nightly
@pytest.mark.parametrize("columns", ["*", "id", "s, d", "g, id"])
def test_spark_takes_a_table_for_as_large_as_the_connector_says(lake: Oracle, columns: str) -> None:
    lake.sql(
        "create table if not exists java_hadoop.native.sized using iceberg partitioned by (g) as "
        + ROWS
    )

    def bytes_of(catalog: str) -> int:
        frame = lake.spark.sql(f"select {columns} from {catalog}.native.sized where d > 3")
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert bytes_of("lake") == bytes_of("java_hadoop")


@pytest.mark.nightly
def test_one_frame_with_different_filters_is_right(lake: Oracle) -> None:
    lake.sql("create table java_hadoop.native.reused using iceberg as " + ROWS)
    frame = lake.spark.table("lake.native.reused")
    assert frame.filter("id = 3").count() == 1
    assert frame.count() == 100
    assert frame.filter("id = 1").union(frame.filter("id = 2")).count() == 2
    joined = frame.alias("a").join(frame.alias("b"), "id").filter("a.g = 1")
    assert joined.count() == 33


def bitmaps_in(plan: str) -> set[str]:
    """Return the broadcast variables that the text of a plan names."""
    result = set(re.findall(r"Broadcast\(\d+\)", plan))
    assert result
    return result


@pytest.mark.nightly
def test_many_deleted_rows_travel_in_portions_and_beyond_a_limit_not_at_all(
    lake: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.sql(
        "create table java_hadoop.native.portions using iceberg partitioned by (g) tblproperties "
        "('format-version'='3', 'write.delete.mode'='merge-on-read') as " + ROWS
    )
    lake.sql("delete from java_hadoop.native.portions where id % 7 = 0")
    query = "select * from {t}.native.portions"
    assert same_rows(lake, query).count("IcebergPyParquetScan") == 1
    monkeypatch.setattr(deleted_rows, "MAX_BROADCAST_BYTES", 1)
    assert same_rows(lake, query).count("IcebergPyParquetScan") == 3
    monkeypatch.setattr(deleted_rows, "MAX_TOTAL_BYTES", 0)
    plan = same_rows(lake, query)
    assert "IcebergPyParquetScan" not in plan
    assert "MapInArrow" in plan


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
def test_count_of_a_table_reads_no_data_unless_deletes_compare_values(
    lake: Oracle, version: int
) -> None:
    name = f"native.counted_v{version}"
    lake.sql(
        f"create table java_hadoop.{name} using iceberg tblproperties "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read') as " + ROWS
    )
    lake.sql(f"delete from java_hadoop.{name} where id % 7 = 0")
    query = "select count(*), count(1) c from {t}." + name
    assert "Scan" not in same_rows(lake, query).replace("LocalTableScan", "")
    path = str(lake.warehouse / name.replace(".", "/"))
    by_format = lake.spark.read.format("iceberg-py").load(path)
    assert by_format.count() == lake.spark.table(f"java_hadoop.{name}").count()
    of_values = ["count(g)", "count(distinct g)", "count(*) filter (where id > 3)"]
    for count in of_values if FULL_WORK else of_values[2:]:
        assert "IcebergPyParquetScan" in same_rows(lake, f"select {count} from {{t}}.{name}")
    assert "IcebergPyParquetScan" in same_rows(lake, query + " where id > 50")
    lake.write_equality_deletes(f"java_hadoop.{name}", ["id"], [(1,), (2,)])
    assert "IcebergPyParquetScan" in same_rows(lake, query)


@cases(
    ("read_by", "version"),
    fast=[("executors", 3)],
    nightly=[("executors", 2), ("driver", 2), ("driver", 3)],
)
def test_deleted_rows_stay_deleted(
    lake: Oracle, version: int, read_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if read_by == "executors":
        monkeypatch.setattr(deleted_rows, "MAX_VECTOR_BYTES", -1)
        monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", -1)
    name = f"native.deleted_v{version}_{read_by}"
    lake.sql(
        f"create table java_hadoop.{name} using iceberg tblproperties "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read') as " + ROWS
    )
    lake.sql(f"delete from java_hadoop.{name} where id % 7 = 0")
    lake.sql(f"insert into java_hadoop.{name} " + ROWS)
    plan = same_rows(lake, "select * from {t}." + name)
    assert plan.count("IcebergPyParquetScan") == 2, "only files with deletes pay for them"
    of_version = "position_deletes" if version == 2 else "deletion_vectors"
    assert (of_version in plan) == (read_by == "executors")
    again = same_rows(lake, f"select id from {{t}}.{name} where id < 90")
    assert bitmaps_in(again) == bitmaps_in(plan), "equal bitmaps are broadcast once"
    lake.sql(f"delete from java_hadoop.{name} where id = 1")
    fewer = same_rows(lake, "select * from {t}." + name)
    assert len(bitmaps_in(fewer)) == 1
    assert bitmaps_in(fewer) != bitmaps_in(plan)
    same_rows(lake, "select count(*), sum(d) from {t}." + name + " where g = 2 and id < 50")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("granularity", "delete_format", "spec"),
    [
        ("file", "parquet", ""),
        ("file", "parquet", "partitioned by (bucket(2, id))"),
        ("partition", "parquet", ""),
        ("partition", "parquet", "partitioned by (g)"),
        ("partition", "avro", "partitioned by (g)"),
        ("file", "orc", ""),
    ],
)
def test_position_delete_files_that_executors_read(
    lake: Oracle, granularity: str, delete_format: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reads position delete files of other formats, also in the same table."""
    monkeypatch.setattr(deleted_rows, "MAX_POSITION_BYTES", -1)
    name = f"native.positions_{granularity}_{delete_format}_{len(spec)}"
    modes = ", ".join(f"'write.{op}.mode'='merge-on-read'" for op in ("delete", "update", "merge"))
    lake.sql(
        f"create table java_hadoop.{name} using iceberg {spec} tblproperties "
        f"('format-version'='2', 'write.delete.granularity'='{granularity}', "
        f"'write.delete.format.default'='{delete_format}', {modes}) as {ROWS}"
    )
    query = "select id, g, s, _pos from {t}." + name
    for statement in (
        "delete from {t} where id % 7 = 0",
        "update {t} set s = 'new' where id % 10 = 3",
        "insert into {t} " + ROWS,
        "alter table {t} set tblproperties ('write.delete.format.default'='parquet')",
        "delete from {t} where id in (5, 15, 25, 66, 67, 68)",
    ):
        lake.sql(statement.format(t=f"java_hadoop.{name}"))
        plan = same_rows(lake, query)
    assert "MapInArrow" not in plan
    assert "position_deletes(Broadcast(" in plan
    same_rows(lake, f"select g, count(*), sum(d) from {{t}}.{name} where id > 20 group by g")
    lake.sql(f"alter table java_hadoop.{name} set tblproperties ('format-version'='3')")
    lake.sql(f"delete from java_hadoop.{name} where id between 30 and 33")
    same_rows(lake, query)


@pytest.mark.nightly
def test_evolved_columns_are_found_by_field_id(lake: Oracle) -> None:
    name = "native.evolved"
    lake.sql(f"create table java_hadoop.{name} using iceberg as " + ROWS)
    for change in (
        "rename column s to text",
        "alter column g type bigint",
        "drop column d",
        "add column d string",
        "add column n int",
    ):
        lake.sql(f"alter table java_hadoop.{name} {change}")
    lake.sql(f"insert into java_hadoop.{name} values (200, 1, 'x', 'y', 5)")
    same_rows(lake, "select * from {t}." + name)
    same_rows(lake, "select id from {t}." + name + " where d = 'y'")
    same_rows(lake, "select id, text from {t}." + name + " where d is null and text < '3'")


@pytest.mark.nightly
def test_equality_deletes_are_applied(lake: Oracle) -> None:
    name = "java_hadoop.native.keyed"
    lake.sql(f"create table {name} using iceberg as " + ROWS)
    lake.write_equality_deletes(name, ["id"], [(5,), (6,)])
    lake.sql(f"insert into {name} select 5L, 1, 'again', 0.0")
    same_rows(lake, "select * from {t}.native.keyed where id < 10")


@pytest.mark.nightly
def test_the_partition_is_a_hidden_column_over_all_specs(lake: Oracle) -> None:
    name = "native.partition_column"
    lake.sql(f"create table java_hadoop.{name} using iceberg partitioned by (g) as " + ROWS)
    lake.sql(f"alter table java_hadoop.{name} add partition field bucket(2, id)")
    lake.sql(f"insert into java_hadoop.{name} values (200, null, 'x', 0.5)")
    same_rows(lake, "select id, _partition from {t}." + name)
    same_rows(lake, "select _partition.g, count(*) from {t}." + name + " where g = 1 group by 1")
    assert "_partition" not in lake.spark.table(f"lake.{name}").columns
