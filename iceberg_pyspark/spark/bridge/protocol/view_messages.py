"""Requests about the views of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.catalog_messages import NamespaceRequest, TableRequest
from iceberg_pyspark.spark.bridge.protocol.messages import Message, Response


class ViewLoad(TableRequest, frozen=True, kw_only=True):
    """The request for the definition of a view."""


class ViewDefinition(Response, frozen=True, kw_only=True):
    """A view's query in Spark's dialect, and where its names without a catalog or namespace are."""

    exists: bool
    """Whether the view exists; the other fields are empty if it does not."""

    sql: str = ""
    current_catalog: str = ""
    current_namespace: tuple[str, ...] = ()
    schema: str = ""
    """The columns that the query returns, as a Spark schema."""


class ViewDescribe(TableRequest, frozen=True, kw_only=True):
    """A statement that describes a view."""

    statement: Literal["show create", "show properties", "describe extended"]
    property: str | None
    """The only property to show, or None for all."""


class ViewDescription(Response, frozen=True, kw_only=True):
    """The rows of a statement that describes a view."""

    exists: bool
    """Whether the view exists; there are no rows if it does not."""

    rows: tuple[tuple[str, ...], ...] = ()


class ViewNames(Response, frozen=True, kw_only=True):
    """View names without their namespace."""

    names: tuple[str, ...]


class ViewsList(NamespaceRequest, frozen=True, kw_only=True):
    """The request to list the views in a namespace."""


class ViewStatement(Message, frozen=True, kw_only=True):
    """A CREATE, ALTER or DROP VIEW that Spark's parser has read; fields that the kind lacks are
    empty.
    """

    kind: Literal[
        "create",
        "create if not exists",
        "create or replace",
        "replace query",
        "drop",
        "drop if exists",
        "set properties",
        "unset properties",
        "unset properties if exists",
        "rename",
    ]
    name: str
    columns: str = ""
    """The column names and comments, as a Spark schema in which the types are meaningless."""

    comment: str | None = None
    properties: Mapping[str, str] = {}
    removals: tuple[str, ...] = ()
    new_name: tuple[str, ...] = ()
    """The new name of the view, with or without the catalog and the namespace."""


class AnalysedQuery(Message, frozen=True, kw_only=True):
    """The query of a new view, which Spark has analysed."""

    sql: str
    schema: str
    """The columns of the query, as a Spark schema."""

    temporary_objects: tuple[str, ...]
    """The temporary objects that the query names, such as `view v` and `function f`."""

    current_catalog: str
    current_namespace: tuple[str, ...]
    release: str
    """The release of Spark."""


class ViewChange(NamespaceRequest, frozen=True, kw_only=True):
    """A statement about a view in a namespace."""

    statement: ViewStatement
    query: AnalysedQuery | None
