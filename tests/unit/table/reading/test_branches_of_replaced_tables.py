"""Branches, metadata tables and statistics of tables that were replaced with other column types.

A branch has the columns of the table, also if its snapshot is from before a replacement. Values of
another type are never taken for values of the column: neither bounds nor partition tuples.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark import SnapshotSelector, Table
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform, Transform
from iceberg_pyspark.spec.types import (
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    Type,
)
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.table.metadata_tables.lookup import metadata_table
from iceberg_pyspark.table.reading.metadata_aggregates import Aggregate, known_aggregates
from iceberg_pyspark.table.reading.whole_files import files_are_alike
from tests.support.deleted_rows import delete_keys, delete_positions
from tests.support.frames import append_rows, create_path_table
from tests.unit.table.commits.test_replaced_tables import replace_column

OLD = SnapshotSelector(branch="old")
DAYS = [dt.date(2019, 1, 1), dt.date(2020, 1, 1)]


def replaced_table(
    path: Path,
    before: str,
    values: list[Any],
    after: Type,
    partitioning: tuple[str, Transform] | None = None,
    **properties: str,
) -> Table:
    """Return a table whose column p got another type; branch and tag `old` are from before."""
    rows = [{"id": i, "p": v} for i, v in enumerate(values)]
    table = create_path_table(
        path,
        f"id BIGINT, p {before}",
        rows,
        partitioned_by=[partitioning[0]] if partitioning else [],
        properties=properties,
    )
    table.manage_snapshots().create_branch("old").create_tag("then").commit()
    replace_column(table.refresh(), after, partitioning[1] if partitioning else None)
    return table.refresh()


IDENTITY, BUCKET = ("p", IdentityTransform()), ("bucket(4, p)", BucketTransform(4))
refused = pytest.raises(InvalidRequestError, match=r"before the table was replaced: column 'p' was")
REPLACED = [
    pytest.param("INT", [1, 256], StringType(), IDENTITY, "p = 'zz'", id="int-string"),
    pytest.param("INT", [1, 256], StringType(), BUCKET, "p = 'zz'", id="int-string-buckets"),
    pytest.param("INT", [1, 256], StringType(), None, "p = 'zz'", id="int-string-unpartitioned"),
    pytest.param("STRING", ["a", "b"], IntegerType(), IDENTITY, "p = 7", id="string-int"),
    pytest.param("BIGINT", [1, 2], IntegerType(), IDENTITY, "p = 7", id="long-int"),
    pytest.param(
        "DATE",
        DAYS,
        TimestampType(),
        IDENTITY,
        "p = TIMESTAMP_NTZ'2020-01-01 00:00:00'",
        id="date-timestamp",
    ),
    pytest.param(
        "DATE",
        DAYS,
        TimestampType(),
        BUCKET,
        "p = TIMESTAMP_NTZ'2020-01-01 00:00:00'",
        id="date-timestamp-buckets",
    ),
]


@pytest.mark.parametrize(("before", "values", "after", "partitioning", "condition"), REPLACED)
def test_the_other_columns_of_an_old_branch_are_readable(
    tmp_path: Path,
    before: str,
    values: list[Any],
    after: Type,
    partitioning: tuple[str, Transform] | None,
    condition: str,
) -> None:
    table = replaced_table(tmp_path / "t", before, values, after, partitioning)
    scan = table.scan(columns=["id"], filter="id >= 1", selector=OLD)
    assert scan.to_arrow()["id"].to_pylist() == [1]
    assert table.scan(filter="id >= 0", selector=OLD).count() == 2
    with refused:
        table.scan(selector=OLD).to_arrow()
    with refused:
        table.scan(columns=["id"], filter=condition, selector=OLD).to_arrow()
    if partitioning is not None:
        with refused:
            table.scan(columns=["id", "_partition"], selector=OLD).to_arrow()
    then = table.scan(selector=SnapshotSelector(tag="then")).to_arrow()
    assert sorted(then["p"].to_pylist()) == values


@pytest.mark.parametrize(("before", "values", "after", "partitioning", "condition"), REPLACED)
def test_an_old_branch_takes_new_files_but_keeps_its_manifests(
    tmp_path: Path,
    before: str,
    values: list[Any],
    after: Type,
    partitioning: tuple[str, Transform] | None,
    condition: str,
) -> None:
    merges = {"commit.manifest.min-count-to-merge": "2"}
    table = replaced_table(tmp_path / "t", before, values, after, partitioning, **merges)
    with refused:
        table.delete(condition, branch="old")
    with refused:
        table.delete("id >= 0", branch="old")
    table.append(pa.table({"id": [7], "p": pa.nulls(1)}), branch="old")
    assert sorted(table.scan(columns=["id"], selector=OLD).to_arrow()["id"].to_pylist()) == [
        0,
        1,
        7,
    ]
    assert table.scan(filter="id = 7", selector=OLD).to_arrow()["p"].to_pylist() == [None]
    with refused:
        table.scan(selector=OLD).to_arrow()


def test_a_rolled_back_table_has_the_new_columns(tmp_path: Path) -> None:
    table = create_path_table(
        tmp_path / "t", "id BIGINT, p INT", [{"id": 1, "p": 1}], partitioned_by=["p"]
    )
    append_rows(table, [{"id": 2, "p": 2}])
    old = table.refresh().metadata.current_snapshot_id
    assert old is not None
    replace_column(table, StringType(), IdentityTransform())
    table.manage_snapshots().set_current_snapshot(old).commit()
    with refused:
        table.refresh().scan().to_arrow()
    with refused:
        table.maintenance().rewrite_manifests(sort_by=["p"])
    with refused:
        table.health()


def test_manifests_of_expired_snapshots_are_refused_too(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, p INT", [{"id": 1, "p": 1}])
    append_rows(table, [{"id": 2, "p": 2}])
    table.manage_snapshots().create_branch("old").commit()
    replace_column(table.refresh(), StringType())
    first = table.refresh().snapshots[0].snapshot_id
    table.maintenance().expire_snapshots(snapshot_ids=[first])
    assert first not in table.refresh().metadata.snapshot_by_id
    with refused:
        table.scan(selector=OLD, filter="p = '9'").to_arrow()


def test_equality_deletes_of_an_old_branch_are_not_skipped_by_misread_bounds(
    tmp_path: Path,
) -> None:
    rows = [{"id": i, "p": p} for i, p in enumerate((1, 256, 300))]
    table = create_path_table(tmp_path / "t", "id BIGINT, p INT", rows)
    [p] = (f.field_id for f in table.schema.fields if f.name == "p")
    key = value_to_bytes(IntegerType(), 256)
    counts: dict[str, Any] = {"value_counts": {p: 1}, "null_value_counts": {p: 0}}
    delete_keys(table, "p", [256], **counts, lower_bounds={p: key}, upper_bounds={p: key})
    table.refresh().manage_snapshots().create_branch("old").commit()
    replace_column(table.refresh(), StringType())
    with refused:
        table.refresh().scan(columns=["id"], selector=OLD).to_arrow()


def test_planners_get_neither_bounds_nor_tuples_of_another_type(tmp_path: Path) -> None:
    table = replaced_table(tmp_path / "d", "DATE", DAYS, TimestampType(), IDENTITY)
    greatest = Aggregate(kind="max", column=table.schema.find("p"))
    assert known_aggregates(table.scan(selector=OLD), [], [greatest]) is None
    decimals = [Decimal("1.00"), Decimal("2.50")]
    table = replaced_table(tmp_path / "t", "DECIMAL(9, 2)", decimals, DecimalType(9, 3))
    assert not files_are_alike(table.scan(selector=OLD), table.schema.find("p"))


FILES = ("all_files", "all_data_files", "all_entries", "files", "entries")


def rows_of(table: Table, name: str, *columns: str) -> list[dict[str, Any]]:
    """Return rows of a metadata table; those of entries have the columns of their files."""
    of_one = not name.startswith("all_")
    selector = SnapshotSelector(tag="then") if of_one else None
    m = metadata_table(table.loaded, table.io, name, selector=selector)
    names = [
        f"data_file.{c}" if "entries" in name and c != "readable_metrics" else c for c in columns
    ]
    rows: list[dict[str, Any]] = m.select(m.schema.select(names)).to_arrow().to_pylist()
    return [{**row, **row.get("data_file", {})} for row in rows]


@pytest.mark.parametrize(
    ("before", "values", "after", "shown"),
    [
        ("INT", [1, 256], StringType(), ["1", "256"]),
        ("DATE", DAYS, StringType(), ["2019-01-01", "2020-01-01"]),
        ("DATE", DAYS, TimestampType(), [dt.datetime(2019, 1, 1), dt.datetime(2020, 1, 1)]),
        ("INT", [1, 256], LongType(), [1, 256]),
        ("DATE", [None], IntegerType(), [None]),
    ],
)
def test_metadata_tables_show_partitions_of_other_types(
    tmp_path: Path, before: str, values: list[Any], after: Type, shown: list[Any]
) -> None:
    table = replaced_table(tmp_path / "t", before, values, after, IDENTITY)
    for name in FILES:
        partitions = [row["partition"]["p"] for row in rows_of(table, name, "partition")]
        assert sorted(partitions, key=str) == shown, name
    assert [row["partition"]["p"] for row in rows_of(table, "partitions", "partition")] == shown
    # as in the folder names of that time
    [summary] = rows_of(table, "all_manifests", "partition_summaries")[0]["partition_summaries"]
    least, greatest = summary["lower_bound"], summary["upper_bound"]
    texts = sorted(str(v) for v in values if v is not None) or ["null"]
    assert [least, greatest] == [texts[0], texts[-1]]
    statistics = table.maintenance().compute_partition_stats(
        snapshot_id=table.metadata.refs["then"].snapshot_id
    )
    assert statistics.partition_statistics_file is not None


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [("STRING", ["a", "b"], IntegerType()), ("BIGINT", [1, 5_000_000_000], IntegerType())],
)
def test_partitions_that_the_type_cannot_show_are_refused(
    tmp_path: Path, before: str, values: list[Any], after: Type
) -> None:
    table = replaced_table(tmp_path / "t", before, values, after, IDENTITY)
    for name in FILES:
        assert [row["record_count"] for row in rows_of(table, name, "record_count")] == [1, 1]
        with pytest.raises(InvalidRequestError, match=r"field 'p' are of type \w+, from before"):
            rows_of(table, name, "partition")
    bounds = rows_of(table, "all_manifests", "partition_summaries")[0]["partition_summaries"][0]
    assert [bounds["lower_bound"], bounds["upper_bound"]] == [str(values[0]), str(values[1])]


@pytest.mark.parametrize("partitioning", [None, IDENTITY])
def test_bounds_of_another_type_are_not_shown(
    tmp_path: Path, partitioning: tuple[str, Transform] | None
) -> None:
    table = replaced_table(tmp_path / "t", "INT", [1, 256], StringType(), partitioning)
    append_rows(table, [{"id": 9, "p": "x"}])
    for name in ("all_files", "all_entries"):
        rows = rows_of(table.refresh(), name, "readable_metrics")
        bounds = {
            (m["id"]["lower_bound"], m["p"]["lower_bound"], m["p"]["upper_bound"])
            for m in (row["readable_metrics"] for row in rows)
        }
        old = {(0, None, None), *([(1, None, None)] if partitioning else [])}
        assert bounds == {(9, "x", "x"), *old}


def test_position_deletes_have_the_partition_of_their_time(tmp_path: Path) -> None:
    rows = [{"id": i, "p": 1} for i in range(2)]
    table = create_path_table(
        tmp_path / "t",
        "id BIGINT, p INT",
        rows,
        partitioned_by=["p"],
        properties={"format-version": "3"},
    )
    [file] = (t.file_path for t in table.scan().plan_files())
    delete_positions(table, {file: [0]}, partition=(1,))
    table.refresh().manage_snapshots().create_tag("then").commit()
    replace_column(table.refresh(), StringType(), IdentityTransform())
    assert [
        r["partition"]["p"] for r in rows_of(table.refresh(), "position_deletes", "partition")
    ] == ["1"]


def test_root_manifests_of_an_old_branch_take_no_files(tmp_path: Path) -> None:
    table = replaced_table(
        tmp_path / "t",
        "DATE",
        DAYS,
        TimestampType(),
        IDENTITY,
        **{"format-version": "4", "write.root.file-system-tables.enabled": "true"},
    )
    with refused:
        table.append(pa.table({"id": [7], "p": pa.nulls(1)}), branch="old")


@pytest.mark.parametrize("partitioning", ["years(p)", "months(p)", "days(p)"])
def test_a_date_that_became_a_timestamp_by_evolution(tmp_path: Path, partitioning: str) -> None:
    """The specification allows it where the transform has equal values for both types."""
    table = create_path_table(
        tmp_path / "t",
        "id BIGINT, p DATE",
        [{"id": i, "p": day} for i, day in enumerate(DAYS)],
        partitioned_by=[partitioning],
        properties={"format-version": "3"},
    )
    table.update_schema().update_type("p", TimestampType()).commit()
    append_rows(table.refresh(), [{"id": 2, "p": dt.datetime(2020, 1, 1, 5)}])
    table = table.refresh()
    rows = table.scan(filter="p >= TIMESTAMP_NTZ'2020-01-01 00:00:00'").to_arrow()
    assert sorted(rows["id"].to_pylist()) == [1, 2]
    table.delete("p < TIMESTAMP_NTZ'2019-06-01 00:00:00'")
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2]
