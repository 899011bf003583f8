"""The model of a table with a history: its rows, its files and its states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis.strategies import SearchStrategy

from iceberg_pyspark import Table
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    StructType,
)

Draw: TypeAlias = Callable[[SearchStrategy[Any]], Any]


ID = "rid"
"""A column that every table has, with a unique value in each row."""


@dataclass
class ModelRow:
    """A row of the model: its values by field id, and its place in a data file."""

    stored: Mapping[int, Any]
    file_path: str
    position: int
    spec_id: int
    partition: str
    sequence_number: int
    is_live: bool = True
    is_position_deleted: bool = False


@dataclass(frozen=True)
class Moment:
    """The state of the table, now or as of a snapshot."""

    schema: Schema
    live: list[Mapping[int, Any]]
    snapshot_id: int | None = None


@dataclass
class History:
    """A table, the model of its rows, and the steps so far."""

    draw: Draw
    table: Table
    rows: list[ModelRow] = field(default_factory=list)
    files: dict[str, DataFile] = field(default_factory=dict)
    vectors: dict[str, DataFile] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    next_id: int = 0
    newest: int = 3
    """The highest version to upgrade to; tables that may have position delete files stay below 4.
    """

    @property
    def version(self) -> int:
        """The table's format version."""
        return self.table.metadata.format_version

    @property
    def struct(self) -> StructType:
        """The current schema as a struct type."""
        return self.table.schema.as_struct

    def live(self) -> list[Mapping[int, Any]]:
        """Return the live rows by field id."""
        return [row.stored for row in self.rows if row.is_live]

    def now(self) -> Moment:
        """Return the current state of the table."""
        return Moment(self.table.schema, self.live())


def schema_text(schema: Schema) -> str:
    return ", ".join(f"{f.field_id} {f.name} {f.type}" for f in schema.fields)
