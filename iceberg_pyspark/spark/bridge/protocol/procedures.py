"""Procedures of a catalog, for CALL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from iceberg_pyspark.spark.bridge.protocol.catalogs import CatalogQuestion, NamespaceQuestion
from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message

Argument: TypeAlias = bool | int | str | tuple[int | str, ...] | dict[str, str] | None
"""A value of a parameter; a time is its microseconds from 1970."""


class ProceduresList(NamespaceQuestion, frozen=True, kw_only=True):
    """The procedures in a namespace."""


class ProcedureNames(Answer, frozen=True, kw_only=True):
    """Names, without their namespace."""

    names: tuple[str, ...]


class ProcedureLoad(NamespaceQuestion, frozen=True, kw_only=True):
    """A procedure by its name."""

    name: str


class ProcedureArgument(Message, frozen=True, kw_only=True):
    """A parameter."""

    name: str
    type: str
    """Spark's type, as DDL."""

    is_required: bool


class ProcedureDefinition(Answer, frozen=True, kw_only=True):
    """The signature of a procedure, for Spark."""

    name: str
    description: str
    parameters: tuple[ProcedureArgument, ...]
    schema: str
    """The columns of its result."""


class ProcedureCall(CatalogQuestion, frozen=True, kw_only=True):
    """Run a procedure."""

    session: str
    """The one that calls; another may have opened the catalog."""

    name: str
    arguments: Mapping[str, Argument]
    current_namespace: tuple[str, ...]
    """Where a table of one name is."""


class ProcedureRows(Answer, frozen=True, kw_only=True):
    """The result rows of a procedure."""

    rows: tuple[tuple[int | str | None, ...], ...]
