"""Row-level statements that Spark has analysed, and their changes as expressions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.bridge.call_arguments import AssignedColumns, ChangedRows, to_json
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses
from iceberg_pyspark.spark.bridge.protocol.messages import text_of
from iceberg_pyspark.spark.bridge.protocol.table_messages import TableDefinition
from iceberg_pyspark.spark.bridge.protocol.value_messages import Expression
from iceberg_pyspark.spark.bridge.protocol.write_messages import AnalysedStatement, WriteEnvironment
from iceberg_pyspark.spark.bridge.row_values import StatementExpression, Value


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
