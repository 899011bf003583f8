"""Row-level changes in the JVM: analysed statements, joins with a source, and changed rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, _parse_datatype_json_string

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.call_arguments import (
    AssignedColumns,
    ChangedRows,
    StatementExpression,
    Value,
    to_json,
)
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.protocol.messages import Expression, text_of
from iceberg_pyspark.spark.bridge.protocol.table_messages import TableDefinition
from iceberg_pyspark.spark.bridge.protocol.write_messages import AnalysedStatement, WriteEnvironment


@dataclass(frozen=True)
class RowChangePlans:
    """The JVM's operations for DELETE, UPDATE and MERGE."""

    _java: JavaClasses

    @property
    def _rows(self) -> Any:
        return self._java.instance("IcebergPyRowLevel")

    @property
    def _changes(self) -> Any:
        return self._java.instance("IcebergPyChanges")

    def statement(self, plan: Any) -> tuple[AnalysedStatement, Any]:
        """Return a DELETE, UPDATE or MERGE as a message, and the object with its expressions."""
        statement = self._rows.statement(plan)
        return msgspec.json.decode(statement.description(), type=AnalysedStatement), statement

    def source_of(self, statement: Any) -> DataFrame:
        """Return the source rows of a MERGE statement of Spark."""
        return self._java.frame(statement.source(self._java.session))

    def where(self, frame: DataFrame, condition: Column) -> DataFrame:
        """Return the rows of a frame that fulfil a condition."""
        return self._java.frame(self._rows.where(self._java.session, frame._jdf, condition._jc))

    def condition_of(self, selection: DataFrame) -> Expression | None:
        """Return the condition of a DataFrame whose last step is a filter, or None."""
        text = self._rows.condition(selection._jdf.queryExecution().analyzed())
        if text is None:
            return None
        condition: Expression = msgspec.json.decode(text, type=Expression)
        return condition

    def reads_iceberg(self, frame: DataFrame) -> bool:
        """Return whether a frame reads a table of this package."""
        return bool(self._rows.readsIceberg(frame._jdf.queryExecution().analyzed()))

    def referenced_tables(self, frame: DataFrame) -> tuple[str, ...]:
        """Return the handles of the tables of this package that a frame reads by Spark's catalogs.

        They are those of the frame's analysis; Spark may load the tables again to execute it.
        """
        return tuple(json.loads(self._rows.referencedTables(frame._jdf)))

    def pin(self, frame: DataFrame) -> DataFrame:
        """Return a frame whose tables stay at the states that Spark reads now, in every job.

        Spark loads the tables of a frame again for each job, even within one operation.
        """
        return self._java.frame(self._rows.pin(self._java.session, frame._jdf))

    def environment(self) -> WriteEnvironment:
        """Return the settings and the summary entries of the session that runs a statement."""
        return msgspec.json.decode(self._rows.environment(), type=WriteEnvironment)

    def table_frame(self, definition: TableDefinition, statement_columns: Any = None) -> DataFrame:
        """Return the rows of the table of the `definition`, with a statement's column ids."""
        frame = self._rows.tableFrame(self._java.session, text_of(definition), statement_columns)
        return self._java.frame(frame)

    def bind_columns(self, frame: DataFrame, values: Sequence[Value]) -> list[Column]:
        """Return values of a frame's rows as columns bound by id, which keep their meaning in a
        join.
        """
        if not values:
            return []
        bound = self._changes.resolve(
            self._java.server, self._java.session, frame._jdf, to_json(values)
        )
        return [StatementExpression(bound, i).column() for i in range(len(values))]

    def assign(
        self,
        frame: DataFrame,
        rows: DataFrame,
        source: DataFrame | None,
        columns: AssignedColumns,
    ) -> list[dict[str, Value]]:
        """Return the values of whole columns after each change, by the columns' names.

        Spark assigns them as in an UPDATE of its own: fields by name, what is not assigned in a
        struct stays, and a null in a required column or field is an error of the job. Raise
        `InvalidRequestError` for a value that cannot be stored in its column. The frame joins the
        table's `rows` with the rows of a source, if there is one.
        """
        try:
            assigned = self._changes.assign(*self._sides(frame, rows, source), to_json(columns))
        except AnalysisException as e:
            if not str(e.getCondition()).startswith("INCOMPATIBLE_DATA_FOR_TABLE"):
                raise
            # Spark does not name the table of an UPDATE.
            text = str(e).replace("the table ``", f"table {columns.table}")
            raise InvalidRequestError(text) from None
        return [
            {name: StatementExpression(assigned, number) for name, number in numbers.items()}
            for numbers in json.loads(assigned.description())
        ]

    def changed_rows(
        self, frame: DataFrame, rows: DataFrame, source: DataFrame | None, description: ChangedRows
    ) -> DataFrame:
        """Return the changes of a frame's rows; the frame joins the table's `rows` and a source."""
        dataset = self._changes.change(*self._sides(frame, rows, source), to_json(description))
        return self._java.frame(dataset)

    def _sides(
        self, frame: DataFrame, rows: DataFrame, source: DataFrame | None
    ) -> tuple[Any, ...]:
        of_source = None if source is None else source._jdf
        return self._java.server, self._java.session, frame._jdf, rows._jdf, of_source


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

    def needs_no_cache(self, frame: DataFrame) -> bool:
        """Return whether reading a frame twice gives the same rows and is cheaper than a cache."""
        return bool(self._joins.needsNoCache(frame._jdf))

    def is_literal_row(self, frame: DataFrame) -> bool:
        """Return whether a frame is a row of literals, which Spark writes into conditions."""
        return bool(self._joins.isLiteralRow(frame._jdf))

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
    ) -> DataFrame:
        """Return the rows whose keys the source has, or all rows if the semi-join does not pay off.

        `equal` pairs table columns with the source values they equal. `outer` says whether the
        later join keeps source rows without a match. `records` is the table's number of rows.
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
