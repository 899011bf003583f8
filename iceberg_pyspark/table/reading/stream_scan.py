"""The scan of one batch of a stream, with the columns that the stream began with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from iceberg_pyspark.table.reading.append_stream import AppendStream, StreamBatch
from iceberg_pyspark.table.reading.snapshot_stream import SnapshotStream
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table


def scan_of_batch(
    stream: AppendStream,
    batch: StreamBatch,
    schema: Schema,
    projection: Callable[[Schema], Schema],
) -> TableScan:
    """Return the scan of a batch of appended rows; arguments as in `scan_of_stream`."""
    return replace(
        scan_of_stream(stream, schema, projection),
        snapshot=batch.snapshot,
        appends=batch.appends,
        only_files=batch.only_files,
    )


def scan_of_stream(
    stream: SnapshotStream, schema: Schema, projection: Callable[[Schema], Schema]
) -> TableScan:
    """Return a scan with the columns of a stream.

    `schema` is the table's schema when the stream began, from which `projection` takes the columns
    to read. Raise `InvalidRequestError` if one of them was dropped or has changed since, so that
    rows written since then do not fit the running query.
    """
    scan = scan_table(
        stream.table, stream.metadata, stream.io, projection=lambda _: projection(schema)
    )
    _check_unchanged(stream, schema, scan.context.projection)
    others = (s for s in scan.context.schemas if s != schema)
    return replace(scan, context=replace(scan.context, schemas=(schema, *others)))


def _check_unchanged(stream: SnapshotStream, schema: Schema, projection: Schema) -> None:
    current = stream.metadata.current_schema
    if current == schema:
        return
    for f in projection.fields:
        if schema.as_struct.field(f.field_id) is None:
            continue  # a hidden column
        change = _change(f, current.as_struct)
        if change is not None:
            raise InvalidRequestError(
                f"table {stream.table}: {change} while the stream was running, so it cannot read "
                "rows that were written since; restart the query, which then reads the columns "
                "as they are now"
            )


def _change(field: NestedField, parent: StructType) -> str | None:
    """Return what has changed of a field that the struct had; None if its rows still fit."""
    now = parent.field(field.field_id)
    if now is None:
        return f"column {field.name} was dropped"
    if field.required and not now.required:
        return f"column {field.name} became optional"
    before_fields, now_fields = _children(field.type), _children(now.type)
    if before_fields is None or now_fields is None:
        if field.type == now.type:
            return None
        return f"the type of column {field.name} changed from {field.type} to {now.type}"
    changes = (_change(f, now_fields) for f in before_fields.fields)
    return next((c for c in changes if c is not None), None)


def _children(type_: Type) -> StructType | None:
    match type_:
        case StructType():
            return type_
        case ListType():
            return StructType(fields=(type_.element,))
        case MapType():
            return StructType(fields=(type_.key, type_.value))
    return None
