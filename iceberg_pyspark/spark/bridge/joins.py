"""Joins between a table's rows and the source of a statement, and properties of their plans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, _parse_datatype_json_string

from iceberg_pyspark.spark.bridge.call_arguments import to_json
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.row_values import StatementExpression, Value

Equality: TypeAlias = tuple[str, StatementExpression, StatementExpression, DataType]
"""A column's name, the column, the source value that it must equal, and the type of both."""


@dataclass(frozen=True)
class Joins:
    """The JVM's operations on joins."""

    _java: JavaClasses

    @property
    def _joins(self) -> Any:
        return self._java.instance("IcebergPyJoins")

    def is_cheap(self, frame: DataFrame, max_bytes: int) -> bool:
        """Return whether a frame gives the same rows each time, and Spark estimates it as small."""
        return bool(self._joins.fits(frame._jdf, max_bytes))

    def comes_in_groups(self, frame: DataFrame) -> bool:
        """Return whether Spark joins a frame by groups of its files and gets the same rows each
        time.
        """
        return bool(self._joins.comesInGroups(frame._jdf))

    def equi_join_keys(
        self, rows: DataFrame, source: DataFrame, condition: Column
    ) -> list[Equality]:
        """Return the equalities of a condition between table columns and values of the source."""
        session = self._java.session
        keys = self._joins.equiJoinKeys(session, rows._jdf, source._jdf, condition._jc)
        return _equalities(keys, json.loads(keys.description()))

    def subquery_keys(
        self, rows: DataFrame, condition: Column
    ) -> list[tuple[DataFrame, list[Equality]]]:
        """Return the IN and EXISTS subqueries of a condition, and the equalities of each."""
        session = self._java.session
        subqueries = self._java.instance("IcebergPySelections").sources(
            session, rows._jdf, condition._jc
        )
        return [
            (self._java.frame(subqueries.source(i)), _equalities(subqueries, keys))
            for i, keys in enumerate(json.loads(subqueries.description()))
        ]

    def needs_no_rebalance(
        self, source: DataFrame, *, records: int, min_bytes: int, max_bytes: int
    ) -> bool:
        """Return whether a join with a table of `records` rows needs no rebalancing afterwards.

        No rebalancing is needed if Spark shuffles both sides and each task gets between
        `min_bytes` and `max_bytes` of the source.
        """
        session = self._java.session
        return bool(
            self._joins.needsNoRebalance(session, source._jdf, records, min_bytes, max_bytes)
        )

    def join(self, rows: DataFrame, source: DataFrame, condition: Column, kind: str) -> DataFrame:
        """Return the join of a table's rows with a source; `kind` is Spark's, such as `left`."""
        session = self._java.session
        dataset = self._joins.joinRows(session, rows._jdf, source._jdf, condition._jc, kind)
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
        """Return the rows whose keys the source has, or all rows if the semi-join does not pay off.

        `equal` pairs table columns with the source values they equal. `outer` says whether the
        later join keeps source rows without a match. `records` and `size_in_bytes` are those of the
        table.
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
