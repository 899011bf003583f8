"""Changes tables and namespaces: `create`, `drop`, `rename`, `register`, and `properties`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from iceberg_pyspark.command_line.invocation import Invocation, invocation_of, parse_property
from iceberg_pyspark.command_line.output import NamespaceName, TableName
from iceberg_pyspark.errors import InvalidRequestError, NotFoundError
from iceberg_pyspark.redaction import redact_properties
from iceberg_pyspark.sql_text.names import is_path, parse_levels, readable_name

create_app = typer.Typer(help="Create a table or a namespace.", no_args_is_help=True)
drop_app = typer.Typer(help="Drop a table or a namespace.", no_args_is_help=True)


@create_app.command("table")
def create_table(
    context: typer.Context,
    table: TableName,
    schema: Annotated[
        str, typer.Option(help="Columns in Spark SQL, such as 'id BIGINT NOT NULL, ts TIMESTAMP'.")
    ],
    partitioned_by: Annotated[
        list[str] | None,
        typer.Option(
            help="Partition by this term, such as 'days(ts)' or 'bucket(16, id)'; can be repeated."
        ),
    ] = None,
    sorted_by: Annotated[
        list[str] | None,
        typer.Option(help="Sort rows by this term, such as 'ts DESC'; can be repeated."),
    ] = None,
    location: Annotated[
        str | None,
        typer.Option(
            help="Store the table at this location. Default: a folder that the catalog chooses."
        ),
    ] = None,
    table_property: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Set a property of the table; can be repeated."),
    ] = None,
) -> None:
    """Create a table, and its namespace if it does not exist."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(table)
    if not is_path(name):
        catalog.create_namespace(readable_name(parse_levels(name)[:-1]), if_not_exists=True)
    new_table = catalog.create_table(
        name,
        schema,
        partitioned_by=partitioned_by or (),
        sorted_by=sorted_by or (),
        location=location,
        properties=dict(map(parse_property, table_property or [])),
    )
    invocation.output.effect(f"created table {new_table.identifier} at {new_table.location}")


@create_app.command("namespace")
def create_namespace(
    context: typer.Context,
    namespace: NamespaceName,
    namespace_property: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Set a property of the namespace; can be repeated."),
    ] = None,
) -> None:
    """Create a namespace."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(namespace)
    catalog.create_namespace(name, dict(map(parse_property, namespace_property or [])))
    invocation.output.effect(f"created namespace {name}")


@drop_app.command("table")
def drop_table(
    context: typer.Context,
    table: TableName,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also delete the files of the table.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete the files of --purge without confirmation.")
    ] = False,
) -> None:
    """Drop a table; keep its files, unless --purge is set."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(table)
    if purge and not yes:
        # a table that does not exist fails here, before the question
        _confirm(f"delete all files of table {name} at {catalog.load_table(name).location}?")
    catalog.drop_table(name, purge=purge)
    invocation.output.effect(f"dropped table {name}{' with its files' if purge else ''}")


@drop_app.command("namespace")
def drop_namespace(context: typer.Context, namespace: NamespaceName) -> None:
    """Drop an empty namespace."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(namespace)
    catalog.drop_namespace(name)
    invocation.output.effect(f"dropped namespace {name}")


def rename(
    context: typer.Context,
    from_identifier: Annotated[str, typer.Argument(help="The table's current name.")],
    to_identifier: Annotated[str, typer.Argument(help="The table's new name.")],
) -> None:
    """Rename a table within its catalog."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(from_identifier)
    catalog_name, new_name = invocation.split(to_identifier)
    if catalog_name is not None and catalog_name.lower() != catalog.name.lower():
        raise InvalidRequestError(
            f"{from_identifier} is in catalog '{catalog.name}' and {to_identifier} in "
            f"'{catalog_name}'; a table is renamed within its catalog"
        )
    catalog.rename_table(name, new_name)
    invocation.output.effect(f"renamed table {name} to {new_name}")


def register(
    context: typer.Context,
    table: TableName,
    metadata_location: Annotated[
        str,
        typer.Argument(help="The table's metadata file, such as .../metadata/v3.metadata.json."),
    ],
    plan: Annotated[
        bool, typer.Option("--plan", help="Check the file and the name, and register nothing.")
    ] = False,
) -> None:
    """Register an existing metadata file as a table."""
    invocation = invocation_of(context)
    if is_path(table):
        raise InvalidRequestError(f"'{table}' is a path; a table is registered under a name")
    catalog, name = invocation.locate(table)
    catalog.register_table(name, metadata_location, dry_run=plan)
    invocation.output.effect(f"{'would register' if plan else 'registered'} table {name}")


