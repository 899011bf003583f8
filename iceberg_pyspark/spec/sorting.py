"""Sort orders. Specification, "Sorting" and Appendix C "Sort Orders"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.transforms import Transform, transform_of

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
        """The single source column's field id."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """A list of sort fields; id 0 is reserved for the unsorted order."""

    order_id: int
    fields: tuple[SortField, ...] = ()


UNSORTED = SortOrder(order_id=0)


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """A sort order as metadata JSON."""
    fields: list[dict[str, Any]] = []
    for f in order.fields:
        source: dict[str, Any] = (
            {"source-id": f.source_id}
            if len(f.source_ids) == 1
            else {"source-ids": list(f.source_ids)}
        )
        fields.append(
            {
                "transform": str(f.transform),
                **source,
                "direction": f.direction,
                "null-order": f.null_order,
            }
        )
    return {"order-id": order.order_id, "fields": fields}


def sort_order_from_json(data: Any, path: str = "sort-order") -> SortOrder:
    """Parse a sort order; errors name the JSON path."""
    try:
        return SortOrder(
            order_id=data["order-id"],
            fields=tuple(
                SortField(
                    source_ids=tuple(_source_ids(f)),
                    transform=transform_of(f["transform"], len(_source_ids(f))),
                    direction=_one_of(f["direction"], "asc", "desc"),
                    null_order=_one_of(f["null-order"], "nulls-first", "nulls-last"),
                )
                for f in data["fields"]
            ),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise InvalidMetadataError(f"{path}: {e}") from e


def _source_ids(field: Any) -> list[int]:
    ids: list[int] = field["source-ids"] if field.get("source-ids") else [field["source-id"]]
    return ids


def _one_of(value: str, *allowed: str) -> Any:
    if value.lower() not in allowed:
        raise ValueError(f"{value!r} is not one of {', '.join(allowed)}")
    return value.lower()
