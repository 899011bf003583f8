"""Batches of streams in update mode: each row replaces the table's row of its key, or is new.

A batch is a MERGE, and one snapshot. Spark computes its rows once, because an operator with state
must not run twice; they are cached until the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from iceberg_pyspark.arrow.write.cast_to_table_schema import check_write_schema
from iceberg_pyspark.errors import CommitConflictError, InvalidRequestError
from iceberg_pyspark.redaction import get_logger
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.spark.row_level.execution import RowLevelRequest, run
from iceberg_pyspark.spark.row_level.merge import SOURCE_ALIAS, Merge, MergeBuilder, MergeTable
from iceberg_pyspark.spark.row_level.target import ALIAS
from iceberg_pyspark.spark.rows.spark_types import from_spark_schema
from iceberg_pyspark.spark.write.write_options import SNAPSHOT_PROPERTY, UPSERT_KEYS
from iceberg_pyspark.spec.schema import Schema, is_primitive
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.sql_text.names import parse_levels, quoted_name
from iceberg_pyspark.table.commits.commit import MetadataStep
from iceberg_pyspark.table.commits.stream_epochs import StreamEpoch
from iceberg_pyspark.table.row_level.touched_rows import RowChanges

_log = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class UpsertKey:
    """The columns that identify a row; `paths` are their quoted names."""

    paths: Sequence[str]

    @property
    def condition(self) -> str:
        """The condition of the MERGE: a null equals nothing."""
        return " AND ".join(f"{ALIAS}.{path} = {SOURCE_ALIAS}.{path}" for path in self.paths)

    def check_unique(self, rows: DataFrame, batch: str) -> None:
        """Raise `InvalidRequestError` if several rows of a batch have the same key."""
        columns = [sql.col(path).alias(f"k{i}") for i, path in enumerate(self.paths)]
        keys = rows.select(*columns).dropna("any")
        twice = keys.groupBy(*keys.columns).agg(sql.count("*").alias("n")).where("n > 1").head(1)
        if twice:
            key = ", ".join(f"{p} = {v!r}" for p, v in zip(self.paths, twice[0], strict=False))
            raise InvalidRequestError(
                f"{batch}: {twice[0]['n']} rows have the key {key}, and outputMode('update') takes "
                "at most one row of a key in a batch, because rows have no order; aggregate by the "
                f"key, or name all its columns in the option {UPSERT_KEYS}"
            )


def upsert_key(
    table: str, schema: Schema, names: Sequence[str], *, case_sensitive: bool
) -> UpsertKey:
    """Return the key of the named columns, or of the identifier fields; raise
    `InvalidRequestError`.
    """
    if names:
        fields = [
            schema.find(".".join(parse_levels(name)), case_sensitive=case_sensitive)
            for name in names
        ]
    else:
        fields = [schema.field_by_id[i] for i in schema.identifier_field_ids]
    if not fields:
        raise InvalidRequestError(
            f"table {table}: outputMode('update') needs the columns that identify a row; set the "
            f"option {UPSERT_KEYS} (column, column), or ALTER TABLE ... SET IDENTIFIER FIELDS"
        )
    paths = []
    for field in fields:
        path = schema.path_to(field.field_id)
        if not is_primitive(field.type) or not all(
            isinstance(f.type, StructType) for f in path[:-1]
        ):
            raise InvalidRequestError(
                f"table {table}: the key of outputMode('update') cannot have the column "
                f"{schema.name_by_id[field.field_id]} of type {field.type}: name columns of simple "
                "types that are in no list and no map"
            )
        paths.append(quoted_name([f.name for f in path]))
    return UpsertKey(paths=tuple(paths))


def upsert_epoch(
    request: RowLevelRequest, rows: DataFrame, epoch: StreamEpoch, *, is_stateful: bool
) -> int:
    """Merge a batch of a stream as one snapshot, unless the branch has it; return the number of
    rows that are new or replaced.

    The rows of a stateful batch are computed in any case, because Spark needs the state after them.
    """
    properties = {f"{SNAPSHOT_PROPERTY}{k}": v for k, v in epoch.summary().items()}
    request = replace(request, options={**request.options, **properties})
    write = request.resolve(request.table)
    branch = write.settings.branch
    if epoch.is_in(write.metadata, branch):
        _log.info("%s already has batch %s of query %s", write.table, epoch.epoch, epoch.query_id)
        if is_stateful:
            rows.write.format("noop").mode("overwrite").save()
        return 0
    schema = write.metadata.current_schema
    case_sensitive = is_case_sensitive(request.session.spark)
    check_write_schema(
        from_spark_schema(rows.schema), schema, table=write.table, case_sensitive=case_sensitive
    )
    names = write.settings.options.upsert_keys
    key = upsert_key(write.table, schema, names, case_sensitive=case_sensitive)
    unless_committed = MetadataStep(lambda metadata: epoch.check_absent(metadata, branch))
    request = replace(
        request, before=(unless_committed,), schema_id=write.metadata.current_schema_id
    )

    def merge(operation: Merge) -> RowChanges:
        return run(request, operation)[1]

    table = MergeTable(
        columns=lambda: tuple(f.name for f in schema.fields),
        case_sensitive=case_sensitive,
        has_alias=request.session.bridge.has_alias,
        evolve=lambda _: None,
        run=merge,
    )
    # the MERGE sees that its source is cached only in the very DataFrame that was persisted
    source = rows.alias(SOURCE_ALIAS).persist()
    try:
        key.check_unique(source, f"table {write.table}, batch {epoch.epoch} of {epoch.query_id}")
        builder = MergeBuilder(table, source, key.condition)
        done = builder.whenMatched().updateAll().whenNotMatched().insertAll().merge()
        return done.inserted + done.updated
    except CommitConflictError as e:
        if not epoch.is_in(request.load().metadata, branch):
            raise
        _log.warning("%s", e)
        return 0
    finally:
        source.unpersist()
