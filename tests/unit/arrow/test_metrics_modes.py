"""The metrics modes of columns, as set by the `write.metadata.metrics.*` properties."""

from __future__ import annotations

import pytest

from iceberg_pyspark.arrow.column_metrics import (
    DEFAULT,
    NONE,
    MetricsMode,
    metrics_mode,
    metrics_modes,
)
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import check_set_properties
from iceberg_pyspark.spec.types import IntegerType, ListType, NestedField, StringType, StructType


def leaf(field_id: int, name: str) -> NestedField:
    return NestedField(field_id=field_id, name=name, type=IntegerType())


SCHEMA = Schema(
    fields=(
        leaf(1, "a"),
        NestedField(
            field_id=2,
            name="s",
            type=StructType(
                (
                    leaf(3, "x"),
                    NestedField(field_id=4, name="t", type=StructType((leaf(5, "y"),))),
                )
            ),
        ),
        NestedField(field_id=6, name="l", type=ListType(element_id=7, element_type=StringType())),
        leaf(8, "b"),
    )
)


def test_every_primitive_column_has_a_mode() -> None:
    assert metrics_modes(SCHEMA, {}) == dict.fromkeys([1, 8, 3, 5, 7], DEFAULT)
    assert MetricsMode("truncate", 16) == DEFAULT


def test_a_column_of_its_own_mode_and_a_default() -> None:
    modes = metrics_modes(
        SCHEMA,
        {
            "write.metadata.metrics.default": "counts",
            "write.metadata.metrics.column.s.t.y": "full",
            "write.metadata.metrics.column.l.element": "none",
            "write.metadata.metrics.column.l": "full",
            "write.metadata.metrics.column.gone": "full",
        },
    )
    counts = MetricsMode("counts")
    assert modes == {1: counts, 8: counts, 3: counts, 5: MetricsMode("full"), 7: NONE}


def test_only_the_first_columns_have_the_inferred_default_outer_ones_first() -> None:
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "3"}
    assert metrics_modes(SCHEMA, limit) == {1: DEFAULT, 8: DEFAULT, 3: DEFAULT, 5: NONE, 7: NONE}
    # An explicit default applies to all columns.
    properties = {**limit, "write.metadata.metrics.default": "full"}
    assert set(metrics_modes(SCHEMA, properties).values()) == {MetricsMode("full")}


@pytest.mark.parametrize("text", ["", "truncate", "truncate(0)", "truncate(-1)", "all"])
def test_unknown_metrics_mode_is_ignored_as_in_java(text: str) -> None:
    key = "write.metadata.metrics."
    assert set(metrics_modes(SCHEMA, {f"{key}default": text}).values()) == {DEFAULT}
    properties = {f"{key}default": "counts", f"{key}column.a": text, f"{key}column.s.x": "full"}
    assert metrics_modes(SCHEMA, properties)[1] == MetricsMode("counts")
    with pytest.raises(InvalidRequestError, match=f"{key}column.a"):
        check_set_properties({f"{key}column.a": text})


def test_a_negative_number_of_columns_is_ignored_as_java_ignores_it() -> None:
    limit = {"write.metadata.metrics.max-inferred-column-defaults": "-1"}
    assert set(metrics_modes(SCHEMA, limit).values()) == {DEFAULT}


def test_modes_are_read_in_any_case() -> None:
    assert metrics_mode("Truncate(8)", NONE) == MetricsMode("truncate", 8)
    assert metrics_mode("NONE", DEFAULT) == NONE
