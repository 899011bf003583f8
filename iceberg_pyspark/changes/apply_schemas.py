"""Applies updates of schemas, partition specs and sort orders.

Specification, "Schemas and Data Types", "Partitioning", "Sorting". A schema, spec or order that
equals an existing one is not added again: `LAST_ADDED` then refers to the existing id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from iceberg_pyspark.changes.changes import LAST_ADDED, AddSchema
from iceberg_pyspark.changes.compatibility import check_schema, check_sort_order, check_spec
from iceberg_pyspark.changes.metadata_builder import NO_ID, MetadataBuilder
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder


def same_schema(a: Schema, b: Schema) -> bool:
    """Return whether two schemas are equal apart from their schema id."""
    return a.fields == b.fields and set(a.identifier_field_ids) == set(b.identifier_field_ids)


def add_schema(builder: MetadataBuilder, update: AddSchema) -> None:
    """Add a schema under the next id, unless the table has an equal schema."""
    m, schema = builder.metadata, update.schema
    check_schema(schema, builder.format_version)
    last_column_id = max(m.last_column_id, update.last_column_id, schema.highest_field_id)
    existing = next((s for s in m.schemas if same_schema(s, schema)), None)
    if existing is not None:
        builder.last_added_schema_id = existing.schema_id
        builder.change(last_column_id=last_column_id)
        return
    schema_id = max((s.schema_id for s in m.schemas), default=-1) + 1
    builder.last_added_schema_id = schema_id
    builder.metadata = replace(
        m,
        schemas=(*m.schemas, replace(schema, schema_id=schema_id)),
        last_column_id=last_column_id,
    )


def add_spec(builder: MetadataBuilder, spec: PartitionSpec) -> None:
    """Add a partition spec under the next id; a field id must not move to another source column."""
    m = builder.metadata
    existing = next((s for s in m.partition_specs if s.same_fields(spec)), None)
    if existing is not None:
        builder.last_added_spec_id = existing.spec_id
        return
    if m.current_schema_id == NO_ID:
        raise InvalidRequestError("a partition spec needs a current schema first")
    check_spec(spec, m.current_schema, builder.format_version)
    sources: dict[int, set[tuple[int, ...]]] = {}
    for other in m.partition_specs:
        for f in other.fields:
            sources.setdefault(f.field_id, set()).add(f.source_ids)
    for f in spec.fields:
        # Version 1 numbers the fields of every spec from 1000, so its ids repeat.
        if m.format_version > 1 and f.source_ids not in sources.get(f.field_id, {f.source_ids}):
            raise InvalidRequestError(
                f"partition field '{f.name}' has id {f.field_id}, which partitions another column; "
                "ids are never reused"
            )
    spec_id = max((s.spec_id for s in m.partition_specs), default=-1) + 1
    builder.last_added_spec_id = spec_id
    builder.metadata = replace(
        m,
        partition_specs=(*m.partition_specs, replace(spec, spec_id=spec_id)),
        last_partition_id=max([m.last_partition_id, *(f.field_id for f in spec.fields)]),
    )


def add_sort_order(builder: MetadataBuilder, order: SortOrder) -> None:
    """Add a sort order under the next id; the unsorted order has id 0."""
    m = builder.metadata
    existing = next((o for o in m.sort_orders if o.fields == order.fields), None)
    if existing is not None:
        builder.last_added_order_id = existing.order_id
        return
    if order.fields:
        if m.current_schema_id == NO_ID:
            raise InvalidRequestError("a sort order needs a current schema first")
        check_sort_order(order, m.current_schema)
        order_id = max((o.order_id for o in m.sort_orders), default=0) + 1
        new_order = replace(order, order_id=order_id)
    else:
        new_order = UNSORTED
    builder.last_added_order_id = new_order.order_id
    builder.metadata = replace(m, sort_orders=(*m.sort_orders, new_order))


def set_current_schema(builder: MetadataBuilder, schema_id: int) -> None:
    """Make a schema the current one."""
    schema_id = _last_added_id(schema_id, builder.last_added_schema_id, "schema")
    if schema_id not in builder.metadata.schema_by_id:
        raise InvalidRequestError(
            f"cannot make schema {schema_id} current: the table has no such schema"
        )
    builder.change(current_schema_id=schema_id)


def set_default_spec(builder: MetadataBuilder, spec_id: int) -> None:
    """Make a partition spec the default."""
    spec_id = _last_added_id(spec_id, builder.last_added_spec_id, "partition spec")
    if spec_id not in builder.metadata.spec_by_id:
        raise InvalidRequestError(
            f"cannot make partition spec {spec_id} the default: the table has no such spec"
        )
    builder.change(default_spec_id=spec_id)


def set_default_sort_order(builder: MetadataBuilder, order_id: int) -> None:
    """Make a sort order the default."""
    order_id = _last_added_id(order_id, builder.last_added_order_id, "sort order")
    if order_id not in builder.metadata.sort_order_by_id:
        raise InvalidRequestError(
            f"cannot make sort order {order_id} the default: the table has no such sort order"
        )
    builder.change(default_sort_order_id=order_id)


def remove_schemas(builder: MetadataBuilder, schema_ids: Collection[int]) -> None:
    """Remove schemas, none of which is the current one."""
    m = builder.metadata
    if m.current_schema_id in schema_ids:
        raise InvalidRequestError(
            f"cannot remove schema {m.current_schema_id}: it is the current schema"
        )
    builder.change(schemas=tuple(s for s in m.schemas if s.schema_id not in schema_ids))


def remove_specs(builder: MetadataBuilder, spec_ids: Collection[int]) -> None:
    """Remove partition specs, none of which is the default."""
    m = builder.metadata
    if m.default_spec_id in spec_ids:
        raise InvalidRequestError(
            f"cannot remove partition spec {m.default_spec_id}: it is the default spec"
        )
    builder.change(partition_specs=tuple(s for s in m.partition_specs if s.spec_id not in spec_ids))


def _last_added_id(id_: int, last_id: int | None, kind: str) -> int:
    if id_ != LAST_ADDED:
        return id_
    if last_id is None:
        raise InvalidRequestError(f"the last added {kind} is referenced, but none was added")
    return last_id
