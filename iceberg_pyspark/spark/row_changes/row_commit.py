"""Commits the result of a row-level job as one snapshot, checked from the snapshot that it read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.changes.summary import WRITE_ID
from iceberg_pyspark.expressions.predicates import Predicate
from iceberg_pyspark.planning.scan_tasks import ScanTask
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.table.commits.commit import CommitStep
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from iceberg_pyspark.table.row_level.change_commit import change_action, row_changes_of
from iceberg_pyspark.table.row_level.change_task import Op
from iceberg_pyspark.table.row_level.isolation import OperationName, conflict_checks
from iceberg_pyspark.table.row_level.touched_rows import RowChanges, TouchedRows

_SUMMARY = "spark.merge-into.num-target-rows-"
_COUNTS = "iceberg-pyspark.changed-rows"
"""An entry of the summary that tells a client, which only sees the snapshot, what has changed."""

_NAMES = ("inserted", "updated", "deleted", "copied")


@dataclass(frozen=True, kw_only=True)
class RowCommit:
    """What a row-level operation has read and changed of the table of `write`.

    `rewritten_paths` are the files to replace as a whole, None if rows are deleted by position;
    `whole` are files without any row left. `files` returns the scan tasks of data files that rows
    were read of. See `conflict_checks` for the predicates. `summary` returns further entries for
    the snapshot's summary. The steps `before` are the first of the commit.
    """

    operation: OperationName
    write: ResolvedWrite
    rows: TouchedRows
    files: Callable[[Collection[str]], Mapping[str, ScanTask]]
    read_predicate: Callable[[], Predicate]
    source_predicate: Callable[[], Predicate]
    requires_single_match: bool
    summary: Callable[[RowChanges], Mapping[str, str]]
    rewritten_paths: frozenset[str] | None = None
    whole: Mapping[str, ScanTask] = field(default_factory=dict)
    before: Sequence[CommitStep] = ()

    def commit(self) -> tuple[LoadedTable, RowChanges]:
        """Commit the changes; return the table after it, and the counts. If there are no changes,
        nothing is committed; if the commit is refused, its files are removed.
        """
        write, rows = self.write, self.rows
        io, metadata = write.io, write.metadata
        with WrittenFiles(io, rows.data_files) as written_files:
            if self.requires_single_match:
                rows.check_single_matches(write.table)
            rewritten = self.rewritten_paths
            changed_paths = rows.removed_positions if rewritten is None else rewritten
            touched_files = {**self.files(changed_paths), **self.whole}
            row_changes = row_changes_of(rows, self.whole.values(), write.table, metadata, io)
            base_id = None if write.base is None else write.base.snapshot_id
            if not touched_files and not rows.data_files:
                return write.loaded_table, replace(row_changes, snapshot_id=base_id)
            checks = conflict_checks(
                metadata,
                self.operation,
                snapshot_id=base_id,
                read_predicate=self.read_predicate(),
                source_predicate=self.source_predicate,
                touched_tasks=touched_files.values(),
                rows_are_kept=rewritten is not None or self.operation != "delete",
            )
            action = change_action(
                write.table,
                metadata,
                io,
                rows,
                written_files,
                rewritten=rewritten is not None,
                touched_files=touched_files,
                whole_paths=self.whole.keys(),
                checks=checks,
                # Not the write id, which racing writers of one transaction share.
                write_id=write.file_id,
            )
            options = write.options
            summary = {**self.summary(row_changes), **options.snapshot_properties}
            options = replace(options, snapshot_properties=summary)
            loaded_table = write.commit(action, written_files, options=options, before=self.before)
        snapshot = next(
            s
            for s in reversed(loaded_table.metadata.snapshots)
            if s.summary.get(WRITE_ID) == write.write_id
        )
        return loaded_table, replace(row_changes, snapshot_id=snapshot.snapshot_id)


def merge_summary(
    row_changes: RowChanges, *, matched: Iterable[Op], not_matched_by_source: Iterable[Op]
) -> dict[str, str]:
    """Return the counts of a MERGE under Java's names; the arguments are the clauses' operations.

    If matched and unmatched clauses both update (or both delete), the counts by kind of clause
    are unknown and left out.
    """
    counts = {
        "copied": row_changes.copied,
        "inserted": row_changes.inserted,
        "deleted": row_changes.deleted,
        "updated": row_changes.updated,
    }
    of_matched, of_others = set(matched), set(not_matched_by_source)
    for op, name, count in (
        (Op.UPDATE, "updated", row_changes.updated),
        (Op.DELETE, "deleted", row_changes.deleted),
    ):
        if not (op in of_matched and op in of_others):
            counts[f"matched-{name}"] = count if op in of_matched else 0
            counts[f"not-matched-by-source-{name}"] = count if op in of_others else 0
    return {f"{_SUMMARY}{name}": str(count) for name, count in counts.items()}


def counts_to_summary(row_changes: RowChanges) -> dict[str, str]:
    """Return the counts as an entry of a snapshot's summary."""
    return {_COUNTS: " ".join(f"{name}={getattr(row_changes, name)}" for name in _NAMES)}


def counts_in(snapshot: Snapshot) -> RowChanges:
    """Return the counts of a snapshot whose summary has them, and its id."""
    parts = (part.partition("=") for part in snapshot.summary.get(_COUNTS, "").split())
    counts = {name: int(count) for name, _, count in parts if name in _NAMES}
    return RowChanges(snapshot_id=snapshot.snapshot_id, **counts)