def _confirm(question: str) -> None:
    """Ask for confirmation at a terminal; raise `InvalidRequestError` without a terminal."""
    if not sys.stdin.isatty():
        raise InvalidRequestError(
            f"there is no terminal to confirm: {question}; pass --yes to confirm"
        )
    typer.confirm(question, abort=True, err=True)


properties_app = typer.Typer(
    help="Print, set and remove properties of tables and namespaces.", no_args_is_help=True
)
_get_app = typer.Typer(help="Print properties.", no_args_is_help=True)
_set_app = typer.Typer(help="Set a property.", no_args_is_help=True)
_remove_app = typer.Typer(help="Remove a property.", no_args_is_help=True)
properties_app.add_typer(_get_app, name="get")
properties_app.add_typer(_set_app, name="set")
properties_app.add_typer(_remove_app, name="remove")

_OnlyProperty = Annotated[
    str | None, typer.Argument(metavar="PROPERTY", help="Print only the value of this property.")
]
_Property = Annotated[str, typer.Argument(metavar="PROPERTY", help="The property's key.")]
_Value = Annotated[str, typer.Argument(metavar="VALUE", help="The property's value.")]


@_get_app.command("table")
def get_of_table(
    context: typer.Context, table: TableName, property_name: _OnlyProperty = None
) -> None:
    """Print the properties of a table, or the value of one."""
    invocation = invocation_of(context)
    _print(invocation, f"table {table}", invocation.table(table).properties, property_name)


@_get_app.command("namespace")
def get_of_namespace(
    context: typer.Context, namespace: NamespaceName, property_name: _OnlyProperty = None
) -> None:
    """Print the properties of a namespace, or the value of one."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(namespace)
    properties = catalog.load_namespace_properties(name)
    _print(invocation, f"namespace {namespace}", properties, property_name)


@_set_app.command("table")
def set_of_table(
    context: typer.Context, table: TableName, property_name: _Property, property_value: _Value
) -> None:
    """Set a property of a table."""
    invocation = invocation_of(context)
    changes = invocation.table(table).update_properties()
    changes.set({property_name: property_value}).commit()
    invocation.output.effect(f"set {property_name} of table {table}")


@_set_app.command("namespace")
def set_of_namespace(
    context: typer.Context,
    namespace: NamespaceName,
    property_name: _Property,
    property_value: _Value,
) -> None:
    """Set a property of a namespace."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(namespace)
    catalog.update_namespace_properties(name, updates={property_name: property_value})
    invocation.output.effect(f"set {property_name} of namespace {namespace}")


@_remove_app.command("table")
def remove_of_table(context: typer.Context, table: TableName, property_name: _Property) -> None:
    """Remove a property of a table."""
    invocation = invocation_of(context)
    loaded_table = invocation.table(table)
    _check_has(f"table {table}", loaded_table.properties, property_name)
    loaded_table.update_properties().remove(property_name).commit()
    invocation.output.effect(f"removed {property_name} of table {table}")


@_remove_app.command("namespace")
def remove_of_namespace(
    context: typer.Context, namespace: NamespaceName, property_name: _Property
) -> None:
    """Remove a property of a namespace."""
    invocation = invocation_of(context)
    catalog, name = invocation.locate(namespace)
    _check_has(f"namespace {namespace}", catalog.load_namespace_properties(name), property_name)
    catalog.update_namespace_properties(name, removals=[property_name])
    invocation.output.effect(f"removed {property_name} of namespace {namespace}")


def _print(
    invocation: Invocation, owner: str, properties: Mapping[str, str], name: str | None
) -> None:
    printable = redact_properties(properties)
    if name is None:
        invocation.output.facts(printable)
        return
    _check_has(owner, properties, name)
    invocation.output.value(name, printable[name])


def _check_has(owner: str, properties: Mapping[str, str], name: str) -> None:
    if name not in properties:
        raise NotFoundError(
            f"{owner} has no property '{name}'; it has: {', '.join(sorted(properties)) or 'none'}"
        )
