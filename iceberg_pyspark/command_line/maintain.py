"""Implements `maintain`: the procedures of `table.maintenance()`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from iceberg_pyspark.command_line.invocation import Invocation, invocation_of, parse_property
from iceberg_pyspark.command_line.output import COLUMNS, TableName, group_rows
from iceberg_pyspark.spec.snapshots import MAIN

if TYPE_CHECKING:
    from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance

maintain_app = typer.Typer(
    help="Expire snapshots, remove orphan files, rewrite files, compute statistics.",
    no_args_is_help=True,
)


class PrefixMismatch(str, Enum):
    """The values of `--prefix-mismatch-mode`."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


class SourceFormat(str, Enum):
    """The values of `--file-format`."""

    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"


Plan = Annotated[
    bool, typer.Option("--plan", help="Count what the procedure would do, without doing it.")
]
Threads = Annotated[int | None, typer.Option(help="Delete files with this number of threads.")]
Where = Annotated[
    str | None,
    typer.Option(help="Rewrite only files that may contain rows that match this condition."),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="Set an option, such as min-input-files=2; can be repeated.",
    ),
]


@maintain_app.command()
def expire_snapshots(
    context: typer.Context,
    table: TableName,
    older_than: Annotated[
        str | None,
        typer.Option(help="Expire snapshots before this time, such as 2026-01-31T12:00:00+01:00."),
    ] = None,
    retain_last: Annotated[
        int | None, typer.Option(help="Keep at least this number of snapshots of each branch.")
    ] = None,
    snapshot_id: Annotated[
        list[int] | None,
        typer.Option(help="Expire this snapshot regardless of its age; can be repeated."),
    ] = None,
    clean_expired_metadata: Annotated[
        bool,
        typer.Option(
            "--clean-expired-metadata", help="Also remove unused schemas and partition specs."
        ),
    ] = False,
    max_concurrent_deletes: Threads = None,
    plan: Plan = False,
) -> None:
    """Remove old snapshots, and the files that no other snapshot needs."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.expire_snapshots(
            older_than=_milliseconds(older_than),
            retain_last=retain_last,
            snapshot_ids=snapshot_id or (),
            clean_expired_metadata=clean_expired_metadata,
            max_concurrent_deletes=max_concurrent_deletes,
            dry_run=plan,
        )
    _print(invocation, result)


@maintain_app.command()
def compute_table_stats(
    context: typer.Context,
    table: TableName,
    snapshot_id: Annotated[
        int | None, typer.Option(help="Read this snapshot. Default: the current snapshot.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Count the values of this column; can be repeated. Default: all columns."
        ),
    ] = None,
    plan: Plan = False,
) -> None:
    """Count the distinct values of columns, which helps to plan joins."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.compute_table_stats(
            snapshot_id=snapshot_id, columns=column, dry_run=plan
        )
    _print(invocation, result)


@maintain_app.command()
def compute_partition_stats(
    context: typer.Context,
    table: TableName,
    snapshot_id: Annotated[
        int | None, typer.Option(help="Read this snapshot. Default: the current snapshot.")
    ] = None,
    plan: Plan = False,
) -> None:
    """Count rows, files and deletes of each partition."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.compute_partition_stats(snapshot_id=snapshot_id, dry_run=plan)
    _print(invocation, result)


@maintain_app.command()
def remove_orphan_files(
    context: typer.Context,
    table: TableName,
    older_than: Annotated[
        str | None,
        typer.Option(
            help="Delete only files last changed before this time. Default: three days ago."
        ),
    ] = None,
    location: Annotated[
        str | None, typer.Option(help="Search only this folder of the table's folder.")
    ] = None,
    inventory: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Use this list of all files in the folder instead of a listing: a Parquet or CSV "
            "file with the columns file_path and last_modified.",
        ),
    ] = None,
    equal_scheme: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES=NAME",
            help="Treat these schemes as one, such as s3a,s3n=s3; can be repeated.",
        ),
    ] = None,
    equal_authority: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES=NAME",
            help="Treat these buckets or hosts as one, such as b1,b2=b; can be repeated.",
        ),
    ] = None,
    prefix_mismatch_mode: Annotated[
        PrefixMismatch,
        typer.Option(help="Treat files with the path of a needed file, but in another store, so."),
    ] = PrefixMismatch.ERROR,
    max_concurrent_deletes: Threads = None,
    plan: Plan = False,
) -> None:
    """Delete old files in the table's folder that the table does not need."""
    listing = None
    if inventory is not None:
        from iceberg_pyspark.command_line.inventory_files import (  # noqa: PLC0415 - needs pyarrow
            inventory_of,
        )

        listing = inventory_of(inventory)
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.remove_orphan_files(
            older_than=_milliseconds(older_than),
            location=location,
            inventory=listing,
            equal_schemes=dict(map(parse_property, equal_scheme or [])),
            equal_authorities=dict(map(parse_property, equal_authority or [])),
            prefix_mismatch_mode=prefix_mismatch_mode.value,
            max_concurrent_deletes=max_concurrent_deletes,
            dry_run=plan,
        )
    invocation.output.rows(
        ["orphan_file_location"], ([location] for location in result.orphan_file_locations)
    )


