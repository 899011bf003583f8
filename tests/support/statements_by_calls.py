"""Runs a drawn MERGE by the methods of a table."""

from __future__ import annotations

from pyspark.sql import SparkSession

from iceberg_pyspark.spark.spark_table import SparkTable
from iceberg_pyspark.table.row_level.touched_rows import RowChanges
from tests.support import change_statements as changes


def merge_by_calls(spark: SparkSession, table: SparkTable, merge: changes.Merge) -> RowChanges:
    """Merge the rows into the table, as the statement does."""
    builder = table.merge_into(spark.sql(merge.rows).alias("u"), merge.on)
    for clause in merge.clauses:
        action = clause.action
        if clause.when == "when not matched":
            insert = builder.whenNotMatched(clause.condition)
            builder = insert.insertAll() if action.values is None else insert.insert(action.values)
            continue
        begin = builder.whenMatched
        if clause.when == "when not matched by source":
            begin = builder.whenNotMatchedBySource
        change = begin(clause.condition)
        if action.kind == "delete":
            builder = change.delete()
        elif action.values is None:
            builder = change.updateAll()
        else:
            # The builder's names are those of the table's columns.
            values = {name.removeprefix("t."): value for name, value in action.values.items()}
            builder = change.update(values)
    return builder.merge()
