"""A mirror that applies the changes of each snapshot by MERGE is equal to its source at all times.

The source gets random statements of Spark, in both modes; Spark reads both tables.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.table.change_feed.table_changes import TableChanges
from tests.amounts import WORK
from tests.support.native_lake import sqlite_lake

MODES = ("merge-on-read", "copy-on-write")
ROWS = "select id, concat('{v}', id) v from range({a}, {b})"
STATEMENTS = (
    "insert into {t} select * from ({rows}) r where r.id not in (select id from {t})",
    "delete from {t} where id % {n} = 0 and id > {a}",
    "update {t} set v = '{v}' where id % {n} = 1",
    "merge into {t} t using ({rows}) s on t.id = s.id when matched and s.id % {n} = 0 then delete "
    "when matched then update set v = s.v when not matched then insert *",
    "insert overwrite {t} select id, case when id % {n} = 0 then '{v}' else v end from {t}",
    "call mirrored.system.rewrite_data_files('{t}', options => map('rewrite-all', 'true'))",
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("mirrored"), "mirrored") as session:
        yield session


def apply(spark: SparkSession, changes: TableChanges, mirror: str) -> None:
    """Apply the changes of one snapshot to a table with the key `id`."""
    rows = spark.createDataFrame(changes.to_arrow())
    inserted = rows.where("_change_type = 'INSERT'")
    gone = rows.where("_change_type = 'DELETE'").join(inserted, "id", "left_anti")
    inserted.unionByName(gone).createOrReplaceTempView("changes_of_one_snapshot")
    spark.sql(
        f"merge into {mirror} m using changes_of_one_snapshot c on m.id = c.id "
        "when matched and c._change_type = 'DELETE' then delete "
        "when matched then update set v = c.v "
        "when not matched and c._change_type = 'INSERT' then insert (id, v) values (c.id, c.v)"
    )


@pytest.mark.nightly
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_the_mirror_equals_its_source(
    spark: SparkSession, lake: IcebergSession, version: int, mode: str
) -> None:
    choose = random.Random(f"{version} {mode}")
    modes = ", ".join(f"'write.{c}.mode'='{mode}'" for c in ("delete", "update", "merge"))
    name = f"v{version}_{mode.replace('-', '_')}"
    source, mirror = f"mirrored.db.{name}", f"mirrored.db.{name}_mirror"
    for table in (source, mirror):
        spark.sql(
            f"create table {table} (id bigint, v string) using iceberg "
            f"tblproperties ('format-version'='{version}', {modes})"
        )
    at: int | str = "earliest"
    seen = set()
    for step in range(8 * WORK):
        statement = choose.choice(STATEMENTS) if step else STATEMENTS[0]
        a = choose.randrange(40)
        rows = ROWS.format(v=f"s{step}_", a=a, b=a + 15)
        table = f"db.{name}" if statement.startswith("call") else source
        spark.sql(statement.format(t=table, rows=rows, a=a, v=f"u{step}", n=choose.choice([2, 3])))
        for changes in lake.table(source).follow(at, timeout=0):
            snapshot = changes.snapshot
            assert snapshot is not None
            result = changes.to_arrow()
            assert not result.num_rows or snapshot.operation != "replace"
            if version == 2:
                # nothing is deleted and added again as it was
                pairs = result.select(["id", "v"]).to_pylist()
                assert len({(r["id"], r["v"]) for r in pairs}) == len(pairs)
            apply(spark, changes, mirror)
            at = snapshot.snapshot_id
            seen.add(snapshot.operation)
        assert spark.table(mirror).exceptAll(spark.table(source)).count() == 0, statement
        assert spark.table(source).exceptAll(spark.table(mirror)).count() == 0, statement
    assert "overwrite" in seen
