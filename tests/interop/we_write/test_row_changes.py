"""Row-level changes in plain Python give the rows of Java's statements, for all readers."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import assert_all_read, new_table
from tests.support.readings import our_table

_numbers = count(1)

# the type of a key, and keys of the table and of the source: some in both, one only in each
KEYS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "long": ("BIGINT", [1, None, 2, 3], [3, None, 1, 9]),
    "int": ("INT", [1, None, 2, -3], [-3, None, 1, 9]),
    "double": ("DOUBLE", [0.0, None, math.nan, 1.5], [-0.0, None, math.nan, 9.0]),
    "float": ("FLOAT", [-0.0, None, math.nan, 1.5], [0.0, None, math.nan, 9.0]),
    "string": ("STRING", ["a", None, "", "é"], ["é", None, "", "z"]),
    "binary": ("BINARY", [b"a", None, b"", b"\xff"], [b"\xff", None, b"", b"z"]),
    "decimal": (
        "DECIMAL(20,2)",
        [Decimal("1.10"), None, Decimal("-0.01"), Decimal(10**15)],
        [Decimal(10**15), None, Decimal("1.10"), Decimal(9)],
    ),
    "date": (
        "DATE",
        [date(1969, 12, 31), None, date(2026, 1, 1), date(1, 1, 1)],
        [date(1, 1, 1), None, date(2026, 1, 1), date(2026, 1, 9)],
    ),
    "timestamp": (
        "TIMESTAMP",
        [datetime(1960, 1, d, 1, 2, 3, d, timezone.utc) if d else None for d in (1, 0, 2, 3)],
        [datetime(1960, 1, d, 1, 2, 3, d, timezone.utc) if d else None for d in (3, 0, 1, 9)],
    ),
    "boolean": ("BOOLEAN", [True, None], [True, None, False]),
}


def twins(oracle: Oracle, schema: str, version: int, mode: str) -> tuple[str, Table, str]:
    """Create a table for us and one for Java."""
    names = [f"java_sql.row_changes.{who}{next(_numbers)}" for who in ("ours", "java")]
    properties = {
        "format-version": str(version),
        **{f"write.{o}.mode": mode for o in ("delete", "update", "merge")},
    }
    ours, _ = (
        new_table(oracle, name, schema, partitioned_by=["p"], properties=properties)
        for name in names
    )
    return names[0], ours, names[1]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (1, "copy-on-write"),
        *((v, mode) for v in (2, 3) for mode in ("copy-on-write", "merge-on-read")),
    ],
)
def test_changed_rows_are_read_everywhere(
    oracle: Oracle, java: JavaTables, version: int, mode: str
) -> None:
    schema = "id BIGINT, v INT, p STRING, n STRUCT<a: INT, b: ARRAY<STRING>>"
    name, table, of_java = twins(oracle, schema, version, mode)
    arrow = to_arrow(table)
    rows = [
        {"id": i, "v": i % 5, "p": "ab"[i % 2], "n": {"a": i, "b": [f"{i}", None]}}
        for i in range(40)
    ]
    table.append(pa.Table.from_pylist(rows, arrow))
    oracle.sql(f"INSERT INTO {of_java} SELECT * FROM {name}")
    new = [(i, 100 + (i or 0), "b", None) for i in (3, 8, 50, 51, None)]
    source = pa.Table.from_pylist([dict(zip(arrow.names, row, strict=True)) for row in new], arrow)
    oracle.spark.createDataFrame(new, schema).createOrReplaceTempView("row_changes_source")
    table.delete("v = 1 AND p = 'a'")
    oracle.sql(f"DELETE FROM {of_java} WHERE v = 1 AND p = 'a'")
    table.update({"v": "v * 10", "p": "'c'"}, "v = 2 OR id IN (3, 4)")
    oracle.sql(f"UPDATE {of_java} SET v = v * 10, p = 'c' WHERE v = 2 OR id IN (3, 4)")
    table.update({"n.a": "v + 1", "n.b": None}, "id > 35 OR id = 8")
    oracle.sql(f"UPDATE {of_java} SET n.a = v + 1, n.b = NULL WHERE id > 35 OR id = 8")
    replaced = pa.Table.from_pylist([rows[i] | {"v": 200 + i} for i in (2, 20)], arrow)
    snapshot = table.overwrite(replaced, "id < 6 AND v <> 40")
    assert snapshot.operation == "overwrite"
    oracle.sql(f"DELETE FROM {of_java} WHERE id < 6 AND v <> 40")
    oracle.spark.createDataFrame(
        [(r["id"], r["v"], r["p"], r["n"]) for r in replaced.to_pylist()], schema
    ).createOrReplaceTempView("row_changes_replaced")
    oracle.sql(f"INSERT INTO {of_java} SELECT * FROM row_changes_replaced")
    table.upsert(source, "id")
    merge = f"MERGE INTO {of_java} t USING row_changes_source s ON t.id = s.id "
    oracle.sql(merge + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    table.merge(source, "id").when_matched_delete("t.p = 'b' AND s.v > 120").when_matched_update(
        {"v": "t.v + s.v", "n.a": "s.v"}
    ).when_not_matched_by_source_update({"n": None}, "v < 30").when_not_matched_by_source_delete(
        "id > 30"
    ).execute()
    oracle.sql(
        merge + "WHEN MATCHED AND t.p = 'b' AND s.v > 120 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = t.v + s.v, n.a = s.v "
        "WHEN NOT MATCHED BY SOURCE AND t.v < 30 THEN UPDATE SET n = NULL "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 30 THEN DELETE"
    )
    expected = our_table(oracle, of_java).scan().to_arrow()
    assert expected.num_rows > 20
    assert_all_read(java, name, expected, with_pyiceberg=version < 3)
    if version == 3 and mode == "merge-on-read":
        lineage = ["id", "_row_id", "_last_updated_sequence_number"]
        of_ours = oracle.sql(f"SELECT {', '.join(lineage)} FROM {name}").collect()
        read = table.scan(columns=lineage).to_arrow().to_pylist()
        assert sorted(map(str, of_ours)) == sorted(str(type(of_ours[0])(**row)) for row in read)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KEYS)
def test_keys_match_as_in_a_merge(oracle: Oracle, java: JavaTables, kind: str) -> None:
    sql, old, new = KEYS[kind]
    name, table, of_java = twins(oracle, f"k {sql}, v STRING, p STRING", 3, "merge-on-read")
    arrow = to_arrow(table)
    before = [{"k": k, "v": "old", "p": "a"} for k in old]
    source = [{"k": k, "v": "new", "p": "a"} for k in new]
    table.append(pa.Table.from_pylist(before, arrow))
    oracle.sql(f"INSERT INTO {of_java} SELECT * FROM {name}")
    given = new_table(
        oracle, f"java_sql.row_changes.s{next(_numbers)}", f"k {sql}, v STRING, p STRING"
    )
    given.append(pa.Table.from_pylist(source, arrow))
    changes = table.upsert(pa.Table.from_pylist(source, arrow), "k")
    oracle.sql(
        f"MERGE INTO {of_java} t USING java_sql.row_changes.{given.identifier.name} s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    expected = our_table(oracle, of_java).scan().to_arrow()
    assert java.rows(name) == show_rows(expected)
    assert changes.updated == sum(v == "new" for v in expected["v"].to_pylist()) - changes.inserted
    assert changes.updated > 0


def to_arrow(table: Table) -> pa.Schema:
    schema: pa.Schema = table.scan(limit=0).to_arrow().schema
    return schema
