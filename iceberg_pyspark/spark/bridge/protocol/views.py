"""Views of a catalog."""

from __future__ import annotations

from iceberg_pyspark.spark.bridge.protocol.catalogs import TableQuestion
from iceberg_pyspark.spark.bridge.protocol.messages import Answer


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
