"""Requests about the procedures of a catalog, for CALL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from iceberg_pyspark.spark.bridge.protocol.catalog_messages import CatalogRequest, NamespaceRequest
from iceberg_pyspark.spark.bridge.protocol.messages import Message, Response

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
