"""The procedures of one table: its maintenance with what Spark adds, its branches, its changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import SparkSession

from iceberg_pyspark.changes.cherry_picks import staged_snapshot
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.changelog import Changelog, changes_of_catalog, view_name
from iceberg_pyspark.spark.procedures.executor_sketches import sketches_by_executors
from iceberg_pyspark.spark.procedures.procedure_run import ProcedureRun, Result, Row, Run
from iceberg_pyspark.spark.write.executors import Executors, has_executors
from iceberg_pyspark.spec.property_types import BoolProperty
from iceberg_pyspark.spec.table_metadata import TableMetadata, ancestors_of
from iceberg_pyspark.table.commits.pending_changes import ManageSnapshots
from iceberg_pyspark.table.maintenance import procedures
from iceberg_pyspark.table.maintenance.removal.orphan_files import Inventory
from iceberg_pyspark.table.maintenance.removal.remove_orphan_files import OrphanFiles
from iceberg_pyspark.table.maintenance.rewrites.rewrite_data_files import RewrittenDataFiles
from iceberg_pyspark.table.statistics.table_statistics import ComputedTableStatistics


def _maintain(run: ProcedureRun) -> Result:
    return getattr(run.maintenance, run.procedure)(**run.given_arguments)


USE_EXECUTORS = BoolProperty("use-executors", False)
"""Whether executors write the files; by default, unless the master is `local` or `local[...]`."""


def _rewrite_data_files(run: ProcedureRun) -> RewrittenDataFiles:
    arguments = dict(run.given_arguments)
    options = dict(arguments.pop("options", {}))
    context = run.spark.sparkContext
    on_executors = options.pop(USE_EXECUTORS.name, None)
    if on_executors is None:
        on_executors = "true" if has_executors(context) else "false"
    if (problem := USE_EXECUTORS.problem(on_executors)) is not None:
        raise InvalidRequestError(
            f"rewrite_data_files: {USE_EXECUTORS.name}={on_executors} {problem}"
        )
    runner = Executors(context) if USE_EXECUTORS.of({USE_EXECUTORS.name: on_executors}) else None
    return run.maintenance.rewrite_data_files(**arguments, options=options, runner=runner)


def _compute_table_stats(run: ProcedureRun) -> ComputedTableStatistics:
    context = run.spark.sparkContext
    sketch = None
    if has_executors(context):
        sketch = partial(sketches_by_executors, context, progress=run.progress)
    return run.maintenance.compute_table_stats(**run.given_arguments, sketch_scan=sketch)


def _remove_orphan_files(run: ProcedureRun) -> OrphanFiles:
    arguments = dict(run.given_arguments)
    if (view := arguments.pop("file_list_view", None)) is not None:
        arguments["inventory"] = _inventory(run.spark, view)
    if "prefix_mismatch_mode" in arguments:
        arguments["prefix_mismatch_mode"] = str(arguments["prefix_mismatch_mode"]).lower()
    return run.maintenance.remove_orphan_files(**arguments)


def _inventory(spark: SparkSession, view: str) -> Inventory:
    """Return a function that yields the files in a view; each call reads the view again."""
    files = spark.table(view)
    types = {f.name: f.dataType.simpleString() for f in files.schema.fields}
    if types.get("file_path") != "string" or types.get("last_modified") != "timestamp":
        column_list = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        raise InvalidRequestError(
            f"remove_orphan_files: file_list_view {view} must have the columns file_path STRING "
            f"and last_modified TIMESTAMP; it has {column_list}"
        )
    listing = files.where("file_path IS NOT NULL").selectExpr(
        "file_path", "unix_millis(last_modified) AS modified_ms"
    )
    return lambda: ((row.file_path, row.modified_ms) for row in listing.toLocalIterator())


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
    return tuple((s.snapshot_id, s.timestamp_ms) for s in ancestors_of(metadata, start))


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
    **{p.name: _maintain for p in procedures.MAINTENANCE if p is not procedures.ADD_FILES},
    procedures.COMPUTE_TABLE_STATS.name: _compute_table_stats,
    procedures.REMOVE_ORPHAN_FILES.name: _remove_orphan_files,
    procedures.REWRITE_DATA_FILES.name: _rewrite_data_files,
    procedures.ANCESTORS_OF.name: _ancestors_of,
    procedures.CHERRYPICK_SNAPSHOT.name: _cherrypick_snapshot,
    procedures.CREATE_CHANGELOG_VIEW.name: _create_changelog_view,
    procedures.FAST_FORWARD.name: _fast_forward,
    procedures.PUBLISH_CHANGES.name: _publish_changes,
    procedures.ROLLBACK_TO_SNAPSHOT.name: _rollback_to_snapshot,
    procedures.ROLLBACK_TO_TIMESTAMP.name: _rollback_to_timestamp,
    procedures.SET_CURRENT_SNAPSHOT.name: _set_current_snapshot,
}
