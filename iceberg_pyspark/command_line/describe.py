"""Shows a table or a namespace: `describe`, `schema`, `spec`, `location`, `uuid`."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iceberg_pyspark.command_line.arguments import TableName
from iceberg_pyspark.command_line.invocation import invocation_of
from iceberg_pyspark.command_line.output import Output
from iceberg_pyspark.errors import NoSuchNamespaceError, NotFoundError
from iceberg_pyspark.redaction import redact_properties
from iceberg_pyspark.spec.display import transform_text, utc_text
from iceberg_pyspark.spec.partitioning import spec_to_json
from iceberg_pyspark.spec.schema import schema_to_json
from iceberg_pyspark.spec.table_metadata import metadata_to_json
from iceberg_pyspark.sql_text.names import is_path

if TYPE_CHECKING:
    from iceberg_pyspark.table.table import Table


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
            f"'{name}' is no {kind} of catalog '{catalog.name}'; `iceberg-py list` lists the names"
        ) from None
    invocation.output.facts(properties)


def schema(context: typer.Context, table: TableName) -> None:
    """Show the columns of a table."""
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
