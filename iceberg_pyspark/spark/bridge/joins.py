"""Joins of a table's rows with those of a statement's source, and what their plans tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, _parse_datatype_json_string

from iceberg_pyspark.spark.bridge.calls import to_json
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.values import Stated, Value


class Joins:
    """The JVM's side of joins."""

    def __init__(self, java: JavaClasses) -> None:
        """`java` are the classes of the session."""
        self._java = java

    @property
    def _joins(self) -> Any:
        return self._java.instance("IcebergPyJoins")

    def is_cheap(self, frame: DataFrame, most_bytes: int) -> bool:
        """Whether a frame gives the same rows each time, and Spark takes it for small."""
        return bool(self._joins.fits(frame._jdf, most_bytes))

    def comes_in_groups(self, frame: DataFrame) -> bool:
        """Whether Spark joins a frame by groups of its files, and gets the same rows each time."""
        return bool(self._joins.comesInGroups(frame._jdf))

    def equi_join_keys(
        self, rows: DataFrame, source: DataFrame, condition: Column
    ) -> list[tuple[str, Stated, Stated, DataType]]:
        """The equalities of a condition: a column's name, it, a value of the source, its type."""
        session = self._java.session
        found = self._joins.equiJoinKeys(session, rows._jdf, source._jdf, condition._jc)
        return _equalities(found, json.loads(found.described()))

    def subquery_keys(
        self, rows: DataFrame, condition: Column
    ) -> list[tuple[DataFrame, list[tuple[str, Stated, Stated, DataType]]]]:
        """The subqueries that rows which fulfil a condition are in, and of each what is equal."""
        session = self._java.session
        found = self._java.instance("IcebergPySelections").sources(
            session, rows._jdf, condition._jc
        )
        return [
            (self._java.frame(found.source(i)), _equalities(found, keys))
            for i, keys in enumerate(json.loads(found.described()))
        ]

    def needs_no_rebalance(
        self, source: DataFrame, *, records: int, least_bytes: int, most_bytes: int
    ) -> bool:
        """Whether a join with a table of so many records needs no rebalancing after it.

        So it is where Spark shuffles both sides, and each task gets `least_bytes` to `most_bytes`
        of the source.
        """
        session = self._java.session
        return bool(
            self._joins.needsNoRebalance(session, source._jdf, records, least_bytes, most_bytes)
        )

    def join(self, rows: DataFrame, source: DataFrame, condition: Column, kind: str) -> DataFrame:
        """A table's rows and a source's that meet, and of `left` and `full` which met none."""
        session = self._java.session
        made = self._joins.joined(session, rows._jdf, source._jdf, condition._jc, kind)
        return self._java.frame(made)

    def semi_join_on_keys(
        self,
        rows: DataFrame,
        source: DataFrame,
        equal: Sequence[tuple[Value, Value]],
        *,
        outer: bool,
        records: int,
        size_in_bytes: int,
    ) -> DataFrame:
        """The rows with keys of the source, or all where joining these keys first does not pay.

        `equal` are columns and the source's values they equal, `outer` says whether the join to
        come keeps source rows that meet none; `records` and `size_in_bytes` are the table's.
        """
        if not equal:
            return rows
        made = self._joins.semiJoinOnKeys(
            self._java.server,
            self._java.session,
            rows._jdf,
            source._jdf,
            to_json(equal),
            outer,
            records,
            size_in_bytes,
        )
        return self._java.frame(made)


def _equalities(
    expressions: Any, equalities: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Stated, Stated, DataType]]:
    return [
        (
            e["name"],
            Stated(expressions, e["column"]),
            Stated(expressions, e["value"]),
            _parse_datatype_json_string(e["type"]),
        )
        for e in equalities
    ]
