"""Writes: the distribution of rows to tasks, and Spark's own Parquet writer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame

from iceberg_pyspark.spark.bridge.calls import DirectFiles, WrittenColumn, to_json
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses


@dataclass(frozen=True)
class Writes:
    """The JVM's side of writes."""

    _java: JavaClasses

    @property
    def _layout(self) -> Any:
        return self._java.instance("IcebergPyLayout")

    @property
    def _parquet(self) -> Any:
        return self._java.instance("IcebergPyParquetWrites")

    @property
    def _direct(self) -> Any:
        return self._java.instance("IcebergPyDirectWrites")

    def rebalance(self, frame: DataFrame, by: Sequence[Column], size: int) -> DataFrame:
        """The rows in partitions of about that many bytes: by range if `by` is ordered, by hash."""
        dataset = self._layout.rebalanced(
            self._java.server, self._java.session, frame._jdf, to_json(by), size
        )
        return self._java.frame(dataset)

    def murmur3(self, column: Column, kind: str) -> Column:
        """Appendix B's hash of a column's values: `long`, `text`, `bytes` or `decimal`."""
        return Column(self._layout.murmur3(column._jc, kind))

    def written_columns(self, frame: DataFrame, columns: Sequence[WrittenColumn]) -> DataFrame:
        """Columns of a frame as Spark's own Parquet writer is to write them."""
        dataset = self._parquet.columns(frame._jdf, to_json(columns))
        return self._java.frame(dataset)

    def write_parquet(
        self,
        frame: DataFrame,
        folder: str,
        *,
        job: str,
        partitioned_by: Sequence[str],
        settings: Mapping[str, str],
        options: Mapping[str, str],
        commit: Any = None,
    ) -> None:
        """Have Spark's own writer write the rows below a folder that nobody else writes to.

        `settings` are the session's and `options` Hadoop's and the format's, for this write alone;
        `commit` is a `direct_commit`, else files are moved into the folder once all are written.
        """
        self._parquet.write(
            frame._jdf,
            job,
            folder,
            json.dumps(partitioned_by),
            json.dumps(dict(settings)),
            json.dumps(dict(options)),
            commit,
        )

    def direct_commit(self, files: DirectFiles) -> Any:
        """The settings of tasks whose files stay where they write them."""
        return self._direct.commit(self._java.session, to_json(files))

    def direct_files(self, commit: Any) -> list[str]:
        """Where the files of tasks lie that are done, below the folder of such a write."""
        files: list[str] = json.loads(self._direct.files(commit))
        return files
