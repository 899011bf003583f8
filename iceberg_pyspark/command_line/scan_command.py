"""Implements `scan`: rows of a table or of one of its metadata tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from iceberg_pyspark.command_line.invocation import Invocation, invocation_of
from iceberg_pyspark.command_line.output import Limit, SnapshotId
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.sql_text.names import is_path, parse_levels, readable_name

if TYPE_CHECKING:
    import pyarrow as pa

    from iceberg_pyspark.spec.schema import Schema
    from iceberg_pyspark.table.metadata_tables.rows import MetadataTable
    from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector

_BETWEEN_COMMAS = re.compile(r"(?:`[^`]*`|[^,`])+")
# the read options with these names accept the same format
_MILLISECONDS = re.compile(r"[0-9]{1,19}")


def scan(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="The name or path of a table, or a metadata table, such as db.table.files.",
        ),
    ],
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Print only rows that match this condition, such as 'id > 5 AND v IS NULL'.",
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Print only these columns, separated by commas.")
    ] = None,
    snapshot_id: SnapshotId = None,
    ref: Annotated[str | None, typer.Option(help="Read this branch or tag.")] = None,
    as_of: Annotated[
        str | None,
        typer.Option(help="Read the snapshot at this time, such as 2026-01-31T12:00:00+01:00."),
    ] = None,
    start_snapshot_id: Annotated[
        int | None,
        typer.Option(
            help="Print only rows of later snapshots: appended rows, or rows of db.table.changes."
        ),
    ] = None,
    end_snapshot_id: Annotated[
        int | None,
        typer.Option(
            help="Print only rows up to this snapshot. Default: the newest snapshot (of --ref)."
        ),
    ] = None,
    start_timestamp: Annotated[
        str | None,
        typer.Option(help="Like --start-snapshot-id, with a time, or milliseconds since 1970."),
    ] = None,
    end_timestamp: Annotated[
        str | None,
        typer.Option(help="Like --end-snapshot-id, with a time, or milliseconds since 1970."),
    ] = None,
    limit: Limit = 20,
    count: Annotated[bool, typer.Option("--count", help="Print only the number of rows.")] = False,
) -> None:
    """Show the first rows of a table."""
    from iceberg_pyspark.command_line.arrow_rows import rows_of  # noqa: PLC0415 - needs pyarrow

    invocation = invocation_of(context)
    selection = _rows(
        invocation,
        table,
        _selector(
            snapshot_id,
            ref,
            as_of,
            start_snapshot_id,
            end_snapshot_id,
            start_timestamp,
            end_timestamp,
        ),
        None if columns is None else [c.strip() for c in _BETWEEN_COMMAS.findall(columns)],
        filter_,
    )
    if count:
        invocation.output.value("count", selection.count())
        return
    rows = (
        list(row.values())
        for batch in selection.batches
        for row in rows_of(batch.slice(0, limit), selection.schema)
    )
    names = [f.name for f in selection.schema.fields]
    invocation.output.rows(names, islice(rows, limit))


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows that are read lazily."""

    schema: Schema
    batches: Iterator[pa.RecordBatch]
    count: Callable[[], int]


def _selector(
    snapshot_id: int | None,
    ref: str | None,
    as_of: str | None,
    start_id: int | None,
    end_id: int | None,
    start: str | None,
    end: str | None,
) -> SnapshotSelector:
    from iceberg_pyspark.table.reading.snapshot_selection import (  # noqa: PLC0415 - as above
        SnapshotSelector,
        timestamp_ms_of,
    )

    def milliseconds(text: str | None) -> int | None:
        if text is None:
            return None
        return int(text) if _MILLISECONDS.fullmatch(text) else timestamp_ms_of(text)

    is_range = any(bound is not None for bound in (start_id, end_id, start, end))
    return SnapshotSelector(
        snapshot_id=snapshot_id,
        version=None if is_range else ref,
        branch=ref if is_range else None,
        as_of_timestamp_ms=None if as_of is None else timestamp_ms_of(as_of),
        start_snapshot_id=start_id,
        end_snapshot_id=end_id,
        start_timestamp_ms=milliseconds(start),
        end_timestamp_ms=milliseconds(end),
    )


def _rows(
    invocation: Invocation,
    name: str,
    selector: SnapshotSelector,
    columns: Sequence[str] | None,
    filter_: str | None,
) -> _Rows:
    """Return the rows of a table, or of the metadata table with that name if there is no table."""
    catalog, name_there = invocation.locate(name)
    try:
        table = catalog.load_table(name_there)
    except NoSuchTableError:
        of_table, metadata_name = _metadata_table(name_there)
        if not metadata_name:
            raise
        if filter_ is not None:
            raise InvalidRequestError(
                f"{name} is a metadata table, which takes no --filter; `iceberg-py sql` does"
            ) from None
        metadata_table = catalog.load_table(of_table).metadata_table(
            metadata_name, selector=selector
        )
        return _rows_of_metadata_table(metadata_table, columns)
    rows = table.scan(filter=filter_, columns=columns, selector=selector)
    return _Rows(
        schema=rows.context.projection,
        batches=rows.to_batches(),
        count=rows.count,
    )


def _rows_of_metadata_table(table: MetadataTable, columns: Sequence[str] | None) -> _Rows:
    if columns is not None:
        table = table.select(table.schema.select(columns))
    return _Rows(
        schema=table.schema,
        batches=table.to_batches(),
        count=lambda: sum(batch.num_rows for batch in table.to_batches()),
    )


def _metadata_table(name: str) -> tuple[str, str]:
    """Return a table's name and its metadata table in `name`, which is empty if there is none."""
    from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES  # noqa: PLC0415 - as above

    if is_path(name):
        table, _, last = name.rpartition("#")
    else:
        *levels, last = parse_levels(name)
        table = readable_name(levels)
    return table, last if last.lower() in METADATA_TABLES else ""
