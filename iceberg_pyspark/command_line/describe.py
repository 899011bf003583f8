"""Shows a table or a namespace: `describe`, `schema`, `spec`, `location`, `uuid`.

Implements `list`: namespaces and tables.

Shows rows of metadata tables: `files`, `snapshots`, `history`, `refs`.

Commands import what they call, which `--help` does not need.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iceberg_pyspark.catalogs.catalog_properties import configured_names
from iceberg_pyspark.command_line.invocation import Invocation, invocation_of
from iceberg_pyspark.command_line.output import Output, SnapshotId, TableName
from iceberg_pyspark.display import utc_text
from iceberg_pyspark.errors import InvalidRequestError, NoSuchNamespaceError, NotFoundError
from iceberg_pyspark.redaction import redact_properties
from iceberg_pyspark.sql_text.names import is_path

if TYPE_CHECKING:
    from iceberg_pyspark.table.table import Table

# ruff: noqa: PLC0415 - see above

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
    """Print a metadata table: all columns in JSON, else only those of `columns` that it has."""
    from iceberg_pyspark.command_line.arrow_rows import rows_of
    from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector

    invocation = invocation_of(context)
    selector = None if snapshot_id is None else SnapshotSelector(snapshot_id=snapshot_id)
    metadata_table = invocation.table(table).metadata_table(name, selector=selector)
    if columns is not None and not invocation.output.as_json:
        # without a partition spec there is no column `partition`
        shown = [c for c in columns if c in metadata_table.schema.id_by_name]
        metadata_table = metadata_table.select(metadata_table.schema.select(shown))
    schema = metadata_table.schema
    batches = metadata_table.to_batches()
    rows = [row for batch in batches for row in rows_of(batch, schema) if keep(row)]
    for row in rows:
        if "content" in row and not invocation.output.as_json:
            row["content"] = _CONTENTS.get(row["content"], row["content"])
    names = [f.name for f in schema.fields]
    invocation.output.rows(names, ([row[n] for n in names] for row in rows))


def list_names(
    context: typer.Context,
    parent: Annotated[
        str | None, typer.Argument(help="The name of a namespace or of a configured catalog.")
    ] = None,
) -> None:
    """List the namespaces of a catalog, or the namespaces and tables in a namespace."""
    invocation = invocation_of(context)
    catalog_name, namespace = _catalog_and_namespace(invocation, parent or "")
    catalog = invocation.open(catalog_name)
    names = [(name, "namespace") for name in catalog.list_namespaces(namespace)]
    if namespace:
        names += [(name, "table") for name in catalog.list_tables(namespace)]
    invocation.output.rows(("name", "kind"), sorted(names))


def _catalog_and_namespace(invocation: Invocation, parent: str) -> tuple[str | None, str]:
    """Return the catalog to list, and the namespace in the catalog; "" for the top level."""
    if invocation.is_default and parent in configured_names(os.environ):
        return parent, ""
    return invocation.split(parent) if parent else (invocation.catalog, "")


class Entity(str, Enum):
    """The kinds of entities that a name may refer to."""

    ANY = "any"
    NAMESPACE = "namespace"
    TABLE = "table"


def describe(
    context: typer.Context,
    identifier: Annotated[str, typer.Argument(help="The name of a table or a namespace.")],
    entity: Annotated[
        Entity, typer.Option(help="Describe only an entity of this kind.")
    ] = Entity.ANY,
) -> None:
    """Describe a table or a namespace."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(identifier)
    is_for_table = entity is Entity.TABLE or is_path(name)
    if is_for_table or (entity is Entity.ANY and catalog.table_exists(name)):
        _describe_table(invocation.output, catalog.load_table(name))
        return
    try:
        properties = redact_properties(catalog.load_namespace_properties(name))
    except NoSuchNamespaceError:
        kind = "namespace" if entity is Entity.NAMESPACE else "table or namespace"
        raise NotFoundError(
            f"'{name}' is not a {kind} of catalog '{catalog.name}'; "
            "`iceberg-py list` lists the names"
        ) from None
    invocation.output.facts(properties)


def schema(context: typer.Context, table: TableName) -> None:
    """Show the columns of a table."""
    from iceberg_pyspark.spec.schema import schema_to_json

    invocation = invocation_of(context)
    schema = invocation.table(table).schema
    if invocation.output.as_json:
        invocation.output.document(schema_to_json(schema))
        return
    columns = ("id", "name", "type", "required", "doc")
    rows = ((f.field_id, f.name, str(f.type), f.required, f.doc or "") for f in schema.fields)
    invocation.output.rows(columns, rows)


def spec(context: typer.Context, table: TableName) -> None:
    """Show the partition spec of a table."""
    from iceberg_pyspark.spec.partitioning import spec_to_json
    from iceberg_pyspark.spec.transforms import transform_text

    invocation = invocation_of(context)
    loaded_table = invocation.table(table)
    if invocation.output.as_json:
        invocation.output.document(spec_to_json(loaded_table.spec))
        return
    names = loaded_table.schema.name_by_id
    rows = (
        (f.field_id, f.name, transform_text(f.transform, names.get(f.source_id, "?")))
        for f in loaded_table.spec.fields
    )
    invocation.output.rows(("id", "name", "transform"), rows)


def location(context: typer.Context, table: TableName) -> None:
    """Show the base location of a table."""
    invocation = invocation_of(context)
    invocation.output.value("location", invocation.table(table).location)


def uuid(context: typer.Context, table: TableName) -> None:
    """Show the UUID of a table."""
    invocation = invocation_of(context)
    invocation.output.value("uuid", invocation.table(table).metadata.table_uuid)


def _describe_table(output: Output, table: Table) -> None:
    from iceberg_pyspark.spec.table_metadata import metadata_to_json

    metadata = table.metadata
    if output.as_json:
        document = metadata_to_json(metadata)
        output.document(
            {
                "identifier": list(table.identifier.levels),
                "metadata-location": table.loaded.metadata_location,
                "metadata": {**document, "properties": redact_properties(metadata.properties)},
            }
        )
        return
    facts: dict[str, Any] = {
        "table": str(table.identifier),
        "location": metadata.location,
        "metadata location": table.loaded.metadata_location,
        "uuid": metadata.table_uuid,
        "last updated": utc_text(metadata.last_updated_ms),
        **dict(table.facts()),
        "snapshots": len(metadata.snapshots),
    }
    output.facts(facts)
    output.heading("columns")
    output.rows(
        ("id", "name", "type", "required", "doc"),
        ((f.field_id, f.name, str(f.type), f.required, f.doc or "") for f in table.schema.fields),
    )
    if metadata.properties:
        output.heading("properties")
        output.facts(redact_properties(metadata.properties))
