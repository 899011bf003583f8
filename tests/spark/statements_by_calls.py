"""Drawn changes of rows, as SQL statements and as calls of a table's methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.spark_table import SparkTable
from iceberg_pyspark.table.row_level.touched_rows import RowChanges
from tests.support import change_statements as changes


@dataclass(frozen=True)
class DrawnChange:
    """A change: its statement names the table {t}; `call` is the same in JSON's types."""

    statement: str
    call: Mapping[str, Any]


def a_change(draw: changes.Draw, shape: changes.Shape) -> DrawnChange:
    """Draw a MERGE, an UPDATE or a DELETE."""
    kind = draw(st.sampled_from(["merge", "merge", "update", "delete"]))
    if kind == "merge":
        merge = changes.a_merge(draw, shape)
        return DrawnChange(str(merge), {"kind": kind, **asdict(merge)})
    if kind == "update":
        values, condition = changes.update_by_call(draw, shape)
        text = ", ".join(f"{name} = {value}" for name, value in values.items())
        call = {"kind": kind, "values": values, "condition": condition}
        return DrawnChange(f"update {{t}} set {text} where {condition}", call)
    condition = changes.condition(draw, shape)
    call = {"kind": kind, "condition": condition}
    return DrawnChange(f"delete from {{t}} where {condition}", call)


def change_by_calls(spark: SparkSession, table: SparkTable, call: Mapping[str, Any]) -> RowChanges:
    """Change the table by its methods."""
    if call["kind"] == "update":
        return table.update(call["values"], call["condition"])
    if call["kind"] == "delete":
        return table.delete(call["condition"])
    builder = table.merge_into(spark.sql(call["rows"]).alias("u"), call["on"])
    for clause in call["clauses"]:
        action, condition = clause["action"], clause["condition"]
        values = action["values"]
        if clause["when"] == "when not matched":
            insert = builder.whenNotMatched(condition)
            builder = insert.insertAll() if values is None else insert.insert(values)
            continue
        by_source = clause["when"] == "when not matched by source"
        begin = builder.whenNotMatchedBySource if by_source else builder.whenMatched
        change = begin(condition)
        if action["kind"] == "delete":
            builder = change.delete()
        elif values is None:
            builder = change.updateAll()
        else:
            # The builder's names are those of the table's columns.
            builder = change.update({k.removeprefix("t."): v for k, v in values.items()})
    return builder.merge()
