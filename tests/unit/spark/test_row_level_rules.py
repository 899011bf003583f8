"""Decisions of row-level operations without Spark: modes, isolation, targets of assignments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from pyspark.sql import Column
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spark.row_level.change_frame import resolve_paths
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.sql_text.filters import parse_filter
from iceberg_pyspark.table.row_level.isolation import conflict_checks, isolation_of, mode_of
from tests.support.commit_tables import SCHEMA as TABLE_SCHEMA
from tests.support.commit_tables import commit_table, data_file

VALUE = cast("Column", object())
INNER = StructType([StructField("a", IntegerType()), StructField("B", LongType(), False)])
SCHEMA = StructType([StructField("id", LongType()), StructField("St", INNER)])


def metadata(version: int = 2, **properties: str) -> TableMetadata:
    table_properties = {k.replace("__", "-").replace("_", "."): v for k, v in properties.items()}
    return commit_table(format_version=version, properties=table_properties).metadata


def test_changes_rewrite_files_by_default() -> None:
    assert mode_of(metadata(), "merge") == "copy-on-write"
    read = metadata(write_merge_mode="merge-on-read")
    assert mode_of(read, "merge") == "merge-on-read"
    assert mode_of(read, "delete") == "copy-on-write"
    # Version 1 has no delete files.
    assert mode_of(metadata(1, write_merge_mode="merge-on-read"), "merge") == "copy-on-write"
    with pytest.raises(InvalidRequestError, match=r"write\.delete\.mode"):
        mode_of(metadata(write_delete_mode="both"), "delete")


def test_isolation_levels() -> None:
    assert isolation_of(metadata(), "update") == "serializable"
    snapshot = metadata(write_update_isolation__level="snapshot")
    assert isolation_of(snapshot, "update") == "snapshot"
    requests: dict[str, Any] = {
        "snapshot_id": 1,
        "read_predicate": AlwaysTrue(),
        "source_predicate": AlwaysTrue,
        "touched_tasks": (),
    }
    strict = conflict_checks(metadata(), "update", rows_are_kept=True, **requests)
    assert strict.no_new_data is not None
    assert conflict_checks(snapshot, "update", rows_are_kept=True, **requests).no_new_data is None
    with pytest.raises(InvalidRequestError, match="neither serializable nor"):
        isolation_of(metadata(write_update_isolation__level="none"), "update")


def test_the_source_is_asked_once_and_only_about_files_that_may_have_been_read() -> None:
    asked: list[Predicate] = []
    known = replace(
        data_file("known"),
        lower_bounds={1: (5).to_bytes(8, "little")},
        upper_bounds={1: (9).to_bytes(8, "little")},
        value_counts={1: 1},
        null_value_counts={1: 0},
    )
    unknown = data_file("unknown")

    def may_matter(read: str, selected: str) -> list[bool]:
        def source_predicate() -> Predicate:
            asked.append(bind(parse_filter(selected), TABLE_SCHEMA))
            return asked[-1]

        checks = conflict_checks(
            metadata(),
            "merge",
            snapshot_id=1,
            read_predicate=bind(parse_filter(read), TABLE_SCHEMA),
            source_predicate=source_predicate,
            touched_tasks=(),
            rows_are_kept=True,
        )
        assert checks.no_new_data is not None
        return [checks.no_new_data(f) for f in (known, known, unknown)]

    assert may_matter("id < 5", "true") == [False, False, True]
    assert len(asked) == 1
    assert may_matter("id < 6", "id >= 10 and id <= 12") == [False, False, True]
    assert may_matter("id < 6", "id >= 9 and id <= 12") == [True, True, True]
    assert len(asked) == 3


def test_assignments_name_columns_and_fields() -> None:
    paths = resolve_paths(
        {("ID",): VALUE, ("st", "b"): VALUE}, SCHEMA, "db.t", case_sensitive=False
    )
    assert list(paths) == [("id",), ("St", "B")]


@pytest.mark.parametrize(
    ("paths", "case_sensitive", "message"),
    [
        ([("x",)], False, "no column 'x'.*it has id, St"),
        ([("ID",)], True, "no column 'ID'"),
        ([("st", "c")], False, "St has a, B"),
        ([("id", "a")], False, "id has no fields"),
        ([("id",), ("ID",)], False, "'id' of table db.t is assigned twice"),
        ([("st",), ("st", "a")], False, "'St.a' of table db.t is assigned twice"),
        ([("st", "a"), ("st",)], False, "'St' of table db.t is assigned twice"),
    ],
)
def test_assignments_that_name_nothing_or_one_twice(
    paths: list[tuple[str, ...]], case_sensitive: bool, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        resolve_paths(dict.fromkeys(paths, VALUE), SCHEMA, "db.t", case_sensitive=case_sensitive)
