"""The context of the tasks of a write, with the distribution and the order of its rows."""

from __future__ import annotations

from dataclasses import replace

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.write.distribution import (
    WriteDistribution,
    no_distribution,
    write_distribution,
)
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata


def context_and_distribution(
    write: ResolvedWrite, metadata: TableMetadata | None = None
) -> tuple[WriteContext, WriteDistribution]:
    """Return context and distribution for the options' spec and sort order, or the table's."""
    context = write.context(metadata)
    options = write.settings.options
    order = _sort_order(write.table, metadata or write.metadata, options.sort_order_id)
    if not options.uses_distribution:
        return context, no_distribution(context.schema, context.spec)
    return with_distribution(context, order)


def with_distribution(
    context: WriteContext, order: SortOrder
) -> tuple[WriteContext, WriteDistribution]:
    """Return the distribution that the context's properties require, and the context for it."""
    distribution = write_distribution(context.schema, context.spec, order, context.properties)
    return replace(context, sort_order_id=distribution.sort_order.order_id), distribution


def _sort_order(table: str, metadata: TableMetadata, order_id: int | None) -> SortOrder:
    if order_id is None:
        return metadata.default_sort_order
    order = {o.order_id: o for o in (UNSORTED, *metadata.sort_orders)}.get(order_id)
    if order is None:
        raise InvalidRequestError(
            f"table {table} has no sort order {order_id} (output-sort-order-id); it has "
            f"{', '.join(str(o.order_id) for o in metadata.sort_orders)}"
        )
    return order
