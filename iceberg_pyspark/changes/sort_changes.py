"""Changes the sort order: new fields replace the old ones. Specification, "Sorting"."""

from __future__ import annotations

from typing import TypeVar

from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddSortOrder,
    AssertDefaultSortOrderId,
    Changes,
    SetDefaultSortOrder,
    same_table,
)
from iceberg_pyspark.changes.compatibility import check_sort_order
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.sorting import UNSORTED, Direction, NullOrder, SortField, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import GivenTransform, parse_transform

Self = TypeVar("Self", bound="SortChanges")


@checked_methods
class SortChanges:
    """A new sort order that replaces the default one of `metadata`; without fields: unsorted."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._fields: list[SortField] = []

    def asc(
        self: Self,
        source: str,
        transform: GivenTransform = "identity",
        null_order: NullOrder = "nulls-first",
    ) -> Self:
        """Sort by a column or its transform, ascending."""
        return self._add(source, transform, "asc", null_order)

    def desc(
        self: Self,
        source: str,
        transform: GivenTransform = "identity",
        null_order: NullOrder = "nulls-last",
    ) -> Self:
        """Sort by a column or its transform, descending."""
        return self._add(source, transform, "desc", null_order)

    def _add(
        self: Self,
        source: str,
        transform: GivenTransform,
        direction: Direction,
        null_order: NullOrder,
    ) -> Self:
        field = SortField(
            source_ids=(self._metadata.current_schema.find(source).field_id,),
            transform=parse_transform(transform) if isinstance(transform, str) else transform,
            direction=direction,
            null_order=null_order,
        )
        check_sort_order(SortOrder(order_id=0, fields=(field,)), self._metadata.current_schema)
        self._fields.append(field)
        return self

    def changes(self, metadata: TableMetadata) -> Changes:
        """Return the updates and requirements, based on the metadata given to the constructor.

        The code that applies the updates checks whether the order still fits the schema.
        """
        base = self._metadata
        # The order needs an id above 0, because Java's server accepts 0 only for the unsorted
        # order; the catalog may assign another id.
        order_id = 1 + max((o.order_id for o in metadata.sort_orders), default=0)
        order = (
            SortOrder(order_id=order_id, fields=tuple(self._fields)) if self._fields else UNSORTED
        )
        if order.fields == base.default_sort_order.fields:
            return Changes()
        check_sort_order(order, metadata.current_schema)
        return Changes(
            updates=(AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED)),
            requirements=(
                *same_table(base.table_uuid),
                AssertDefaultSortOrderId(base.default_sort_order_id),
            ),
        )
