"""Implements `properties get|set|remove` for tables and namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from iceberg_pyspark.command_line.invocation import Invocation, invocation_of
from iceberg_pyspark.command_line.output import NamespaceName, TableName
from iceberg_pyspark.errors import NotFoundError
from iceberg_pyspark.redaction import redact_properties

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
