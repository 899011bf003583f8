"""What keeps a table healthy: expiring snapshots, removing orphan files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta, timezone

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable
from iceberg_pyspark.commits.snapshot_retention import Retention
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.table.changes.commit import Clock
from iceberg_pyspark.table.changes.deleted_files import deleting_threads
from iceberg_pyspark.table.changes.expire_snapshots import ExpiredSnapshots, SnapshotExpiry

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TableMaintenance:
    """The maintenance of one table, by the names and arguments of the JVM connector's procedures.

    Each method works on the table as it is when it is called, whatever was loaded.
    """

    def __init__(
        self,
        catalog: Catalog,
        table: LoadedTable,
        io: FileIO,
        *,
        clock: Clock,
        committed: Callable[[LoadedTable], None],
    ) -> None:
        """`committed` is told the table after each commit."""
        self._catalog = catalog
        self._table = table
        self._io = io
        self._clock = clock
        self._committed = committed

    def expire_snapshots(
        self,
        *,
        older_than: datetime | int | None = None,
        retain_last: int | None = None,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = True,
        snapshot_ids: Collection[int] = (),
        clean_expired_metadata: bool = False,
        dry_run: bool = False,
    ) -> ExpiredSnapshots:
        """Remove old snapshots, branches and tags, then the files that only they need.

        Specification, "Snapshot Retention Policy": each branch keeps its last `retain_last`
        snapshots and those not older than `older_than`, a datetime (UTC where it has no zone) or
        milliseconds from 1970; a branch's own settings come first, and what is None the properties
        `history.expire.*` say. `snapshot_ids` go whatever their age. `clean_expired_metadata` also
        removes schemas and partition specs that nothing uses. `stream_results` has no effect:
        files are never collected in memory.

        `dry_run` counts what would go. Run again, it does nothing. Raises `InvalidRequestError`
        where `gc.enabled` is false or a branch or tag points at one of `snapshot_ids`,
        `CommitConflictError`, and `CommitStateUnknownError`, after which nothing was deleted.
        """
        expiry = SnapshotExpiry(
            self._catalog,
            self._table,
            self._io,
            Retention(
                older_than_ms=_milliseconds(older_than),
                retain_last=retain_last,
                snapshot_ids=frozenset(snapshot_ids),
            ),
            clean_expired_metadata=clean_expired_metadata,
            threads=deleting_threads(max_concurrent_deletes),
            clock=self._clock,
        )
        if dry_run:
            return expiry.plan()
        table, result = expiry.run()
        self._committed(table)
        return result


def _milliseconds(moment: datetime | int | None) -> int | None:
    if not isinstance(moment, datetime):
        return moment
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
