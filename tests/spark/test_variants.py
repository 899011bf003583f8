"""Tables with variants: every statement, in every format, on both paths, in streams and imports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.spark.bridge.features import VARIANT_FIELDS
from iceberg_pyspark.spark.session import IcebergSession
from tests.support.frames import load, save
from tests.support.native_lake import sqlite_lake
from tests.support.parameters import cases

VALUES = (
    "select id, parse_json(concat('{\"a\": ', id, ', \"s\": \"x', id, '\"}')) v, "
    "concat('z', id) z from range(4)"
)
SHOWN = "select id, to_json(v), z from {t} order by id"
V3 = "'format-version' = '3'"
MERGE_ON_READ = "'write.delete.mode' = 'merge-on-read'"
PUSHED = "spark.sql.variant.pushVariantIntoScan"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("variants"), "variants") as session:
        yield session


@cases(
    ("mode", "file_format", "shred"),
    fast=[("merge-on-read", "parquet", "true")],
    nightly=[
        ("copy-on-write", "parquet", "true"),
        ("merge-on-read", "avro", "false"),
        ("copy-on-write", "avro", "false"),
    ],
)
def test_variants_are_written_and_changed(
    lake: IcebergSession, mode: str, file_format: str, shred: str
) -> None:
    t = f"variants.db.{mode[0]}_{file_format}"
    sql = lake.spark.sql
    sql(
        f"create table {t} tblproperties ({V3}, 'write.format.default' = '{file_format}', "
        f"'write.parquet.shred-variants' = '{shred}', 'write.delete.mode' = '{mode}', "
        f"'write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}') as {VALUES}"
    )
    sql(f"insert into {t} values (100, null, 'q'), (101, parse_json('null'), null)")
    sql(f"update {t} set v = parse_json('[1]') where id = 1")
    sql(f"delete from {t} where variant_get(v, '$.a', 'int') = 2")
    sql(
        f"merge into {t} t using (select 3L id, parse_json('true') v, 'm' z union all select 5L, "
        "null, 'n') s on t.id = s.id when matched then update set v = s.v "
        "when not matched then insert *"
    )
    expected = [
        (0, '{"a":0,"s":"x0"}', "z0"),
        (1, "[1]", "z1"),
        (3, "true", "z3"),
        (5, None, "n"),
        (100, None, "q"),
        (101, "null", None),
    ]
    assert sql(SHOWN.format(t=t)).collect() == expected
    sql(
        f"call variants.system.rewrite_data_files(table => '{t[9:]}', "
        "options => map('rewrite-all', 'true'))"
    )
    table = lake.table(t)
    portable = load(lake.spark, table.location, {"native": "false"})
    assert portable.selectExpr("id", "to_json(v)", "z").orderBy("id").collect() == expected


@pytest.mark.nightly
def test_streams_write_and_read_variants(lake: IcebergSession, tmp_path: Path) -> None:
    spark = lake.spark
    for name in ("source", "sink"):
        spark.sql(
            f"create table variants.db.{name} (id bigint, v variant, z string) tblproperties ({V3})"
        )
    spark.sql(f"insert into variants.db.source {VALUES}")
    query = (
        spark.readStream.table("variants.db.source")
        .writeStream.option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .toTable("variants.db.sink")
    )
    query.awaitTermination()
    rows = spark.sql(SHOWN.format(t="variants.db.sink")).collect()
    assert rows == spark.sql(SHOWN.format(t="variants.db.source")).collect() != []


@pytest.mark.nightly
def test_frames_of_variants_are_saved_without_the_bridge(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(VALUES + " union all select 9, null, 'n'")
    location = tmp_path / "t"
    save(frame, location, {"format-version": "3"})
    shown = load(spark, location).selectExpr("id", "to_json(v)", "z").orderBy("id")
    assert shown.collect()[-2:] == [(3, '{"a":3,"s":"x3"}', "z3"), (9, None, "n")]


@pytest.mark.nightly
def test_files_with_variants_are_added(lake: IcebergSession, tmp_path: Path) -> None:
    """Spark shreds the variants of its own files, and has no ids in them."""
    spark = lake.spark
    folder = tmp_path / "files"
    spark.sql(VALUES).coalesce(1).write.parquet(str(folder))
    spark.sql(
        f"create table variants.db.added (id bigint, v variant, z string) tblproperties ({V3})"
    )
    spark.sql(f"call variants.system.add_files('db.added', '`parquet`.`{folder}`')")
    spark.sql("insert into variants.db.added values (9, parse_json('9'), 'n')")
    rows = spark.sql(SHOWN.format(t="variants.db.added")).collect()
    assert rows[-2:] == [(3, '{"a":3,"s":"x3"}', "z3"), (9, "9", "n")]
    where = "select id from variants.db.added where z = 'z2' and v is not null"
    assert spark.sql(where).collect() == [(2,)]


@pytest.mark.nightly
def test_orc_refuses_variants(lake: IcebergSession) -> None:
    lake.spark.sql(
        f"create table variants.db.orc (v variant) tblproperties ({V3}, "
        "'write.format.default' = 'orc')"
    )
    with pytest.raises(PySparkException, match="column 'v' has type variant, which cannot be"):
        lake.spark.sql("insert into variants.db.orc values (parse_json('1'))")


@pytest.mark.nightly
def test_shredded_variants_have_bounds(lake: IcebergSession) -> None:
    t = "variants.db.shredded"
    lake.spark.sql(f"create table {t} (id bigint, v variant, z string) tblproperties ({V3})")
    frame = lake.spark.sql(VALUES).coalesce(1)
    frame.writeTo(t).option("shred-variants", "true").append()
    table = lake.table(t)
    [file] = table.inspect.files().to_pylist()
    assert b"$['a']" in dict(file["lower_bounds"])[2]
    for text, files in (("= 3", 1), ("> 3", 0), ("< 0", 0), ("IN (-1, 9)", 0), ("<> 3", 1)):
        scan = table.scan(f"variant_field(v, '$.a', 'bigint') {text}")
        assert len(list(scan.plan_files())) == files, text
    assert table.scan("variant_field(v, '$.s', 'string') = 'x2'").count() == 1
    assert not list(table.scan("variant_field(v, '$.s', 'string') > 'x3'").plan_files())
    filtered = load(lake.spark, table.location, {"filter": "variant_field(v, '$.a', 'int') = 2"})
    assert [r.id for r in filtered.collect()] == [2]
    frame.writeTo(t).append()
    files = lake.table(t).inspect.files().to_pylist()
    assert sorted(2 in dict(f["lower_bounds"]) for f in files) == [False, True]


FIELD_QUERIES = (
    "select id, variant_get(v, '$.a', 'bigint') a, try_variant_get(v, '$.s', 'int') s from {t}",
    "select sum(variant_get(v, '$.a', 'bigint')), count(v) from {t}",
    "select z from {t} where variant_get(v, '$.a', 'int') >= 2 and v is not null",
    "select id from {t} where v is null or try_variant_get(v, '$.a', 'int') = 0",
    "select variant_get(v, '$.s', 'string') s, count(*) from {t} where id > 0 group by 1",
    "select v:a::int + 1, to_json(v:s), z from {t} where id < 3",
    "select variant_get(v, '$.a', 'int') a, to_json(v) from {t}",
    "select if(id > 0, variant_get(v, '$.a', 'int'), -1) from {t}",
    "select x.z, variant_get(y.v, '$.a', 'int') from {t} x join {t} y on x.id = y.id",
    "select try_variant_get(v, '$.a', 'int') a from {t} where id in (select max(id) from {t})",
    "select try_variant_get(v, '$[0]', 'int') a, try_variant_get(v, '$.n.x', 'string') from {t}",
)


@cases("kind", fast=["mixed"], nightly=["shredded", "deleted", "evolved"])
def test_fields_of_variants_are_read_without_the_variants(lake: IcebergSession, kind: str) -> None:
    t, sql = f"variants.db.fields_{kind}", lake.spark.sql
    sql(f"create table {t} (id bigint, v variant, z string) tblproperties ({V3})")
    frame = sql(VALUES).coalesce(1)
    if kind == "evolved":
        sql(f"alter table {t} rename column v to w")
        sql(f"insert into {t} {VALUES}")
        sql(f"alter table {t} drop column w")
        sql(f"alter table {t} add column v variant after id")
    frame.writeTo(t).option("shred-variants", "true").append()
    frame.selectExpr("id + 10 as id", "v", "z").writeTo(t).append()
    if kind in ("mixed", "deleted"):
        sql(f"insert into {t} values (20, null, 'q'), (21, parse_json('null'), null)")
    if kind == "mixed":
        frame.selectExpr("id + 30 as id", "v", "z").writeTo(t).option(
            "write-format", "avro"
        ).append()
    if kind == "deleted":
        sql(f"alter table {t} set tblproperties ({MERGE_ON_READ})")
        sql(f"insert into {t} values (22, parse_json('{{\"a\": \"x\"}}'), 'bad')")
        sql(f"delete from {t} where id in (2, 22)")
    for query in FIELD_QUERIES:
        lake.spark.conf.set(PUSHED, "false")
        try:
            whole = sorted(map(str, sql(query.format(t=t)).collect()))
        finally:
            lake.spark.conf.unset(PUSHED)
        assert sorted(map(str, sql(query.format(t=t)).collect())) == whole, query
    if lake.bridge is None or not lake.bridge.has(VARIANT_FIELDS):
        return
    plan = explained(sql(FIELD_QUERIES[2 if kind == "deleted" else 0].format(t=t)))
    assert (":variant" in plan) == (kind == "deleted"), plan
    plan = explained(sql(FIELD_QUERIES[3].format(t=t)))
    assert ":struct<0:int>" in plan
    assert ":variant" not in plan


@pytest.mark.nightly
def test_a_strict_field_of_a_deleted_row_is_no_error(lake: IcebergSession) -> None:
    t, sql = "variants.db.strict", lake.spark.sql
    sql(f"create table {t} (id bigint, v variant) tblproperties ({V3}, {MERGE_ON_READ})")
    sql(f"insert into {t} select id, parse_json(if(id = 1, '\"x\"', '1')) from range(3)")
    strict = f"select sum(variant_get(v, '$', 'int')) from {t}"
    # an error of Spark's reader, as in Spark's own tables
    with pytest.raises((PySparkException, Py4JJavaError), match="INVALID_VARIANT_CAST"):
        sql(strict).collect()
    sql(f"delete from {t} where id = 1")
    assert sql(strict).collect() == [(2,)]
    case = f"select sum(case when id > 0 then variant_get(v, '$', 'int') end) from {t}"
    assert sql(case).collect() == [(1,)]


def explained(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())
