"""The sort order of data files, as far as Spark orders values in the same way.

Each file has the id of its sort order. The leading fields that all files share are an ordering for
Spark. The ordering ends before a field with a transform, and before floats, which Spark and Iceberg
order differently: -0.0 is less than 0.0 in Iceberg.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from iceberg_pyspark.spark.bridge.type_agreement import COMPARED_TYPES
from iceberg_pyspark.spec.sorting import SortField
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import BooleanType

_ORDERED_TYPES = tuple(t for t in COMPARED_TYPES if t is not BooleanType)


def sort_fields(
    metadata: TableMetadata, order_ids: Collection[int | None]
) -> tuple[SortField, ...]:
    """Return the leading sort fields of all files; `order_ids` are the files' sort order ids."""
    if len(order_ids) != 1:
        return ()
    (order_id,) = order_ids
    order = None if order_id is None else metadata.sort_order_by_id.get(order_id)
    fields: list[SortField] = []
    columns = metadata.current_schema.as_struct
    for f in () if order is None else order.fields:
        column = columns.field(f.source_id) if len(f.source_ids) == 1 else None
        alike = column is not None and isinstance(column.type, _ORDERED_TYPES)
        if not alike or not isinstance(f.transform, IdentityTransform):
            break
        fields.append(f)
    return tuple(fields)


def sorted_by(fields: Collection[SortField], names: Mapping[int, str]) -> list[list[str]]:
    """Return name, direction and null order of each field, up to a field without a name here."""
    out = []
    for f in fields:
        if f.source_id not in names:
            break
        out.append([names[f.source_id], f.direction, f.null_order])
    return out
