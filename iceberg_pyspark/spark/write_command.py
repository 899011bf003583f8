"""A write of Spark's carried out: the rows of an INSERT or a `writeTo` to files, one commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyspark.sql import DataFrame

from iceberg_pyspark.catalogs.catalog import Catalog
from iceberg_pyspark.errors import IcebergError, UnsupportedFeatureError
from iceberg_pyspark.spark.table_states import TableState
from iceberg_pyspark.spark.write_frame import write_frame
from iceberg_pyspark.table.commit_files import CommitOptions, commit_append
from iceberg_pyspark.table.new_data import write_context_of
from iceberg_pyspark.table.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table_storage import table_io
from iceberg_pyspark.table.write_rows import delete_written

WriteKind: TypeAlias = Literal["append", "overwrite", "overwrite_partitions"]


@dataclass(frozen=True, kw_only=True)
class WriteCommand:
    """What Spark analysed: the rows, what becomes of those there are, the options."""

    kind: WriteKind
    frame: DataFrame
    options: Mapping[str, str]
    condition: Mapping[str, Any] | None
    """Which rows an overwrite replaces, as the bridge describes conditions."""


def run_write(catalog: Catalog, state: TableState, command: WriteCommand) -> None:
    """Write the rows and commit them as one snapshot."""
    loaded = state.loaded
    if command.kind != "append" or state.selector != SnapshotSelector():
        raise UnsupportedFeatureError(
            f"only appends to branch main of {loaded.identifier} are supported yet; use "
            "df.write.format('iceberg-py').mode('overwrite')"
        )
    io = table_io(loaded)
    context = write_context_of(str(loaded.identifier), loaded.metadata, write_id=str(uuid.uuid4()))
    files = write_frame(command.frame, context, io)
    try:
        commit_append(catalog, loaded, io, files, CommitOptions(write_id=context.write_id))
    except IcebergError as e:
        if e.safe_to_clean_up:
            delete_written(io, files)
        raise
