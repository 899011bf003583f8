"""Calls of a table's methods for clients without its catalog.

A call is a chain of methods with arguments in JSON, such as `update_schema`, `add_column`,
`commit`. What changes the table's definition runs in the commit of a write, which Spark calls once.
Maintenance, which does nothing when it is repeated, runs where a read is planned, and its result is
the one row that is read. Both run in a Python process of the driver's machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob
from iceberg_pyspark.spark.data_source.read_options import parse_table_options
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.spark.row_changes.change_request import TABLE_CALL
from iceberg_pyspark.spark.rows.worker_steps import worker_step
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.schema import Schema, schema_from_json, schema_to_json
from iceberg_pyspark.spec.types import NestedField, StringType
from iceberg_pyspark.table.maintenance.rewrites.written_groups import WrittenGroups
from iceberg_pyspark.table.metadata_tables.rows import KnownRows, MetadataTable, arrow_of_rows
from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table_storage import table_io

CHANGES = (
    "update_schema",
    "update_spec",
    "replace_sort_order",
    "update_properties",
    "update_location",
    "manage_snapshots",
)
"""The methods of a table that begin a change of its definition."""

_SCHEMA = Schema(fields=(NestedField(field_id=1, name="answer", type=StringType(), required=True),))


def call_text(steps: Sequence[tuple[str, Sequence[Any], Mapping[str, Any]]]) -> str:
    """Return a chain of calls as the option has it.

    Raises `InvalidRequestError` for arguments other than JSON's types, datetimes and schemas.
    """

    def text_of(value: object) -> Any:
        if isinstance(value, datetime):
            return {_MOMENT: value.isoformat()}
        if isinstance(value, Schema):
            return {_COLUMNS: schema_to_json(value)}
        if isinstance(value, tuple | set | frozenset):
            return list(value)
        if isinstance(value, WrittenGroups):
            return {_WRITTEN: [value.write_id, *value.parts]}
        raise InvalidRequestError(
            f"{steps[0][0]}: a {type(value).__name__} cannot be sent to the server; give it as a "
            "text, number, list or dict"
        )

    return json.dumps(steps, default=text_of)


_MOMENT, _COLUMNS, _WRITTEN = "$datetime", "$schema", "$written"


def _value(value: dict[str, Any]) -> Any:
    if set(value) == {_MOMENT}:
        return datetime.fromisoformat(value[_MOMENT])
    if set(value) == {_COLUMNS}:
        return schema_from_json(JsonObject(value[_COLUMNS], _COLUMNS))
    if set(value) == {_WRITTEN}:
        write_id, *parts = value[_WRITTEN]
        return WrittenGroups(write_id=write_id, parts=parts)
    return value


def _run(table: Table, text: str, roots: Sequence[str]) -> Any:
    result: Any = table
    for number, (name, arguments, named) in enumerate(json.loads(text, object_hook=_value)):
        if name.startswith("_") or (number == 0 and name not in roots):
            raise InvalidRequestError(
                f"option {TABLE_CALL}: {name} is no method of a table for clients; use the "
                "methods of session.table(name)"
            )
        result = getattr(result, name)(*arguments, **named)
    return result


@dataclass(frozen=True, kw_only=True)
class CallReadJob(MetadataTableReadJob):
    """A read of the result of a table's maintenance, which runs when the read is planned."""

    call: str

    def _open(self) -> MetadataTable:
        catalog, _ = find_table(self.table)

        def answer() -> list[pa.Table]:
            with worker_step():
                table = Table(catalog, self.loaded_table)
                result = _run(table, self.call, ("maintenance",))
                row = {"answer": msgspec.json.encode(result).decode()}
                return [arrow_of_rows(_SCHEMA, [row])]

        return MetadataTable(
            name=f"{self.loaded_table.identifier}.{self.name}",
            schema=_SCHEMA,
            reader=KnownRows(schema=_SCHEMA),
            io=table_io(self.loaded_table),
            plan=answer,
        )


class CallWriter(DataSourceArrowWriter):
    """A writer of no rows, whose commit changes the definition of the table."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options: Mapping[str, str] | None = dict(options)
        self._tasks_have_it = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state: for tasks, whose state Spark pickles first, none of the options."""
        if self._options is None or self._tasks_have_it:
            return self.__dict__
        self._tasks_have_it = True
        return {"_options": None, "_tasks_have_it": True}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Refuse rows."""
        for batch in iterator:
            if batch.num_rows:
                raise InvalidRequestError(f"option {TABLE_CALL} is for a write of no rows")
        return WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Call the methods."""
        del messages
        with worker_step():
            assert self._options is not None, "Spark commits with the whole state"
            own = {k: v for k, v in self._options.items() if k.lower() != TABLE_CALL}
            table = parse_table_options(own)
            catalog, identifier = find_table(table)
            loaded = load_table(catalog, identifier, table)
            _run(Table(catalog, loaded), self._options[TABLE_CALL], CHANGES)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: a refused change has left nothing."""
