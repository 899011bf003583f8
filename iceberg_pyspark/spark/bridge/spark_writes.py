"""Writes: the distribution of rows to tasks, and Spark's own Parquet writer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from iceberg_pyspark.spark.bridge.call_arguments import DirectFiles, WrittenColumn, to_json
from iceberg_pyspark.spark.bridge.java_classes import JavaClasses


class TouchedPositions(msgspec.Struct, frozen=True, kw_only=True):
    """What rows change (`IcebergPyTouchedRows`): the number of rows of each operation, and the
    positions of removed and of other target rows, as bitmaps by data file.

    `twice` is a file in which a position is there twice.
    """

    counts: list[int]
    removed: dict[str, bytes]
    unchanged: dict[str, bytes]
    twice: str | None = None


@dataclass(frozen=True)
class Writes:
    """The JVM's operations for writes."""

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

    @property
    def _changes(self) -> Any:
        return self._java.instance("IcebergPyChangeWrites")

    def rebalance(self, frame: DataFrame, by: Sequence[Column], size: int) -> DataFrame:
        """Return the rows in partitions of about `size` bytes: by range if `by` is ordered, else by
        hash.
        """
        dataset = self._layout.rebalance(
            self._java.server, self._java.session, frame._jdf, to_json(by), size
        )
        return self._java.frame(dataset)

    def murmur3(self, column: Column, kind: str) -> Column:
        """Return the hash of a column (specification, Appendix B): `long`, `text`, `bytes` or
        `decimal`.
        """
        return Column(self._layout.murmur3(column._jc, kind))

    def written_columns(self, frame: DataFrame, columns: Sequence[WrittenColumn]) -> DataFrame:
        """Return the columns of a frame as Spark's own Parquet writer must write them."""
        dataset = self._parquet.columns(self._java.session, frame._jdf, to_json(columns))
        return self._java.frame(dataset)

    def write_parquet(
        self,
        frame: DataFrame,
        folder: str,
        *,
        columns: StructType,
        job: str,
        partitioned_by: Sequence[str],
        settings: Mapping[str, str],
        options: Mapping[str, str],
        commit: Any = None,
        file_format: Any = None,
    ) -> None:
        """Write the rows by Spark's own writer, below a folder that no other writer uses.

        The files have the `columns`, with their types and nullability; the frame's first columns
        differ from them in names and nullability only, and those of `partitioned_by` follow.
        `settings` are session settings, `options` are options of Hadoop and of the format; both
        apply to this write alone. With a `commit` from `direct_commit` files keep their places;
        without one, they are moved into the folder after all files are written. A `file_format`
        from `change_format` takes the columns of changes away.
        """
        self._parquet.write(
            frame._jdf,
            columns.json(),
            job,
            folder,
            json.dumps(partitioned_by),
            json.dumps(dict(settings)),
            json.dumps(dict(options)),
            commit,
            file_format,
        )

    def change_format(self) -> Any:
        """Return the format of one write of changed rows, whose last columns are the operation,
        file and position of `ChangeTask`.
        """
        return self._changes.format(self._java.session)

    def touched_by_files(self, change_format: Any) -> Iterator[TouchedPositions]:
        """Return what the rows of a finished write touch, of each of its files."""
        return _touched(self._changes.touched(change_format))

    def touched_by_rows(self, frame: DataFrame) -> Iterator[TouchedPositions]:
        """Run a job; return what each task's rows touch, which have the columns of `ChangeTask`."""
        return _touched(self._changes.remove(self._java.session, frame._jdf))

    def encrypting_commit(self, job: str, folder: str, secret: bytes, key_length: int) -> Any:
        """Return a `commit` that moves files like none, and encrypts them by keys of a secret."""
        writes = self._java.instance("IcebergPyEncryptedWrites")
        return writes.commit(self._java.session, job, folder, secret, key_length)

    def direct_commit(self, files: DirectFiles) -> Any:
        """Return the settings of tasks that write their files to the final locations."""
        return self._direct.commit(self._java.session, to_json(files))

    def direct_files(self, commit: Any) -> list[str]:
        """Return the files of finished tasks, relative to the folder of a direct write."""
        files: list[str] = json.loads(self._direct.files(commit))
        return files


def _touched(texts: Any) -> Iterator[TouchedPositions]:
    """Yield the messages of a Java list; py4j would end its own iteration by an exception."""
    for i in range(texts.size()):
        yield msgspec.json.decode(texts.get(i), type=TouchedPositions)
