"""The procedures that move branches between snapshots."""

from __future__ import annotations

from collections.abc import Callable

from iceberg_pyspark.changes.cherry_picks import staged_snapshot
from iceberg_pyspark.changes.ref_changes import ancestors_of
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.definition import Column, Procedure, ProcedureRun, Row
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots

_ID = Column(type="long")
_FROM_AND_TO = {"previous_snapshot_id": _ID, "current_snapshot_id": _ID}
_PICK_COLUMNS = {"source_snapshot_id": _ID, "current_snapshot_id": _ID}


def _move_main(run: ProcedureRun, move: Callable[[ManageSnapshots], ManageSnapshots]) -> Row:
    """Move main and return the ids of its current snapshot before and after."""
    before = run.table.metadata.current_snapshot_id
    move(run.table.manage_snapshots()).commit()
    return (before, run.table.metadata.current_snapshot_id)


def _rollback_to_snapshot(run: ProcedureRun) -> tuple[Row, ...]:
    return (_move_main(run, lambda s: s.rollback_to(run.required("snapshot_id"))),)


def _rollback_to_timestamp(run: ProcedureRun) -> tuple[Row, ...]:
    return (_move_main(run, lambda s: s.rollback_to_timestamp(run.required("timestamp"))),)


def _set_current_snapshot(run: ProcedureRun) -> tuple[Row, ...]:
    if len(run.given_arguments) != 1:
        raise InvalidRequestError(
            f"{run.procedure}: give either snapshot_id or ref, the name of a branch or tag"
        )
    snapshot_id = run.given_arguments.get("snapshot_id")
    if snapshot_id is None:
        snapshot_id = run.table.metadata.ref_snapshot(run.required("ref")).snapshot_id
    return (_move_main(run, lambda s: s.set_current_snapshot(snapshot_id)),)


def _cherry_pick_snapshot(run: ProcedureRun) -> tuple[Row, ...]:
    source_id = run.required("snapshot_id")
    _, current_id = _move_main(run, lambda s: s.cherry_pick(source_id))
    return ((source_id, current_id),)


def _publish_changes(run: ProcedureRun) -> tuple[Row, ...]:
    wap_id = run.required("wap_id")
    source_id = staged_snapshot(run.table.metadata, wap_id).snapshot_id
    _, current_id = _move_main(run, lambda s: s.publish_changes(wap_id))
    return ((source_id, current_id),)


def _fast_forward(run: ProcedureRun) -> tuple[Row, ...]:
    branch = run.required("branch")
    before = _head(run.table.metadata, branch)
    run.table.manage_snapshots().fast_forward(branch, run.required("to")).commit()
    return ((branch, before, _head(run.table.metadata, branch)),)


def _head(metadata: TableMetadata, branch: str) -> int | None:
    ref = metadata.refs.get(branch)
    return None if ref is None else ref.snapshot_id


def _ancestors_of(run: ProcedureRun) -> tuple[Row, ...]:
    metadata = run.table.metadata
    snapshot_id = run.given_arguments.get("snapshot_id")
    start = metadata.snapshot_or_current(snapshot_id)
    return tuple((s.snapshot_id, s.timestamp_ms) for s in ancestors_of(metadata, start))


ROLLBACK_TO_SNAPSHOT = Procedure(
    name="rollback_to_snapshot",
    description="Points main back at one of its ancestors",
    required={"table": "string", "snapshot_id": "bigint"},
    optional={},
    columns=_FROM_AND_TO,
    run=_rollback_to_snapshot,
    changes_rows=True,
)

ROLLBACK_TO_TIMESTAMP = Procedure(
    name="rollback_to_timestamp",
    description="Points main back at its newest ancestor before a time",
    required={"table": "string", "timestamp": "timestamp"},
    optional={},
    columns=_FROM_AND_TO,
    run=_rollback_to_timestamp,
    changes_rows=True,
)

SET_CURRENT_SNAPSHOT = Procedure(
    name="set_current_snapshot",
    description="Points main at any snapshot",
    required={"table": "string"},
    optional={"snapshot_id": "bigint", "ref": "string"},
    columns={
        "previous_snapshot_id": Column(type="long", is_nullable=True),
        "current_snapshot_id": _ID,
    },
    run=_set_current_snapshot,
    changes_rows=True,
)

CHERRYPICK_SNAPSHOT = Procedure(
    name="cherrypick_snapshot",
    description="Makes the changes of a snapshot on main",
    required={"table": "string", "snapshot_id": "bigint"},
    optional={},
    columns=_PICK_COLUMNS,
    run=_cherry_pick_snapshot,
    changes_rows=True,
)

PUBLISH_CHANGES = Procedure(
    name="publish_changes",
    description="Makes the changes on main that wait under an id",
    required={"table": "string", "wap_id": "string"},
    optional={},
    columns=_PICK_COLUMNS,
    run=_publish_changes,
    changes_rows=True,
)

FAST_FORWARD = Procedure(
    name="fast_forward",
    description="Moves a branch forward to where another branch or tag is",
    required={"table": "string", "branch": "string", "to": "string"},
    optional={},
    columns={
        "branch_updated": Column(type="string"),
        "previous_ref": Column(type="long", is_nullable=True),
        "updated_ref": _ID,
    },
    run=_fast_forward,
    changes_rows=True,
)

ANCESTORS_OF = Procedure(
    name="ancestors_of",
    description="A snapshot, by default the current one, and those that it came from",
    required={"table": "string"},
    optional={"snapshot_id": "bigint"},
    columns=dict.fromkeys(("snapshot_id", "timestamp"), Column(type="long", is_nullable=True)),
    run=_ancestors_of,
)
