"""Sort orders for tests."""

from __future__ import annotations

from iceberg_pyspark.spec.sorting import SortField
from iceberg_pyspark.spec.transforms import IdentityTransform


def ascending(field_id: int) -> SortField:
    """Return the order by the values of a column, nulls first."""
    return SortField(
        source_ids=(field_id,),
        transform=IdentityTransform(),
        direction="asc",
        null_order="nulls-first",
    )
