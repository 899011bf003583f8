"""The procedures that move branches between snapshots, and list or compare snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from iceberg_pyspark.changes import ref_changes
from iceberg_pyspark.changes.cherry_picks import staged_snapshot
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.changelog.view import Changelog, changes_of_catalog, view_name
from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun, Row, Run
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots
from iceberg_pyspark.table.maintenance import procedures


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


def _cherrypick_snapshot(run: ProcedureRun) -> tuple[Row, ...]:
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
    return tuple((s.snapshot_id, s.timestamp_ms) for s in ref_changes.ancestors_of(metadata, start))


def _create_changelog_view(run: ProcedureRun) -> tuple[Row, ...]:
    arguments = dict(run.given_arguments)
    name = view_name(arguments.pop("changelog_view", None), run.identifier.name)
    identifier = run.identifier
    levels = (run.catalog.name, *identifier.levels)
    read = changes_of_catalog(run.spark, levels)
    table = run.table
    changelog = Changelog(**arguments).of(
        str(identifier), table.metadata, read, case_sensitive=table.case_sensitive
    )
    changelog.createOrReplaceTempView(name)
    return ((name,),)


RUNS: Mapping[str, Run] = {
    procedures.ANCESTORS_OF.name: _ancestors_of,
    procedures.CHERRYPICK_SNAPSHOT.name: _cherrypick_snapshot,
    procedures.CREATE_CHANGELOG_VIEW.name: _create_changelog_view,
    procedures.FAST_FORWARD.name: _fast_forward,
    procedures.PUBLISH_CHANGES.name: _publish_changes,
    procedures.ROLLBACK_TO_SNAPSHOT.name: _rollback_to_snapshot,
    procedures.ROLLBACK_TO_TIMESTAMP.name: _rollback_to_timestamp,
    procedures.SET_CURRENT_SNAPSHOT.name: _set_current_snapshot,
}
