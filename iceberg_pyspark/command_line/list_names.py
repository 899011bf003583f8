"""Implements `list`: namespaces and tables."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from iceberg_pyspark.catalogs.configuration import configured_names
from iceberg_pyspark.command_line.invocation import Invocation, invocation_of


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
