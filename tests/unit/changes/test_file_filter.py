"""What a filter decides for whole files: by partition, by metrics, or by neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iceberg_pyspark.changes.file_filter import compile_file_match, compile_may_match
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.removals import Match
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.predicates import And, LiteralPredicate, Predicate
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.types import LongType
from iceberg_pyspark.spec.values import value_to_bytes
from tests.support.commit_tables import BY_PART, SCHEMA

METADATA = new_table_metadata(
    SCHEMA, BY_PART, None, "t", {}, format_version=2, table_uuid="u", now_ms=1
)
FILE = DataFile(
    file_path="f",
    partition=("x",),
    record_count=4,
    file_size_in_bytes=1,
    value_counts={1: 4},
    null_value_counts={1: 0},
    lower_bounds={1: value_to_bytes(LongType(), 10)},
    upper_bounds={1: value_to_bytes(LongType(), 20)},
)
IN_X = LiteralPredicate("eq", "part", "x")
IN_Y = LiteralPredicate("eq", "part", "y")


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (IN_X, "all"),
        (IN_Y, "none"),
        (LiteralPredicate("lt", "id", 21), "all"),
        (LiteralPredicate("lt", "id", 20), "some"),
        (LiteralPredicate("lt", "id", 10), "none"),
        (And(IN_X, LiteralPredicate("gt", "id", 12)), "some"),
        (And(IN_Y, LiteralPredicate("gt", "id", 12)), "none"),
    ],
)
def test_partition_first_then_metrics(predicate: Predicate, expected: Match) -> None:
    bound = bind(predicate, METADATA.current_schema)
    assert compile_file_match(bound, METADATA)(FILE) == expected
    assert compile_may_match(bound, METADATA)(FILE) == (expected != "none")


def test_a_file_of_a_spec_added_since_is_judged_by_metrics_alone() -> None:
    newer = DataFile(
        file_path="g", spec_id=7, partition=("y", 3), record_count=1, file_size_in_bytes=1
    )
    match = compile_file_match(bind(IN_X, METADATA.current_schema), METADATA)
    assert match(newer) == "some"


def test_a_delete_file_is_judged_by_the_metrics_of_the_columns_that_it_compares() -> None:
    """docs/conformance.md 27: other columns of a delete file may differ from the deleted rows."""
    below = compile_may_match(
        bind(LiteralPredicate("lt", "id", 10), METADATA.current_schema), METADATA
    )
    of_id = replace(FILE, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    assert not below(of_id)
    assert below(replace(of_id, equality_ids=(2,)))
    assert below(replace(FILE, content=FileContent.POSITION_DELETES))
