"""The driver's part of a write of changed rows: checks it before its tasks run, commits it after.

The rows were read in the state of a metadata file, which the request names. The commit is checked
for conflicts with all that came after it. The tasks' part is in `data_source/change_writer.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from pyspark.sql.types import StructType

from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.expressions.json import predicate_from_json
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.planning.scan_tasks import ScanTask, by_path
from iceberg_pyspark.spark.data_source.prepared_changes import PreparedChanges
from iceberg_pyspark.spark.data_source.read_options import (
    TableOptions,
    parse_table_options,
    parse_write_options,
)
from iceberg_pyspark.spark.data_source.table_access import load_table_at
from iceberg_pyspark.spark.row_changes.change_request import ROW_CHANGES, ChangeRequest
from iceberg_pyspark.spark.row_changes.row_commit import (
    RowCommit,
    counts_to_summary,
    merge_summary,
)
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.write.resolved_write import (
    ResolvedWrite,
    resolve_settings,
    resolve_write,
)
from iceberg_pyspark.spark.write.write_options import WriteOptions
from iceberg_pyspark.spec.metadata_columns import lineage_columns
from iceberg_pyspark.table.commits.commit import MetadataStep
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
from iceberg_pyspark.table.reading.snapshot_selection import branch_selector
from iceberg_pyspark.table.reading.table_scan import scan_table
from iceberg_pyspark.table.reading.whole_files import select_files
from iceberg_pyspark.table.row_level.change_task import FILE, OP, POS, Op, TaskChanges
from iceberg_pyspark.table.row_level.touched_rows import RowChanges, unite


def prepare_changes(values: Mapping[str, str], frame: StructType) -> PreparedChanges:
    """Check the options and the frame's columns, and determine what the tasks need."""
    request = ChangeRequest.of_text(values[ROW_CHANGES])
    own = {k: v for k, v in values.items() if k.lower() != ROW_CHANGES}
    table, options = parse_table_options(own), parse_write_options(own)
    options = replace(options, transaction=request.transaction)
    write = _resolve(table, options, request)
    if write.loaded_table.plan_scan is not None:
        raise UnsupportedFeatureError(
            f"table {table.table} is planned by its catalog's server, which may leave out rows "
            "that a rewrite must keep; set scan-planning-mode to client on the server or for the "
            "catalog to change its rows"
        )
    prepared = PreparedChanges(
        table=table, options=options, request=request, context=None, io=write.io
    )
    if frame.names[:3] != [OP, FILE, POS]:
        raise InvalidRequestError(
            f"option {ROW_CHANGES}: the rows begin with {', '.join(frame.names[:3])}, not with "
            f"{OP}, {FILE}, {POS}; change rows by the methods of a table, such as merge_into"
        )
    if len(frame.fields) == 3:
        return prepared
    context = write.context()
    schema = context.schema
    schema = replace(
        schema, fields=(*schema.fields, *lineage_columns(write.metadata.format_version))
    )
    columns = from_spark_schema(StructType(frame.fields[3:]))
    check_write_schema(columns, schema, table=table.table, case_sensitive=True)
    return replace(prepared, context=replace(context, schema=schema))


def commit_changes(prepared: PreparedChanges, changes: Iterable[TaskChanges]) -> None:
    """Commit the changes of all tasks; if the commit is refused, remove their files."""
    request, rows = prepared.request, unite(changes)
    write = _resolve(prepared.table, prepared.options, request)
    metadata = write.metadata
    scan = scan_table(
        write.table,
        metadata,
        write.io,
        selector=branch_selector(metadata, write.settings.branch),
        filter=AlwaysTrue()
        if request.filter is None
        else predicate_from_json(request.filter, metadata.current_schema),
    )

    def files(paths: Collection[str]) -> dict[str, ScanTask]:
        if not paths:
            return {}
        return by_path(scan.of_files(frozenset(paths)).plan().tasks(split=None))

    rewritten = request.rewritten_files
    epoch, branch = _epoch_of(request), write.settings.branch
    selection = select_files(scan) if request.deletes_whole_files else None
    RowCommit(
        operation=request.operation,
        write=write,
        rows=rows,
        files=files,
        read_predicate=lambda: scan.context.predicate,
        source_predicate=AlwaysTrue,
        requires_single_match=request.requires_single_match,
        summary=lambda counts: _summary(request, counts),
        rewritten_paths=None if rewritten is None else frozenset(rewritten),
        before=[]
        if epoch is None
        else [MetadataStep(lambda metadata: epoch.check_absent(metadata, branch))],
        whole={} if selection is None else selection.whole,
    ).commit()


def _summary(request: ChangeRequest, counts: RowChanges) -> dict[str, str]:
    epoch = _epoch_of(request)
    own = {**counts_to_summary(counts), **({} if epoch is None else epoch.summary())}
    if request.operation != "merge":
        return own
    merged = merge_summary(
        counts,
        matched=map(Op, request.matched),
        not_matched_by_source=map(Op, request.not_matched_by_source),
    )
    return {**own, **merged}


def _epoch_of(request: ChangeRequest) -> StreamEpoch | None:
    if request.epoch is None:
        return None
    query_id, epoch, change, operation = request.epoch
    return StreamEpoch(query_id=query_id, epoch=epoch, change=change, operation=operation)


def _resolve(table: TableOptions, options: WriteOptions, request: ChangeRequest) -> ResolvedWrite:
    """Return the write to the table in the state of the request."""
    catalog, loaded_table = load_table_at(table, request.metadata_location)
    settings = resolve_settings(options, {}, loaded_table.metadata.properties)
    write = resolve_write(table.table, catalog, loaded_table, settings)
    if request.transaction is not None:
        return write
    commit_options = replace(write.options, write_id=request.write_id)
    return replace(write, write_id=request.write_id, options=commit_options)
