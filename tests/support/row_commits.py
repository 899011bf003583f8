"""Commits of every kind without Spark, by the functions that row-level code calls.

`RowCommitter` changes only the rows that it added, in data files that it shares with other
committers: merge-on-read by deletion vectors or position deletes, copy-on-write by new files, and
rewrites as compaction does them. A change that conflicts with another commit is repeated on the
newest state. `rows` is the expected content of the table for these rows.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.catalogs.memory_catalog import MemoryCatalog
from iceberg_pyspark.changes.conflicts import ConflictChecks, TouchedFile
from iceberg_pyspark.changes.file_filter import compile_may_match
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.changes.removals import RemoveFiles
from iceberg_pyspark.changes.snapshot_changes import (
    AppendFiles,
    OverwriteFiles,
    RewriteFiles,
    RowDelta,
    SnapshotAction,
)
from iceberg_pyspark.changes.summary import WRITE_ID
from iceberg_pyspark.errors import CommitConflictError, ConcurrentChangeError, StorageError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from iceberg_pyspark.sql_text.ddl import parse_partitioning
from iceberg_pyspark.sql_text.lazy_parser import as_predicate
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.create_table import create_table
from iceberg_pyspark.table.commits.new_data import write_context_of
from iceberg_pyspark.table.commits.row_deletes import write_row_deletes
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance

COLUMNS = "id BIGINT, p INT, v STRING"
SMALL_ROOTS = {
    "write.root.file-system-tables.enabled": "true",
    "write.root.max-data-entries": "2",
    "write.root.max-delete-entries": "1",
}
"""Version 4 properties with which a few commits already write, mask and fold leaves."""

PLACE = ("_file", "_pos")
LINEAGE = (ROW_ID.name, LAST_UPDATED_SEQUENCE_NUMBER.name)
PARTITIONS = 2
REGISTERED = TableIdentifier(namespace=("db",), name="registered")
"""The second name of the table that `register` makes."""
BY_PARTITION = {
    "min-input-files": 2,
    "partial-progress.enabled": True,
    "partial-progress.max-commits": 100,
}


REWRITE_ALL = {"rewrite-all": True}


def _now_ms() -> int:
    return time.time_ns() // 10**6


MAINTENANCE: Mapping[str, Callable[[TableMaintenance], object]] = {
    "rewrite_small_files": lambda m: m.rewrite_data_files(options=BY_PARTITION),
    "rewrite_deletes": lambda m: m.rewrite_position_delete_files(options=REWRITE_ALL),
    "rewrite_equality_deletes": lambda m: m.rewrite_equality_deletes(),
    "rewrite_and_remove_dangling_deletes": lambda m: m.rewrite_data_files(
        options={**REWRITE_ALL, "remove-dangling-deletes": True}
    ),
    "rewrite_manifests": lambda m: m.rewrite_manifests(),
    "compute_table_stats": lambda m: m.compute_table_stats(),
    "compute_partition_stats": lambda m: m.compute_partition_stats(),
    # Deletes all unreferenced files, so no other client may be writing.
    "remove_orphan_files": lambda m: m.remove_orphan_files(older_than=_now_ms() + 1000, force=True),
    "expire_snapshots": lambda m: m.expire_snapshots(older_than=_now_ms(), retain_last=5),
    "expire_and_clean_metadata": lambda m: m.expire_snapshots(
        older_than=_now_ms(), retain_last=5, clean_expired_metadata=True
    ),
}
"""Operations that are one call of a procedure."""


def incoming_folder(location: str) -> str:
    """Return the local folder of the files that `add_files` adds to the table at a location."""
    return f"{location.removeprefix('file:')}-incoming"


def staging_folder(location: str) -> str:
    """Return the folder in which each `rewrite_table_path` writes into a new folder."""
    return f"{location}-staged"


def copy_location(location: str) -> str:
    """Return the location of the copy for which `rewrite_table_path` writes."""
    return f"{location}-copy"


@dataclass(frozen=True, kw_only=True)
class Row:
    """The state of a row after an acknowledged commit; `row_id` is None until it has been read."""

    v: str
    sequence_number: int
    row_id: int | None = None


def table_in_memory(version: int, properties: Mapping[str, str]) -> tuple[Table, RowCommitter]:
    """Create a table that is partitioned by `p`, in a new catalog, with its committer."""
    io = MemoryFileIO()
    catalog = MemoryCatalog("memory", {"warehouse": "mem://wh"}, io=io)
    catalog.create_namespace(("db",))
    identifier = TableIdentifier(namespace=("db",), name="t")
    schema = parse_schema(COLUMNS)
    new = NewTable(
        schema=schema,
        spec=parse_partitioning(["p"], schema),
        properties={
            "format-version": str(version),
            "commit.manifest.min-count-to-merge": "3",
            **properties,
        },
    )
    table = Table(catalog, create_table(catalog, identifier, new), io=io)
    return table, RowCommitter(catalog, identifier, 1, io=io)


@dataclass
class RowCommitter:
    """One client; the ids of its rows start at `number` * 10**6."""

    catalog: Catalog
    identifier: TableIdentifier
    number: int
    io: FileIO | None = None
    rows: dict[int, Row] = field(default_factory=dict)
    runs_again: int = 0
    _next: int = 0

    def __post_init__(self) -> None:
        self._choose = random.Random(self.number)
        self._loaded: LoadedTable | None = None

    @property
    def table(self) -> Table:
        """The table as of this client's last load."""
        assert self._loaded is not None
        return Table(self.catalog, self._loaded, io=self.io)

    def run(self, operation: str) -> None:
        """Run a method or one of `MAINTENANCE`, repeating it until it is acknowledged."""
        while True:
            self._loaded = self.catalog.load_table(self.identifier)
            try:
                if operation in MAINTENANCE:
                    MAINTENANCE[operation](self.table.maintenance())
                else:
                    getattr(self, operation)()
                return
            except (ConcurrentChangeError, CommitConflictError):
                self.runs_again += 1
                time.sleep(self._choose.random() * 0.05)
            except StorageError:
                # Only acceptable if the snapshot that was read has expired meanwhile.
                newest = self.catalog.load_table(self.identifier).metadata
                if self._loaded.metadata.current_snapshot_id in newest.snapshot_by_id:
                    raise
                self.runs_again += 1

    def adopt(self) -> None:
        """Take over this client's rows in the table, as if it had just added them."""
        self._loaded = self.catalog.load_table(self.identifier)
        result = self.table.scan(columns=["id", "v"]).to_arrow().to_pylist()
        own = {r["id"]: r["v"] for r in result if r["id"] // 10**6 == self.number}
        self.rows = {id_: Row(v=v, sequence_number=0) for id_, v in own.items()}
        # Ids of deleted rows are not used again.
        self._next = max(self._next, *(id_ % 10**6 + 1 for id_ in own), 0)

    def append(self) -> None:
        """Add three rows."""
        rows = self._new_rows()
        files, write_id = self._write(rows)
        self._keep(rows, self._commit(AppendFiles(data_files=files), write_id, files))

    def add_files(self) -> None:
        """Add three rows in files that another program wrote into a folder for each partition."""
        rows = self._new_rows()
        table = self.table
        folder = Path(incoming_folder(table.location), uuid.uuid4().hex)
        for partition in range(PARTITIONS):
            place = folder / f"p={partition}"
            place.mkdir(parents=True)
            of_partition = rows.filter(pc.equal(rows["p"], partition)).drop_columns(["p"])
            pq.write_table(of_partition, place / "part.parquet")
        table.add_files(folder.as_uri())
        snapshot = table.current_snapshot
        assert snapshot is not None
        self._keep(rows, snapshot.sequence_number)

    def rewrite_table_path(self) -> None:
        """Write the files of a copy of the table into a new folder beside the table."""
        location = self.table.location
        self.table.maintenance().rewrite_table_path(
            source_prefix=location,
            target_prefix=copy_location(location),
            staging_location=f"{staging_folder(location)}/{uuid.uuid4().hex}",
        )

    def delete(self) -> None:
        """Delete some rows by merge-on-read."""
        ids = self._some()
        result = self._read(f"id in ({', '.join(map(str, ids))})")
        if ids:
            self._by_deletes(result, None, ids)
            for id_ in ids:
                del self.rows[id_]

    def delete_keys(self) -> None:
        """Delete some rows by equality deletes, one for each partition of their ids."""
        ids = self._some()
        if not ids:
            return
        keys = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "p": pa.array([i % PARTITIONS for i in ids], pa.int32()),
                "v": pa.nulls(len(ids), pa.string()),
            }
        )
        written_files, write_id = self._write(keys)
        schema = self.table.metadata.current_schema
        key_ids = tuple(f.field_id for f in schema.fields if f.name == "id")
        files = tuple(
            replace(
                f,
                content=FileContent.EQUALITY_DELETES,
                equality_ids=key_ids,
                sort_order_id=None,
                split_offsets=None,
            )
            for f in written_files
        )
        checks = ConflictChecks(base_snapshot_id=self.table.metadata.current_snapshot_id)
        self._commit(RowDelta(delete_files=files, checks=checks), write_id, files)
        for id_ in ids:
            del self.rows[id_]

    def update(self) -> None:
        """Give some rows another value by merge-on-read."""
        ids = self._some()
        result = self._read(f"id in ({', '.join(map(str, ids))})")
        if ids:
            value = f"u{uuid.uuid4().hex[:8]}"
            number = self._by_deletes(result, self._with_value(result, value), ids)
            for id_ in ids:
                self.rows[id_] = replace(self.rows[id_], v=value, sequence_number=number)

    def replace_files(self) -> None:
        """Rewrite files by copy-on-write: delete one row and update some others."""
        ids = self._some()
        if not ids:
            return
        value = f"c{uuid.uuid4().hex[:8]}"
        condition = f"id in ({', '.join(map(str, ids))})"
        paths = set(self._read(condition)["_file"].to_pylist())
        rows = self._read(None, paths)
        touched = pc.is_in(rows["id"], value_set=pa.array(ids, pa.int64()))
        changed = rows.filter(pc.and_(touched, pc.not_equal(rows["id"], ids[0])))
        parts = [rows.filter(pc.invert(touched)), self._with_value(changed, value)]
        files, write_id = self._write(pa.concat_tables(parts).drop_columns(list(PLACE)))
        tasks = self._tasks(paths)
        checks = self._checks(tasks, condition, rows_are_kept=True)
        action = OverwriteFiles(
            removal=RemoveFiles(data_paths=frozenset(tasks)), data_files=files, checks=checks
        )
        number = self._commit(action, write_id, files)
        del self.rows[ids[0]]
        for id_ in ids[1:]:
            self.rows[id_] = replace(self.rows[id_], v=value, sequence_number=number)

    def compact(self) -> None:
        """Rewrite one partition's files, whoever added the rows; their deletes are removed."""
        partition = (self._choose.randrange(PARTITIONS),)
        tasks = {t.file_path: t for t in self._tasks(None).values() if t.partition == partition}
        if not tasks:
            return
        rows = self._read(None, set(tasks))
        files, write_id = self._write(rows.drop_columns(list(PLACE)))
        deletes = {
            (d.file_path, d.content_offset)
            for t in tasks.values()
            for d in t.deletes
            if d.referenced_data_file is not None
        }
        action = RewriteFiles(
            removed_data_paths=frozenset(tasks),
            removed_deletes=frozenset(deletes),
            data_files=files,
            checks=replace(self._checks(tasks, None, rows_are_kept=True), no_new_data=None),
        )
        self._commit(action, write_id, files)

    def rewrite_data_files(self) -> None:
        """Compact all files through the public API, sorted or not."""
        order = self._choose.choice([None, "v DESC", "zorder(id, v)"])
        self.table.maintenance().rewrite_data_files(
            sort_order=order,
            options={"rewrite-all": True, "partial-progress.enabled": self._choose.random() < 0.5},
        )

    def replace_schema(self) -> None:
        """Make a new current schema, with the same columns."""
        table = self.table
        table.update_schema().update_doc("v", uuid.uuid4().hex).commit()

    def register(self) -> None:
        """Register the table's newest metadata file under a second name."""
        TableCatalog(self.catalog).register_table(
            str(REGISTERED), self.table.loaded.metadata_location
        )

    def _new_rows(self) -> pa.Table:
        ids = [self.number * 10**6 + self._next + i for i in range(3)]
        self._next += 3
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "p": pa.array([i % PARTITIONS for i in ids], pa.int32()),
                "v": [f"v{i}" for i in ids],
            }
        )

    def _keep(self, rows: pa.Table, sequence_number: int) -> None:
        for id_, v in zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True):
            self.rows[id_] = Row(v=v, sequence_number=sequence_number)

    def _some(self) -> list[int]:
        """Return up to three ids of the client's own rows."""
        own_ids = sorted(self.rows)
        return self._choose.sample(own_ids, min(len(own_ids), self._choose.randrange(1, 4)))

    def _read(self, condition: str | None, paths: Iterable[str] | None = None) -> pa.Table:
        """Read live rows with place and lineage; check the row ids of the client's own rows."""
        metadata = self.table.metadata
        lineage = LINEAGE if metadata.format_version >= 3 else ()
        if condition is not None and "()" in condition:
            condition = "false"
        columns = ["id", "p", "v", *PLACE, *lineage]
        scan = self.table.scan(columns=columns, filter=condition)
        rows = (scan if paths is None else scan.of_files(frozenset(paths))).to_arrow()
        if lineage:
            for id_, row_id in zip(
                *(rows[c].to_pylist() for c in ("id", ROW_ID.name)), strict=True
            ):
                own = self.rows.get(id_)
                if own is not None:
                    assert own.row_id in (None, row_id), f"{id_} was {own.row_id}, is {row_id}"
                    self.rows[id_] = replace(own, row_id=row_id)
        return rows

    def _with_value(self, rows: pa.Table, value: str) -> pa.Table:
        """Return the rows with another value; the commit gives them its sequence number."""
        at = rows.column_names.index("v")
        rows = rows.set_column(at, "v", pa.array([value] * len(rows), rows["v"].type))
        if LINEAGE[1] in rows.column_names:
            at = rows.column_names.index(LINEAGE[1])
            rows = rows.set_column(at, LINEAGE[1], pa.nulls(len(rows), pa.int64()))
        return rows

    def _by_deletes(self, result: pa.Table, written: pa.Table | None, ids: list[int]) -> int:
        assert sorted(result["id"].to_pylist()) == sorted(ids), "acknowledged rows are not there"
        removed: dict[str, BitMap64] = {}
        for path, pos in zip(*(result[c].to_pylist() for c in PLACE), strict=True):
            removed.setdefault(path, BitMap64()).add(pos)
        tasks = self._tasks(removed)
        files: tuple[DataFile, ...] = ()
        write_id = str(uuid.uuid4())
        if written is not None:
            files, write_id = self._write(written.drop_columns(list(PLACE)))
        table = self.table
        deletes = write_row_deletes(
            str(self.identifier), table.metadata, table.io, removed, tasks, write_id=write_id
        )
        condition = f"id in ({', '.join(map(str, ids))})"
        action = RowDelta(
            data_files=files,
            delete_files=deletes.delete_files,
            removed_data_paths=deletes.removed_data_paths,
            removed_deletes=deletes.removed_deletes,
            checks=self._checks(tasks, condition, rows_are_kept=written is not None),
        )
        return self._commit(action, write_id, (*files, *deletes.delete_files))

    def _tasks(self, paths: Iterable[str] | None) -> dict[str, ScanTask]:
        scan = self.table.scan()
        scan = scan if paths is None else scan.of_files(frozenset(paths))
        return {t.file_path: t for t in scan.plan_files()}

    def _checks(
        self, tasks: Mapping[str, ScanTask], condition: str | None, *, rows_are_kept: bool
    ) -> ConflictChecks:
        """Return the checks of `table/row_level/isolation.py` for serializable isolation."""
        metadata = self.table.metadata
        read = bind(as_predicate(condition or "true"), metadata.current_schema)
        touched = tuple(
            TouchedFile(file_path=t.file_path, spec_id=t.spec_id, partition=t.partition)
            for t in tasks.values()
        )
        return ConflictChecks(
            base_snapshot_id=metadata.current_snapshot_id,
            no_new_data=compile_may_match(read, metadata),
            still_live=frozenset(tasks),
            no_new_deletes_for=touched if rows_are_kept else (),
        )

    def _write(self, rows: pa.Table) -> tuple[tuple[DataFile, ...], str]:
        write_id = str(uuid.uuid4())
        metadata = self.table.metadata
        context: Any = write_context_of(
            str(self.identifier), metadata, self.table.io, write_id=write_id
        )
        if LINEAGE[0] in rows.column_names:
            fields = (*context.schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
            context = replace(context, schema=replace(context.schema, fields=fields))
        batches = rows.combine_chunks().to_batches()
        files = write_data_files(context, batches, self.table.io, partition_id=0, task_id=0)
        return tuple(files), write_id

    def _commit(self, action: SnapshotAction, write_id: str, written: tuple[DataFile, ...]) -> int:
        """Commit the action and return the sequence number of its snapshot."""
        io = self.table.io
        options = CommitOptions(write_id=write_id)
        assert self._loaded is not None
        with WrittenFiles(io, written) as files:
            loaded = commit_action(
                self.catalog, self._loaded, io, action, options, written_files=files
            )
        created = [s for s in loaded.metadata.snapshots if s.summary.get(WRITE_ID) == write_id]
        assert len(created) == 1
        return created[0].sequence_number
