"""The distribution and the sort order that a table asks of a write."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.write.distribution import WriteDistribution, write_distribution
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortField, SortOrder
from iceberg_pyspark.spec.transforms import parse_transform
from iceberg_pyspark.spec.types import NestedField, TimestampType

SCHEMA = Schema(
    fields=tuple(
        NestedField(field_id=i, name=n, type=TimestampType(), required=False)
        for i, n in enumerate("ab", 1)
    )
)


def layout(partitioned: str = "", ordered: str = "", **properties: str) -> WriteDistribution:
    """Return the distribution for a spec and an order, both in the form `a:day b:identity`."""
    pairs = [p.split(":") for p in partitioned.split()]
    spec = PartitionSpec(
        spec_id=0,
        fields=tuple(
            PartitionField(
                source_ids=("ab".index(c) + 1,),
                field_id=1000 + i,
                name=f"p{i}",
                transform=parse_transform(t),
            )
            for i, (c, t) in enumerate(pairs)
        ),
    )
    fields = tuple(
        SortField(
            source_ids=("ab".index(c) + 1,),
            transform=parse_transform(t),
            direction="desc",
            null_order="nulls-last",
        )
        for c, t in (p.split(":") for p in ordered.split())
    )
    order = SortOrder(order_id=1, fields=fields) if fields else UNSORTED
    table_properties = {k.replace("_", "."): v for k, v in properties.items()}
    return write_distribution(SCHEMA, spec, order, table_properties)


def of_ordering(distribution: WriteDistribution) -> list[str]:
    return [f"{'ab'[f.source_id - 1]}:{f.transform}:{f.direction}" for f in distribution.ordering]


@pytest.mark.parametrize(
    ("partitioned", "ordered", "mode", "sorts"),
    [
        ("", "", "none", False),
        ("a:day", "", "hash", False),
        ("a:void", "", "none", False),
        ("", "b:identity", "range", True),
        ("a:day", "b:identity", "range", True),
    ],
)
def test_defaults(partitioned: str, ordered: str, mode: str, sorts: bool) -> None:
    distribution = layout(partitioned, ordered)
    assert (distribution.mode, distribution.sorts_rows) == (mode, sorts)


def test_distribution_mode_without_keys_is_none() -> None:
    def resulting_mode(mode: str, **table: str) -> str:
        spec = PartitionSpec(spec_id=0)
        return write_distribution(
            SCHEMA, spec, UNSORTED, {**table, "write.distribution-mode": mode}
        ).mode

    assert resulting_mode("hash") == resulting_mode("RANGE") == "none"
    with pytest.raises(InvalidRequestError, match="none of none, hash, range"):
        resulting_mode("random")


@pytest.mark.parametrize(
    ("partitioned", "ordered", "expected"),
    [
        ("a:day", "", ["a:day:asc"]),
        ("a:day b:bucket[4]", "b:identity", ["a:day:asc", "b:bucket[4]:asc", "b:identity:desc"]),
        ("a:day", "a:hour", ["a:hour:desc"]),
        ("a:day", "a:identity", ["a:identity:desc"]),
        ("a:hour", "a:day", ["a:hour:asc", "a:day:desc"]),
        ("a:void b:day", "", ["b:day:asc"]),
    ],
)
def test_a_task_has_its_rows_by_partition_first(
    partitioned: str, ordered: str, expected: list[str]
) -> None:
    assert of_ordering(layout(partitioned, ordered)) == expected


def test_without_fan_out_rows_are_grouped_by_partition() -> None:
    assert layout("a:day", write_spark_fanout_enabled="false").sorts_rows


def test_partitions_are_as_large_as_java_has_them() -> None:
    assert layout().partition_bytes == 402_653_184
    plain = {"write_parquet_compression-codec": "snappy"}
    assert layout(**plain).partition_bytes == 268_435_456
    assert layout().advised_bytes is None
    option = {"write_spark_advisory-partition-size-bytes": "1000"}
    assert layout(**option).advised_bytes == 1000


def test_rows_are_not_sorted_by_an_order_that_cannot_be_computed() -> None:
    distribution = layout("a:day", "a:identity b:zorder")
    assert (of_ordering(distribution), distribution.sort_order) == (["a:day:asc"], UNSORTED)
    assert of_ordering(layout(ordered="a:void b:identity")) == ["b:identity:desc"]
