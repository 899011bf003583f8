"""Joins between a table's rows and the source of a statement, and properties of their plans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, _parse_datatype_json_string

from iceberg_pyspark.spark.bridge.calls import to_json
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.values import StatementExpression, Value

Equality: TypeAlias = tuple[str, StatementExpression, StatementExpression, DataType]
"""A column's name, the column, the value of the source that it equals, and the type of both."""


@dataclass(frozen=True)
class Joins:
    """The JVM's side of joins."""

    _java: JavaClasses

    @property
    def _joins(self) -> Any:
        return self._java.instance("IcebergPyJoins")

    def is_cheap(self, frame: DataFrame, most_bytes: int) -> bool:
        """Whether a frame gives the same rows each time, and Spark estimates it as small."""
        return bool(self._joins.fits(frame._jdf, most_bytes))

    def comes_in_groups(self, frame: DataFrame) -> bool:
        """Whether Spark joins a frame by groups of its files, and gets the same rows each time."""
        return bool(self._joins.comesInGroups(frame._jdf))

    def equi_join_keys(
        self, rows: DataFrame, source: DataFrame, condition: Column
    ) -> list[Equality]:
        """The equalities of a condition between columns and values of the source."""
        session = self._java.session
        keys = self._joins.equiJoinKeys(session, rows._jdf, source._jdf, condition._jc)
        return _equalities(keys, json.loads(keys.description()))

    def subquery_keys(
        self, rows: DataFrame, condition: Column
    ) -> list[tuple[DataFrame, list[Equality]]]:
        """The IN and EXISTS subqueries of a condition, and the equalities of each."""
        session = self._java.session
        subqueries = self._java.instance("IcebergPySelections").sources(
            session, rows._jdf, condition._jc
        )
        return [
            (self._java.frame(subqueries.source(i)), _equalities(subqueries, keys))
            for i, keys in enumerate(json.loads(subqueries.description()))
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
        """The join of a table's rows with a source's; `kind` is Spark's, as `left` or `full`."""
        session = self._java.session
        dataset = self._joins.joined(session, rows._jdf, source._jdf, condition._jc, kind)
        return self._java.frame(dataset)

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
        come keeps source rows without a match; `records` and `size_in_bytes` are the table's.
        """
        if not equal:
            return rows
        dataset = self._joins.semiJoinOnKeys(
            self._java.server,
            self._java.session,
            rows._jdf,
            source._jdf,
            to_json(equal),
            outer,
            records,
            size_in_bytes,
        )
        return self._java.frame(dataset)


def _equalities(expressions: Any, equalities: Sequence[Mapping[str, Any]]) -> list[Equality]:
    return [
        (
            e["name"],
            StatementExpression(expressions, e["column"]),
            StatementExpression(expressions, e["value"]),
            _parse_datatype_json_string(e["type"]),
        )
        for e in equalities
    ]
