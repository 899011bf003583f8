"""The context of the tasks of a session's write."""

from __future__ import annotations

import uuid
from dataclasses import replace

from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.write.distribution import (
    WriteDistribution,
    no_distribution,
    write_distribution,
)
from iceberg_pyspark.spark.write.settings import WriteSettings
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.changes.new_data import write_context_of


def context_and_distribution(
    table: str, metadata: TableMetadata, settings: WriteSettings
) -> tuple[WriteContext, WriteDistribution]:
    """Return context and distribution for the options' spec and sort order, or the table's."""
    context = write_context_of(
        table,
        metadata,
        write_id=str(uuid.uuid4()),
        spec=_spec(table, metadata, settings.options.spec_id),
        overrides=settings.properties,
        case_sensitive=False,
    )
    order = _sort_order(table, metadata, settings.options.sort_order_id)
    if not settings.options.uses_distribution:
        return context, no_distribution(context.schema, context.spec)
    return with_distribution(context, order)


def with_distribution(
    context: WriteContext, order: SortOrder
) -> tuple[WriteContext, WriteDistribution]:
    """Return the distribution that the context's properties require, and the context for it."""
    distribution = write_distribution(context.schema, context.spec, order, context.properties)
    return replace(context, sort_order_id=distribution.sort_order.order_id), distribution


def _spec(table: str, metadata: TableMetadata, spec_id: int | None) -> PartitionSpec:
    spec = metadata.default_spec if spec_id is None else metadata.spec_by_id.get(spec_id)
    if spec is None:
        raise InvalidRequestError(
            f"table {table} has no partition spec {spec_id} (output-spec-id); it has "
            f"{', '.join(str(i) for i in sorted(metadata.spec_by_id))}"
        )
    return spec


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
