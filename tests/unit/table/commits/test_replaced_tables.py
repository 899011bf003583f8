"""What the replacement of a table by one with other column types means for others.

A replaced table keeps its history, and a column of the same name keeps its field id, whatever its
new type is. Older snapshots are read with the types that the columns had then. An operation that
began before is refused.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark import SnapshotSelector, Table
from iceberg_pyspark.changes.new_table import replace_table
from iceberg_pyspark.errors import ConcurrentChangeError, InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import IdentityTransform, Transform, TruncateTransform
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    Type,
)
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.new_data import write_rows
from tests.support.deleted_rows import delete_keys
from tests.support.file_commits import commit_append
from tests.support.frames import append_rows, create_path_table, path_table


def replace_column(table: Table, type_: Type, transform: Transform | None = None) -> None:
    """Replace the table by one whose column p has another type, partitioned as before."""
    [column] = (f.field_id for f in table.schema.fields if f.name == "p")
    fields = tuple(
        NestedField(field_id=f.field_id, name=f.name, type=type_ if f.name == "p" else f.type)
        for f in table.schema.fields
    )
    [name] = (f.name for f in table.metadata.default_spec.fields) if transform else (None,)
    spec = PartitionSpec(
        spec_id=0,
        fields=(
            ()
            if transform is None or name is None
            else (
                PartitionField(source_ids=(column,), field_id=1000, name=name, transform=transform),
            )
        ),
    )
    step = MetadataStep(
        lambda m: replace_table(m, Schema(fields=fields), spec, location=None, properties={})
    )
    commit_steps(table.catalog, table.loaded, [step])
    table.refresh()


def ids_before(table: Table, snapshot_id: int | None, filter: str) -> list[int]:
    scan = table.scan(filter=filter, selector=SnapshotSelector(snapshot_id=snapshot_id))
    return sorted(scan.to_arrow()["id"].to_pylist())


IDENTITY, TRUNCATE = ("p", IdentityTransform()), ("truncate(3, p)", TruncateTransform(3))


@pytest.mark.parametrize(
    ("before", "values", "condition", "after", "partitioning"),
    [
        ("INT", [1, 256], "p = 256", StringType(), IDENTITY),
        ("INT", [1, 256], "p = 256", LongType(), IDENTITY),
        ("STRING", ["a", "b"], "p = 'b'", IntegerType(), IDENTITY),
        ("STRING", ["abcd", "bcde"], "p = 'bcde'", IntegerType(), TRUNCATE),
        ("BIGINT", [1, 5_000_000_000], "p > 1", IntegerType(), IDENTITY),
        (
            "DATE",
            [dt.date(2019, 1, 1), dt.date(2020, 1, 1)],
            "p = DATE'2020-01-01'",
            TimestampType(),
            IDENTITY,
        ),
        (
            "TIMESTAMP_NTZ",
            [dt.datetime(2019, 1, 1), dt.datetime(2020, 1, 1)],
            "p = TIMESTAMP_NTZ'2020-01-01 00:00:00'",
            DateType(),
            IDENTITY,
        ),
        (
            "DECIMAL(9, 2)",
            [Decimal("1.00"), Decimal("2.50")],
            "p = 2.50",
            DecimalType(9, 3),
            IDENTITY,
        ),
    ],
)
def test_partition_values_have_the_type_of_their_time(
    tmp_path: Path,
    before: str,
    values: list[Any],
    condition: str,
    after: Type,
    partitioning: tuple[str, Transform],
) -> None:
    text, transform = partitioning
    rows = [{"id": i, "p": v} for i, v in enumerate(values)]
    table = create_path_table(tmp_path / "t", f"id BIGINT, p {before}", rows, partitioned_by=[text])
    first = table.metadata.current_snapshot_id
    replace_column(table, after, transform)
    assert table.scan().to_arrow().num_rows == 0
    assert ids_before(table, first, "true") == [0, 1]
    assert ids_before(table, first, condition) == [1]
    scan = table.scan(selector=SnapshotSelector(snapshot_id=first))
    assert sorted(scan.to_arrow()["p"].to_pylist()) == values
    assert table.verify(check_files=True).ok


def test_equality_deletes_compare_bounds_of_the_type_of_their_time(tmp_path: Path) -> None:
    """As bytes of text, the bounds of 256 are outside of the bounds of 1 to 300."""
    rows = [{"id": i, "p": p} for i, p in enumerate((1, 256, 300))]
    table = create_path_table(
        tmp_path / "t", "id BIGINT, p INT", rows, properties={"format-version": "2"}
    )
    [p] = (f.field_id for f in table.schema.fields if f.name == "p")
    key = value_to_bytes(IntegerType(), 256)
    delete_keys(
        table,
        "p",
        [256],
        value_counts={p: 1},
        null_value_counts={p: 0},
        lower_bounds={p: key},
        upper_bounds={p: key},
    )
    before = table.metadata.current_snapshot_id
    assert ids_before(table, before, "true") == [0, 2]
    replace_column(table, StringType())
    assert ids_before(table, before, "true") == [0, 2]


@pytest.mark.parametrize("partitioned_by", [(), ("p",)])
def test_an_operation_that_began_before_is_refused(
    tmp_path: Path, partitioned_by: tuple[str, ...]
) -> None:
    """A file of the old type would make the table unreadable, and a filter removes wrong files."""
    table = create_path_table(
        tmp_path / "t", "id BIGINT, p INT", [{"id": 1, "p": 1}], partitioned_by=partitioned_by
    )
    stale, in_transaction, staged = (path_table(tmp_path / "t") for _ in range(3))
    options = CommitOptions(stages_only=True)
    _, files = write_rows(staged.identifier, staged.metadata, staged.io, staged.scan().to_arrow())
    commit_append(staged.catalog, staged.loaded, staged.io, files, options)
    [snapshot] = (s for s in staged.refresh().snapshots if s.parent_snapshot_id is not None)
    transaction = in_transaction.refresh().transaction()
    transaction.append(table.scan().to_arrow())
    replace_column(table.refresh(), StringType(), IdentityTransform() if partitioned_by else None)
    append_rows(table, [{"id": 2, "p": "aaaa"}])
    refused = pytest.raises(ConcurrentChangeError, match=r"'p' was int .* is string since")
    with refused:
        append_rows(stale, [{"id": 3, "p": 3}])
    with pytest.raises(InvalidRequestError, match="'p' is string"):
        # as an int, the bounds of the new file are above zero
        stale.delete("p > 0")
    with refused:
        transaction.commit()
    with refused:
        table.refresh().manage_snapshots().cherry_pick(snapshot.snapshot_id).commit()
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert rows == [{"id": 2, "p": "aaaa"}]


def test_an_operation_that_began_before_a_promotion_is_committed(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT, p INT", [{"id": 1, "p": 1}])
    stale = path_table(tmp_path / "t")
    table.update_schema().update_type("p", "long").drop_column("id").commit()
    append_rows(stale, [{"id": 2, "p": 2}])
    assert sorted(table.refresh().scan().to_arrow()["p"].to_pylist()) == [1, 2]
