"""Sort orders. Specification, "Sorting" and Appendix C "Sort Orders"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.transforms import (
    Transform,
    VoidTransform,
    source_ids_from_json,
    source_ids_to_json,
    transform_from_json,
)

Direction = Literal["asc", "desc"]
NullOrder = Literal["nulls-first", "nulls-last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortField:
    """One column of a sort order."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: Direction
    null_order: NullOrder

    @property
    def source_id(self) -> int:
        """The field id of the only (or first) source column."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """A list of sort fields; id 0 is reserved for the unsorted order."""

    order_id: int
    fields: tuple[SortField, ...] = ()


UNSORTED = SortOrder(order_id=0)


def partition_sort_fields(spec: PartitionSpec) -> list[SortField]:
    """Return the ascending order by the fields of a partition spec, nulls first."""
    return [
        SortField(
            source_ids=f.source_ids,
            transform=f.transform,
            direction="asc",
            null_order="nulls-first",
        )
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
    ]


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """Return a sort order as metadata JSON."""
    fields = [
        {
            "transform": str(f.transform),
            **source_ids_to_json(f.source_ids),
            "direction": f.direction,
            "null-order": f.null_order,
        }
        for f in order.fields
    ]
    return {"order-id": order.order_id, "fields": fields}


def sort_order_from_json(data: JsonObject) -> SortOrder:
    """Parse a sort order; errors name the JSON path."""
    data.array("fields")
    return SortOrder(
        order_id=data.int32("order-id"),
        fields=tuple(map(_sort_field_from_json, data.objects("fields"))),
    )


def _sort_field_from_json(data: JsonObject) -> SortField:
    direction = data.string("direction").lower()
    if direction not in ("asc", "desc"):
        raise data.wrong("direction", "must be asc or desc")
    null_order = data.string("null-order").lower()
    if null_order not in ("nulls-first", "nulls-last"):
        raise data.wrong("null-order", "must be nulls-first or nulls-last")
    return SortField(
        source_ids=source_ids_from_json(data),
        transform=transform_from_json(data),
        direction="asc" if direction == "asc" else "desc",
        null_order="nulls-first" if null_order == "nulls-first" else "nulls-last",
    )
