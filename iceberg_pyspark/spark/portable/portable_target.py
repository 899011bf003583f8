"""The table that an operation changes: one metadata file, read by the format with all positions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.display import quoted
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.expressions.json import predicate_to_json
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.portable.format_table import FormatTable
from iceberg_pyspark.spark.row_changes.change_request import PINNED, PinnedRead
from iceberg_pyspark.spark.rows.spark_types import to_spark_schema
from iceberg_pyspark.spec.metadata_columns import FILE, LINEAGE, POS, lineage_columns
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField, UnknownType
from iceberg_pyspark.table.row_level.touched_rows import RowChanges

ALIAS = "t"
"""The alias of the table in conditions."""


@dataclass(frozen=True, kw_only=True)
class PortableTarget:
    """A table in the state of one metadata file, and the branch to change."""

    table: FormatTable
    loaded: LoadedTable
    branch: str = MAIN

    def check(self) -> None:
        """Raise `UnsupportedFeatureError` if rows of the table have no unique position."""
        hidden = {f.name for f in (FILE, POS, *LINEAGE)}
        conflicting = hidden & {f.name for f in self.schema.fields}
        if conflicting:
            raise UnsupportedFeatureError(
                f"table {self.name} has columns named like metadata columns "
                f"({', '.join(sorted(conflicting))}), so its rows have no unique position; rename "
                "these columns"
            )

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return str(self.loaded.identifier)

    @property
    def metadata(self) -> TableMetadata:
        """The metadata of the pinned state."""
        return self.loaded.metadata

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return self.metadata.current_schema

    @cached_property
    def columns(self) -> spark_types.StructType:
        """The columns that files have, as Spark's types: none of type unknown."""
        fields = tuple(f for f in self.schema.fields if not isinstance(f.type, UnknownType))
        return to_spark_schema(Schema(fields=fields))

    @property
    def lineage(self) -> tuple[NestedField, ...]:
        """The columns of row lineage; empty before format version 3."""
        return lineage_columns(self.metadata.format_version)

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is changed; None for a table without snapshots."""
        ref = self.metadata.refs.get(self.branch)
        return None if ref is None else self.metadata.snapshot(ref.snapshot_id)

    def no_changes(self) -> RowChanges:
        """Return the counts of an operation that has changed nothing."""
        return RowChanges(snapshot_id=None if self.snapshot is None else self.snapshot.snapshot_id)

    @cached_property
    def case_sensitive(self) -> bool:
        """Whether names of columns are case-sensitive in the session."""
        return is_case_sensitive(self.table.spark)

    def filter(self, predicate: Predicate) -> Any:
        """Return a predicate on the target's rows as a read and a commit take it."""
        if isinstance(predicate, AlwaysTrue):
            return None
        bound = bind(predicate, self.schema, case_sensitive=self.case_sensitive)
        return predicate_to_json(bound)

    def rows(
        self,
        filter: Any = None,
        *,
        columns: Collection[str] | None = None,
        data_files: Iterable[str] | None = None,
        without_whole_files: bool = False,
    ) -> DataFrame:
        """Return the rows with their positions and lineage; some columns or files, if given.

        With `without_whole_files`, no row is of a file whose rows all fulfil the filter.
        """
        pinned = PinnedRead(
            metadata_location=self.loaded.metadata_location,
            filter=filter,
            data_files=None if data_files is None else tuple(data_files),
            without_whole_files=without_whole_files,
        )
        # No file has a column of type unknown.
        own = [name for name in self.columns.names if columns is None or name in columns]
        names = [*own, *(f.name for f in (FILE, POS, *self.lineage))]
        options = {
            PINNED: pinned.text(),
            "columns": ", ".join(quoted(name) for name in names),
            "case-sensitive": "true",
        }
        if self.branch in self.metadata.refs and self.branch != MAIN:
            options["branch"] = self.branch
        return self.table.read(options).alias(ALIAS)


def column_of(frame: DataFrame, name: str) -> Column:
    """Return a column of a frame by its whole name."""
    return frame[quoted(name)]
