"""Views of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from iceberg_pyspark.spark.bridge.protocol.catalogs import NamespaceQuestion, TableQuestion
from iceberg_pyspark.spark.bridge.protocol.messages import Answer, Message


class ViewLoad(TableQuestion, frozen=True, kw_only=True):
    """The definition of a view."""


class ViewDefinition(Answer, frozen=True, kw_only=True):
    """A query in Spark's dialect, and where its names without a catalog or namespace are."""

    exists: bool
    """False where there is no such view; the others are empty then."""

    sql: str = ""
    current_catalog: str = ""
    current_namespace: tuple[str, ...] = ()
    schema: str = ""
    """The columns, as the query gives them."""


class ViewNames(Answer, frozen=True, kw_only=True):
    """Names, without their namespace."""

    names: tuple[str, ...]


class ViewsList(NamespaceQuestion, frozen=True, kw_only=True):
    """The views in a namespace."""


class ViewStatement(Message, frozen=True, kw_only=True):
    """CREATE, ALTER or DROP VIEW as Spark's parser reads it; what a kind does not have is empty."""

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
    """Names and comments, as a schema of Spark's whose types mean nothing."""

    comment: str | None = None
    properties: Mapping[str, str] = {}
    removals: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    """The new name, with or without the catalog and the namespace."""


class AnalysedQuery(Message, frozen=True, kw_only=True):
    """The query of a view to be, which Spark has analysed."""

    sql: str
    schema: str
    """Its columns."""

    temporary: tuple[str, ...]
    """What it names that only its session knows, as `view v` and `function f`."""

    reads_itself: bool
    """Whether it reads the view that it is to define."""

    current_catalog: str
    current_namespace: tuple[str, ...]
    release: str
    """Spark's."""


class ViewChange(NamespaceQuestion, frozen=True, kw_only=True):
    """A statement about a view in a namespace."""

    statement: ViewStatement
    query: AnalysedQuery | None
