"""Shows rows of metadata tables: `files`, `snapshots`, `history`, `refs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any

import typer

from iceberg_pyspark.command_line.arguments import SnapshotId, TableName
from iceberg_pyspark.command_line.invocation import invocation_of
from iceberg_pyspark.errors import InvalidRequestError

# these columns fit a line of a terminal; JSON has all columns
_FILE_COLUMNS = ("content", "file_path", "partition", "record_count", "file_size_in_bytes")
_SNAPSHOT_COLUMNS = ("committed_at", "snapshot_id", "parent_id", "operation")
_CONTENTS = {0: "data", 1: "position deletes", 2: "equality deletes"}


class RefType(str, Enum):
    """The values of `--type`."""

    BRANCH = "branch"
    TAG = "tag"


def files(
    context: typer.Context,
    table: TableName,
    snapshot_id: SnapshotId = None,
    history: Annotated[
        bool, typer.Option("--history", help="List the files of all snapshots.")
    ] = False,
) -> None:
    """List the data and delete files of a snapshot."""
    if history and snapshot_id is not None:
        raise InvalidRequestError(
            "--history has the files of all snapshots; leave --snapshot-id out"
        )
    name = "all_files" if history else "files"
    _print(context, table, name, columns=_FILE_COLUMNS, snapshot_id=snapshot_id)


def snapshots(context: typer.Context, table: TableName) -> None:
    """List the snapshots of a table."""
    _print(context, table, "snapshots", columns=_SNAPSHOT_COLUMNS)


def history(context: typer.Context, table: TableName) -> None:
    """List the snapshots that were current, and the time when each became current."""
    _print(context, table, "history")


def refs(
    context: typer.Context,
    table: TableName,
    type_: Annotated[
        RefType | None,
        typer.Option("--type", case_sensitive=False, help="List only branches or only tags."),
    ] = None,
) -> None:
    """List the branches and tags of a table."""
    kind = None if type_ is None else type_.value.upper()
    _print(context, table, "refs", keep=lambda row: kind in (None, row["type"]))


def _print(
    context: typer.Context,
    table: str,
    name: str,
    *,
    columns: Sequence[str] | None = None,
    snapshot_id: int | None = None,
    keep: Callable[[Mapping[str, Any]], bool] = lambda row: True,
) -> None:
    """Print a metadata table: all columns in JSON, else only `columns`."""
    from iceberg_pyspark.command_line.arrow_rows import rows_of  # noqa: PLC0415 - needs pyarrow
    from iceberg_pyspark.table.reading.snapshot_selection import (  # noqa: PLC0415 - the same
        SnapshotSelector,
    )

    invocation = invocation_of(context)
    selector = None if snapshot_id is None else SnapshotSelector(snapshot_id=snapshot_id)
    metadata_table = invocation.table(table).metadata_table(name, selector=selector)
    if columns is not None and not invocation.output.as_json:
        metadata_table = metadata_table.select(metadata_table.schema.select(columns))
    schema = metadata_table.schema
    batches = metadata_table.to_batches()
    rows = [row for batch in batches for row in rows_of(batch, schema) if keep(row)]
    for row in rows:
        if "content" in row and not invocation.output.as_json:
            row["content"] = _CONTENTS.get(row["content"], row["content"])
    names = [f.name for f in schema.fields]
    invocation.output.rows(names, ([row[n] for n in names] for row in rows))
