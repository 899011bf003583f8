"""A table at one snapshot, as a row-level operation of this process reads and writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from iceberg_pyspark.arrow.read.read_task import read_task
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.metadata_columns import FILE, LINEAGE, POS, ROW_ID, lineage_columns
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.table.commits.commit import snapshot_to_build_on
from iceberg_pyspark.table.commits.new_data import write_context_of
from iceberg_pyspark.table.reading.snapshot_selection import branch_selector
from iceberg_pyspark.table.reading.table_scan import TableScan, scan_table


def check_rows_may_change(loaded_table: LoadedTable) -> None:
    """Raise `UnsupportedFeatureError` for a table whose rows have no certain positions."""
    if loaded_table.plan_scan is not None:
        raise UnsupportedFeatureError(
            f"table {loaded_table.identifier} is planned by its catalog's server, which may "
            "leave out rows that a rewrite must keep; set scan-planning-mode to client on the "
            "server or for the catalog to change its rows"
        )
    hidden = {f.name for f in (FILE, POS, *LINEAGE)}
    conflicting = hidden & {f.name for f in loaded_table.metadata.current_schema.fields}
    if conflicting:
        raise UnsupportedFeatureError(
            f"table {loaded_table.identifier} has columns named like metadata columns "
            f"({', '.join(sorted(conflicting))}), so its rows have no unique position; rename "
            "these columns"
        )


@dataclass(frozen=True, kw_only=True)
class RowTarget:
    """A table as it was loaded, and the branch whose rows change."""

    loaded_table: LoadedTable
    io: FileIO
    branch: str
    write_id: str
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        check_rows_may_change(self.loaded_table)

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return str(self.loaded_table.identifier)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata."""
        return self.loaded_table.metadata

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return self.metadata.current_schema

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(f.name for f in self.schema.fields)

    def column(self, name: str) -> NestedField | None:
        """Return the column with this name, if there is exactly one."""
        exact = [f for f in self.schema.fields if f.name == name]
        if exact or self.case_sensitive:
            return exact[0] if exact else None
        alike = [f for f in self.schema.fields if f.name.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else None

    @cached_property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot that is read; None for a table without snapshots."""
        snapshot = snapshot_to_build_on(self.metadata, self.branch)
        return None if snapshot is None else snapshot.snapshot_id

    @property
    def lineage(self) -> tuple[NestedField, ...]:
        """The columns of row lineage; empty before format version 3."""
        return lineage_columns(self.metadata.format_version)

    def scan(self, predicate: Predicate) -> TableScan:
        """Return the scan of the rows that fulfil a bound predicate."""
        selector = branch_selector(self.metadata, self.branch)
        return scan_table(self.name, self.metadata, self.io, selector=selector).pruned_by(predicate)

    def write_context(self) -> WriteContext:
        """Return the context in which changed rows are written, with their lineage."""
        context = write_context_of(
            self.name,
            self.metadata,
            self.io,
            write_id=self.write_id,
            case_sensitive=self.case_sensitive,
        )
        schema = replace(context.schema, fields=(*context.schema.fields, *self.lineage))
        return replace(context, schema=schema)

    def batches(
        self,
        files: Iterable[ScanTask],
        predicate: Predicate,
        columns: Collection[str] | None = None,
        *,
        lineage: tuple[NestedField, ...] = (),
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the path of each file with batches of its rows that fulfil a bound predicate.

        The batches have the named columns (None: all), the rows' positions, and `lineage`.
        """
        fields = [f for f in self.schema.fields if columns is None or f.name in columns]
        scan = self.scan(predicate)
        context = replace(scan.context, projection=Schema(fields=(*fields, POS, *lineage)))
        for task in files:
            for batch in read_task(context, task, self.io):
                yield task.file_path, batch

    def all_of(self, files: Iterable[ScanTask]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the path of each file with batches of all its rows, with their whole lineage."""
        return self.batches(files, AlwaysTrue(), lineage=self.lineage)

    @property
    def row_id(self) -> tuple[NestedField, ...]:
        """The column of lineage that an updated row keeps."""
        return tuple(f for f in self.lineage if f == ROW_ID)


Files = Mapping[str, ScanTask]
"""The data files that an operation reads, by path."""
