"""The table that a row-level operation changes: one snapshot of one branch, pinned.

Its rows come with their place (`_file`, `_pos`) and, since version 3, their lineage. What is really
read of it is remembered: that is what a concurrent commit may not have changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.expressions.predicates import AlwaysTrue, Predicate
from iceberg_pyspark.expressions.rewriting import or_
from iceberg_pyspark.planning.scan_plan import tasks_of
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.bridge.features import ROW_CHANGES
from iceberg_pyspark.spark.bridge.protocol.tables import TableFacts
from iceberg_pyspark.spark.native_read.partitioning import spark_grouping
from iceberg_pyspark.spark.native_read.runtime_filters import columns_for_skipping
from iceberg_pyspark.spark.rows.types import shown_spark_schema, to_spark_schema
from iceberg_pyspark.spark.table_states import TableState, TableStates, TargetReads
from iceberg_pyspark.spark.write.settings import WriteSettings
from iceberg_pyspark.spec.metadata_columns import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.reading.scan import TableScan, scan_table
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector, select_snapshot
from iceberg_pyspark.table.reading.whole_files import FileSelection

LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
ALIAS = "t"
"""What conditions call the table."""

_UNKNOWN_TOTAL = 2**40
_LATE_FILTERS_OF_BROADCASTS = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"


@dataclass(frozen=True, kw_only=True)
class RowLevelSession:
    """What operations need of a session with Iceberg in it; `bridge` is its door into the JVM."""

    spark: SparkSession
    bridge: Any
    states: TableStates

    def check(self) -> None:
        """Raise `UnsupportedFeatureError` where this release of Spark lets no rows be changed."""
        self.bridge.check(ROW_CHANGES)


@dataclass(kw_only=True)
class Target:
    """A pinned table; made by `pinned`. `like` is the statement that knows its columns."""

    session: RowLevelSession
    loaded: LoadedTable
    io: FileIO
    branch: str
    statement_columns: Any = None
    _selection: FileSelection | None = None
    _handles: list[str] = field(default_factory=list)
    _reads: list[TargetReads] = field(default_factory=list)

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata as pinned."""
        return self.loaded.metadata

    @property
    def name(self) -> str:
        """The table's name, for messages."""
        return str(self.loaded.identifier)

    @property
    def schema(self) -> Schema:
        """The columns that rows have."""
        return self.metadata.current_schema

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that is read; None where the table has none."""
        snapshot = self._snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    @property
    def size_in_bytes(self) -> int:
        """The size of its files, a lot where it is not known."""
        return self._total("total-files-size")

    @property
    def record_count(self) -> int:
        """How many rows its files hold, a lot where it is not known."""
        return self._total("total-records")

    @property
    def file_count(self) -> int:
        """How many data files it has, a lot where it is not known."""
        return self._total("total-data-files")

    @property
    def partition_columns(self) -> frozenset[str]:
        """The columns that the table is partitioned by."""
        names = self.schema.name_by_id
        return frozenset(
            names[i] for f in self.metadata.default_spec.fields for i in f.source_ids if i in names
        )

    @property
    def lineage(self) -> tuple[NestedField, ...]:
        """The columns of row lineage, which version 3 has."""
        return LINEAGE if self.metadata.format_version >= 3 else ()

    def rows(self, only_files: Collection[str] | None = None) -> DataFrame:
        """The rows, of all files or of some, with place and lineage."""
        if only_files is None and self._selection is not None:
            only_files = self._selection.partial
        reads = TargetReads(only_files=None if only_files is None else frozenset(only_files))
        self._reads.append(reads)
        states = self.session.states
        handle = states.register(
            TableState(
                catalog=f"{self.session.bridge.session_handle}/{self.loaded.identifier}",
                loaded=self.loaded,
                selector=self._selector(),
                reads=reads,
                io=self.io,
            )
        )
        self._handles.append(handle)
        hidden = (FILE, POS, *self.lineage)
        shown = Schema(fields=(*self.schema.fields, *hidden))
        facts = TableFacts(
            handle=handle,
            name=self.name,
            id=self.metadata.table_uuid,
            version=str(self.snapshot_id),
            schema=shown_spark_schema(shown).json(),
            metadata_columns=to_spark_schema(Schema(fields=())).json(),
            properties={},
            partitioning=(),
            size_in_bytes=self.size_in_bytes,
            grouping=spark_grouping(self.metadata, self.schema),
            filtered=self._filtered_late(),
        )
        frame: DataFrame = self.session.bridge.row_changes.table_frame(
            facts, self.statement_columns
        )
        return frame if self.statement_columns is not None else frame.alias(ALIAS)

    def narrow(self, selection: FileSelection) -> None:
        """From now on, read only the files of which some rows are selected."""
        self._selection = selection

    def scan(self) -> TableScan:
        """A scan of what is read."""
        return scan_table(self.name, self.metadata, self.io, selector=self._selector())

    def files(self, paths: Collection[str]) -> dict[str, ScanTask]:
        """What the snapshot says of data files that were read."""
        if not paths:
            return {}
        scan = self.scan().of_files(frozenset(paths))
        # what was read last was planned with predicates that keep all of these
        last = next((r.scans for r in reversed(self._reads) if r.scans), [])
        if last:
            scan = scan.pruned_by(or_(*(s.context.predicate for s in last)))
        return {
            task.file_path: task for planned in scan.plan().files() for task in tasks_of(planned)
        }

    def read_predicate(self) -> Predicate:
        """A bound predicate that every row which was read fulfils."""
        if self._selection is not None:
            return self._selection.predicate
        whole = [r for r in self._reads if r.only_files is None]
        read = [s.context.predicate for r in whole for s in r.scans]
        return or_(*read) if read else AlwaysTrue()

    def release(self) -> None:
        """Let go of what queries refer to."""
        for handle in self._handles:
            self.session.states.release(handle)

    def _filtered_late(self) -> tuple[str, ...]:
        """The columns that Spark may filter files by with the keys of a join's other side.

        With the very rows that it has broadcast for the join: a source that is read once more for
        the filter may have others then.
        """
        conf = self.session.spark.conf
        if conf.get(_LATE_FILTERS_OF_BROADCASTS, "true") != "true":
            return ()
        return tuple(f.name for f in columns_for_skipping(self.metadata))

    def _total(self, name: str) -> int:
        snapshot = self._snapshot()
        said = 0 if snapshot is None else snapshot.number(name)
        return _UNKNOWN_TOTAL if said is None else said

    def _selector(self) -> SnapshotSelector:
        return SnapshotSelector() if self.branch == MAIN else SnapshotSelector(branch=self.branch)

    def _snapshot(self) -> Snapshot | None:
        return select_snapshot(self.metadata, self._selector()).snapshot


@contextmanager
def pinned(
    session: RowLevelSession,
    loaded: LoadedTable,
    io: FileIO,
    settings: WriteSettings,
    statement_columns: Any = None,
) -> Iterator[Target]:
    """The table as a target, until the end of the operation."""
    branch = settings.branch
    metadata = loaded.metadata
    taken = {f.name for f in metadata.current_schema.fields} & {
        f.name for f in (FILE, POS, *LINEAGE)
    }
    if taken:
        raise UnsupportedFeatureError(
            f"table {loaded.identifier} has columns named like metadata columns "
            f"({', '.join(sorted(taken))}), so its rows cannot be told apart; rename them"
        )
    if settings.creates_branch and branch not in metadata.refs:
        branch = MAIN
    if branch != MAIN:
        metadata.ref_snapshot(branch)
    target = Target(
        session=session, loaded=loaded, io=io, branch=branch, statement_columns=statement_columns
    )
    try:
        yield target
    finally:
        target.release()


def new_write_id() -> str:
    """The id in the names of the files of one try."""
    return str(uuid.uuid4())


def branch_to_change(state: TableState) -> str | None:
    """The branch that a table's name means; tags and metadata tables cannot be changed."""
    name, selector = state.loaded.identifier, state.selector
    if state.metadata_table is not None:
        raise InvalidRequestError(
            f"{name}.{state.metadata_table} is a metadata table, whose rows cannot be changed"
        )
    if selector in (SnapshotSelector(), SnapshotSelector(branch=selector.branch)):
        return selector.branch
    raise InvalidRequestError(
        f"rows of table {name} at a tag or an earlier snapshot cannot be changed; name the table "
        "or one of its branches"
    )
