"""Rows of one table that tests follow, and overlapping changes: deletes, updates, a MERGE."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from iceberg_pyspark import Table


def rows(*ids: int) -> pa.Table:
    """Return a row (id, g, s) for each id, where g = id % 2 and s is the id as text."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "g": pa.array([i % 2 for i in ids], pa.int32()),
            "s": [str(i) for i in ids],
        }
    )


def append_initial_rows(table: Table) -> None:
    """Append the rows that `change_rows` changes, in four files if there are no partitions."""
    rows = [
        pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "g": pa.array([i % 5 for i in ids], pa.int32()),
                "s": [f"s{i}" for i in ids],
            }
        )
        for ids in (range(start, start + 1000) for start in range(0, 4000, 1000))
    ]
    for part in [pa.concat_tables(rows)] if table.spec.fields else rows:
        table.append(part)


def change_rows(spark: SparkSession, table: str) -> dict[int, str]:
    """Change a table that has the initial rows; return the expected `s` of each remaining id."""
    spark.sql(f"delete from {table} where id % 7 = 0")
    spark.sql(f"update {table} set s = 'new' where id % 7 = 1 or id = 2")
    spark.sql(f"delete from {table} where s = 's3' or id between 20 and 30")
    spark.sql(
        f"merge into {table} t using (select id, cast(id % 5 as int) g from range(0, 60)) n "
        "on t.id = n.id when matched and t.id % 2 = 0 then delete "
        "when matched then update set s = 'merged' "
        "when not matched then insert (id, g, s) values (n.id, n.g, 'back')"
    )
    expected: dict[int, str] = {i: f"s{i}" for i in range(4000) if i % 7}
    expected |= {i: "new" for i in expected if i % 7 == 1 or i == 2}
    expected = {i: s for i, s in expected.items() if i != 3 and not 20 <= i <= 30}
    for i in range(60):
        if i not in expected:
            expected[i] = "back"
        elif i % 2 == 0:
            del expected[i]
        else:
            expected[i] = "merged"
    return expected