@maintain_app.command()
def rewrite_data_files(
    context: typer.Context,
    table: TableName,
    strategy: Annotated[
        str | None, typer.Option(help="Rewrite files with this strategy: binpack or sort.")
    ] = None,
    sort_order: Annotated[
        str | None,
        typer.Option(
            help="Sort rows in this order, such as 'day, id DESC', 'zorder(a, b)' or "
            "'hilbert(a, b)'."
        ),
    ] = None,
    where: Where = None,
    option: Options = None,
    branch: Annotated[str, typer.Option(help="Rewrite the files of this branch.")] = MAIN,
    plan: Plan = False,
) -> None:
    """Rewrite small files, and files with many deleted rows."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.rewrite_data_files(
            strategy=strategy,
            sort_order=sort_order,
            where=where,
            options=dict(map(parse_property, option or [])),
            branch=branch,
            dry_run=plan,
        )
    facts = _facts(result)
    groups = facts.pop("groups")
    if invocation.output.as_json and plan:
        facts["groups"] = [asdict(group) for group in groups]
    invocation.output.facts(facts)
    if groups and not invocation.output.as_json:
        invocation.output.heading("groups of files")
        invocation.output.rows(COLUMNS, group_rows(groups), right=(2, 3, 4))


@maintain_app.command()
def rewrite_manifests(
    context: typer.Context,
    table: TableName,
    spec_id: Annotated[
        int | None,
        typer.Option(
            help="Rewrite manifests of this partition spec. Default: the table's current spec."
        ),
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(help="Sort entries by this partition field; can be repeated."),
    ] = None,
    plan: Plan = False,
) -> None:
    """Rewrite manifests, so that each manifest has the files of few partitions."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.rewrite_manifests(spec_id=spec_id, sort_by=sort_by or (), dry_run=plan)
    _print(invocation, result)


@maintain_app.command()
def rewrite_position_delete_files(
    context: typer.Context,
    table: TableName,
    where: Where = None,
    option: Options = None,
    plan: Plan = False,
) -> None:
    """Rewrite position delete files; in format version 3, as deletion vectors."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.rewrite_position_delete_files(
            where=where, options=dict(map(parse_property, option or [])), dry_run=plan
        )
    _print(invocation, result)


@maintain_app.command()
def rewrite_equality_deletes(context: typer.Context, table: TableName, plan: Plan = False) -> None:
    """Replace equality deletes by position deletes of the same rows."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.rewrite_equality_deletes(dry_run=plan)
    _print(invocation, result)


@maintain_app.command()
def rewrite_table_path(
    context: typer.Context,
    table: TableName,
    source_prefix: Annotated[str, typer.Argument(help="The prefix of the table's paths.")],
    target_prefix: Annotated[str, typer.Argument(help="The prefix of the same paths in the copy.")],
    start_version: Annotated[
        str | None, typer.Option(help="The name of a metadata file whose files are already copied.")
    ] = None,
    end_version: Annotated[
        str | None,
        typer.Option(help="The name of the last metadata file to copy. Default: the current one."),
    ] = None,
    staging_location: Annotated[
        str | None,
        typer.Option(
            help="Write new files to this folder. Default: a folder beside the table's metadata."
        ),
    ] = None,
    create_file_list: Annotated[
        bool, typer.Option(help="Also write the list of files to copy.")
    ] = True,
    plan: Plan = False,
) -> None:
    """Write metadata for a copy of the table at another location, and a list of files to copy."""
    with _with_progress(context, table) as (invocation, maintenance):
        result = maintenance.rewrite_table_path(
            source_prefix=source_prefix,
            target_prefix=target_prefix,
            start_version=start_version,
            end_version=end_version,
            staging_location=staging_location,
            create_file_list=create_file_list,
            dry_run=plan,
        )
    _print(invocation, result)


@maintain_app.command()
def add_files(
    context: typer.Context,
    table: TableName,
    source: Annotated[str, typer.Argument(help="A folder with files, or one file.")],
    file_format: Annotated[
        SourceFormat, typer.Option(help="The format of the files.")
    ] = SourceFormat.PARQUET,
    partition_filter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE", help="Add only files of this partition value; can be repeated."
        ),
    ] = None,
    plan: Plan = False,
) -> None:
    """Add existing files to the table, without copying them."""
    from iceberg_pyspark.command_line.progress import shown_progress  # noqa: PLC0415 - as below

    invocation = invocation_of(context)
    loaded_table = invocation.table(table)
    with shown_progress(Console(stderr=True)) as progress:
        result = loaded_table.add_files(
            source,
            file_format=file_format.value,
            partition_filter=dict(map(parse_property, partition_filter or [])),
            dry_run=plan,
            progress=progress,
        )
    _print(invocation, result)


@contextmanager
def _with_progress(
    context: typer.Context, table: str
) -> Iterator[tuple[Invocation, TableMaintenance]]:
    """Show the progress of a procedure on standard error: a bar, or log lines."""
    from iceberg_pyspark.command_line.progress import shown_progress  # noqa: PLC0415 - as below

    invocation = invocation_of(context)
    catalog, name = invocation.locate(table)
    loaded_table = catalog.load_table(name)
    with shown_progress(Console(stderr=True)) as progress:
        yield invocation, loaded_table.maintenance(progress=progress)


def _milliseconds(time: str | None) -> int | None:
    from iceberg_pyspark.table.reading.snapshot_selection import (  # noqa: PLC0415 - needs pyarrow
        timestamp_ms_of,
    )

    return None if time is None else timestamp_ms_of(time)


def _print(invocation: Invocation, result: Any) -> None:
    """Print the fields of a result by name."""
    invocation.output.facts(_facts(result))


def _facts(result: Any) -> dict[str, Any]:
    return {f.name: getattr(result, f.name) for f in fields(result)}
