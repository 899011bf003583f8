"""Requests about catalogs: their namespaces, views, and procedures for CALL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from iceberg_pyspark.spark.bridge.protocol.messages import Message, Request, Response


class CatalogOpen(Request, frozen=True, kw_only=True):
    """The request to open a catalog that a session names."""

    session: str
    name: str
    options: Mapping[str, str]


class CatalogHandle(Response, frozen=True, kw_only=True):
    """The catalog's handle in later requests, and what Spark asks of the catalog itself."""

    handle: str
    default_namespace: tuple[str, ...]
    """The namespace that is current after `USE <catalog>`."""

    release: str
    """The name and version of this package."""


class CatalogRequest(Request, frozen=True, kw_only=True):
    """A request to an open catalog."""

    catalog: str


class NamespaceRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a namespace."""

    namespace: tuple[str, ...]


class TableRequest(NamespaceRequest, frozen=True, kw_only=True):
    """A request about a table."""

    name: str


class NamespacesList(NamespaceRequest, frozen=True, kw_only=True):
    """The request to list the namespaces in a namespace."""


class Namespaces(Response, frozen=True, kw_only=True):
    """Namespaces, each as a tuple of levels."""

    namespaces: tuple[tuple[str, ...], ...]


class NamespaceExists(NamespaceRequest, frozen=True, kw_only=True):
    """The request to check whether a namespace exists."""


class Existence(Response, frozen=True, kw_only=True):
    """Whether a namespace or a table exists."""

    exists: bool


class NamespaceLoad(NamespaceRequest, frozen=True, kw_only=True):
    """The request for the properties of a namespace."""


class NamespaceProperties(Response, frozen=True, kw_only=True):
    """The properties of a namespace."""

    properties: Mapping[str, str]


class NamespaceCreate(NamespaceRequest, frozen=True, kw_only=True):
    """The request of CREATE NAMESPACE."""

    properties: Mapping[str, str]


class NamespaceAlter(NamespaceRequest, frozen=True, kw_only=True):
    """The request of ALTER NAMESPACE."""

    updates: Mapping[str, str]
    removals: tuple[str, ...]


class NamespaceDrop(NamespaceRequest, frozen=True, kw_only=True):
    """The request of DROP NAMESPACE."""

    cascade: bool


DescribingStatement: TypeAlias = Literal[
    "show create", "show properties", "describe extended", "show extended"
]
"""The statements that describe a view."""


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

    statement: DescribingStatement
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


Argument: TypeAlias = bool | int | str | tuple[int | str | None, ...] | dict[str, str | None] | None
"""The value of an argument; a timestamp is in microseconds since 1970."""


class ProceduresList(NamespaceRequest, frozen=True, kw_only=True):
    """The request to list the procedures in a namespace."""


class ProcedureNames(Response, frozen=True, kw_only=True):
    """Procedure names without their namespace."""

    names: tuple[str, ...]


class ProcedureLoad(NamespaceRequest, frozen=True, kw_only=True):
    """The request for a procedure by its name."""

    name: str


class ProcedureArgument(Message, frozen=True, kw_only=True):
    """A parameter of a procedure."""

    name: str
    type: str
    """Spark's type, as DDL."""

    is_required: bool


class ProcedureDefinition(Response, frozen=True, kw_only=True):
    """The signature of a procedure, for Spark."""

    name: str
    description: str
    parameters: tuple[ProcedureArgument, ...]
    schema: str
    """The columns of the procedure's result, as a Spark schema."""


class ProcedureCall(CatalogRequest, frozen=True, kw_only=True):
    """The request to run a procedure."""

    session: str
    """The session that calls; another session may have opened the catalog."""

    name: str
    arguments: Mapping[str, Argument]
    current_namespace: tuple[str, ...]
    """The namespace of a table that is named without a namespace."""


class ProcedureRows(Response, frozen=True, kw_only=True):
    """The result rows of a procedure."""

    rows: tuple[tuple[int | str | None, ...], ...]
