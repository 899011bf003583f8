"""Tables in memory for commit tests: a catalog that can fail, a clock, data files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.changes import TableRequirement, TableUpdate
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.outcomes import Outcome
from iceberg_pyspark.errors import CatalogUnavailableError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.formats.metadata_files import write_table_metadata
from iceberg_pyspark.formats.roots.root_manifests import snapshot_files
from iceberg_pyspark.spec.manifests import DataFile, ManifestEntry, ManifestFile
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec, partition_type
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import LongType, NestedField, StringType
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.clock import Clock

IDENTIFIER = TableIdentifier(namespace=("db",), name="t")
SCHEMA = Schema(
    fields=(
        NestedField(field_id=1, name="id", type=LongType(), required=True),
        NestedField(field_id=2, name="part", type=StringType()),
    )
)
BY_PART = PartitionSpec(
    spec_id=0,
    fields=(
        PartitionField(source_ids=(2,), field_id=1000, name="part", transform=IdentityTransform()),
    ),
)


default_version = 2
"""The format version of tables for which a test names none; the fixture `each_version` sets it."""


class FakeClock:
    """A clock that advances one millisecond per reading and by the length of every sleep."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self.sleeps: list[float] = []

    def now_ms(self) -> int:
        """Advance by one millisecond and return the time."""
        self._now_ms += 1
        return self._now_ms

    def sleep_ms(self, ms: float) -> None:
        """Record the sleep and advance the clock by its length."""
        self.sleeps.append(ms)
        self._now_ms += int(ms)

    @property
    def clock(self) -> Clock:
        """The clock in the form that the commit loop takes."""
        return Clock(now_ms=self.now_ms, sleep_ms=self.sleep_ms, random=lambda: 0.0)


class FaultyCatalog(MemoryCatalog):
    """A catalog whose commits first go through `faults`, one fault per commit, then work.

    A fault receives the real commit as a function; the fault decides whether to call it and what to
    return.
    """

    faults: list[Callable[[Callable[[], Outcome[LoadedTable]]], Outcome[LoadedTable]]]
    is_down: bool = False

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table, or raise `CatalogUnavailableError` while the catalog is down."""
        if self.is_down:
            raise CatalogUnavailableError("the catalog is down")
        return super().load_table(identifier)

    def commit_table(
        self,
        identifier: TableIdentifier,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        *,
        base: LoadedTable | None = None,
    ) -> Outcome[LoadedTable]:
        """Commit, or let the next fault decide the outcome."""

        def commit() -> Outcome[LoadedTable]:
            commit_table = super(FaultyCatalog, self).commit_table
            return commit_table(identifier, requirements, updates, base=base)

        if self.faults:
            return self.faults.pop(0)(commit)
        return commit()


@dataclass
class CommitTable:
    """A table under test, with its catalog, storage and clock."""

    catalog: FaultyCatalog
    io: MemoryFileIO
    clock: FakeClock = field(default_factory=FakeClock)

    @property
    def loaded(self) -> LoadedTable:
        """The current state of the table in the catalog."""
        return self.catalog.load_table(IDENTIFIER)

    @property
    def metadata(self) -> TableMetadata:
        """The current metadata of the table."""
        return self.loaded.metadata

    def manifests(self, snapshot: Snapshot | None = None) -> list[ManifestFile]:
        """Return the manifests of a snapshot, by default the current one."""
        target = snapshot or self.metadata.current_snapshot
        return [] if target is None else read_snapshot_manifests(self.io, target)

    def entries(self, snapshot: Snapshot | None = None) -> list[ManifestEntry]:
        """Return all entries of a snapshot, with inherited sequence numbers."""
        m = self.metadata
        return [
            e
            for manifest in self.manifests(snapshot)
            for e in read_manifest_entries(
                self.io,
                manifest,
                partition_type(m.spec_by_id[manifest.partition_spec_id], m.schemas_newest_first),
            )
        ]

    def live(self, snapshot: Snapshot | None = None) -> list[str]:
        """Return the paths of a snapshot's live files, sorted."""
        return sorted(e.data_file.file_path for e in self.entries(snapshot) if e.is_live)

    def metadata_files(self) -> set[str]:
        """Return the locations of all manifests, manifest lists and root manifests in the store."""
        ends = (".avro", ".parquet", ".puffin")
        files = self.io.list_files("mem://t/metadata")
        return {f.location for f in files if f.location.endswith(ends)}

    def referenced(self) -> set[str]:
        """Return the locations of all metadata files that snapshots refer to."""
        result: set[str] = set()
        for snapshot in self.metadata.snapshots:
            result |= snapshot_files(self.io, snapshot)
            result.update(m.manifest_path for m in self.manifests(snapshot))
        return result


def commit_table(
    *,
    format_version: int | None = None,
    partitioned: bool = False,
    properties: Mapping[str, str] | None = None,
    location: str = "mem://t",
    schema: Schema = SCHEMA,
) -> CommitTable:
    """Create a new empty table, of `default_version` unless `format_version` is given."""
    io = MemoryFileIO()
    catalog = FaultyCatalog("test", io=io)
    catalog.faults = []
    catalog.create_namespace(("db",))
    metadata = new_table_metadata(
        schema,
        BY_PART if partitioned else None,
        None,
        location,
        properties or {},
        format_version=format_version or default_version,
        table_uuid="00000000-0000-0000-0000-000000000001",
        now_ms=1_600_000_000_000,
    )
    catalog.create_table(IDENTIFIER, metadata)
    return CommitTable(catalog=catalog, io=io)


def data_file(name: str, *partition: Any, rows: int = 1, **changes: Any) -> DataFile:
    """Return a data file that exists in no store: commits never open data files."""
    return DataFile(
        file_path=f"mem://t/data/{name}",
        partition=partition,
        record_count=rows,
        file_size_in_bytes=10 * rows,
        **changes,
    )


def publish(t: CommitTable, metadata: TableMetadata) -> None:
    """Register metadata in the catalog without a commit, as another writer may."""
    location = f"mem://t/metadata/{uuid4()}.metadata.json"
    write_table_metadata(t.io, metadata, location)
    t.catalog.drop_table(IDENTIFIER)
    t.catalog.register_table(IDENTIFIER, location)
