"""The data source `iceberg-py`: `spark.read.format("iceberg-py")`, `df.write.format("iceberg-py")`.

Spark creates and pickles this object in processes without a SparkSession; each step (`schema`,
`reader`, `partitions`, `read`, `commit`) may run in a new process. State that must not change
between steps, above all the snapshot, is stored in the object. Executors get the object too.
Imports dominate the time of a short step, so this module imports little, and each step imports its
own part.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from iceberg_pyspark.spark.data_source.pinned_table import PinnedTable
from iceberg_pyspark.spark.row_changes.change_request import ROW_CHANGES, TABLE_CALL
from iceberg_pyspark.spark.rows.worker_steps import worker_step

if TYPE_CHECKING:
    from iceberg_pyspark.spark.data_source.metadata_tables import MetadataTableReadJob
    from iceberg_pyspark.spark.data_source.read_job import ReadJob
    from iceberg_pyspark.spark.data_source.table_state import StateReadJob


MARK = "iceberg-py state "
"""The beginning of a state's text, by which the bridge finds the state in a pickle."""


class IcebergDataSource(DataSource):
    """Apache Iceberg tables, read and written by Python alone.

    >>> df = spark.read.format("iceberg-py").load("db.events")  # doctest: +SKIP
    >>> df.write.format("iceberg-py").mode("append").save("db.events")  # doctest: +SKIP

    A table is a name (`db.events`, with the catalog in the option `catalog`, in `.pyiceberg.yaml`
    or in the environment) or a path (`/warehouse/db/events`). Options: docs/reference.
    """

    _pinned_table: PinnedTable | None = None

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "iceberg-py"

    def __getstate__(self) -> str:
        """Return the options and the pinned state as one text, which the bridge reads without
        unpickling.
        """
        pinned_table = None if self._pinned_table is None else asdict(self._pinned_table)
        return MARK + json.dumps({"options": dict(self.options), "pinned": pinned_table})

    def __setstate__(self, state: str) -> None:
        """Restore the pickled state."""
        parts = json.loads(state.removeprefix(MARK))
        self.options = CaseInsensitiveDict(parts["options"])
        pinned_table = parts["pinned"]
        self._pinned_table = None if pinned_table is None else PinnedTable.from_json(pinned_table)

    @classmethod
    def of_state(cls, state: str) -> IcebergDataSource:
        """Return the data source that a state describes."""
        source = cls.__new__(cls)
        source.__setstate__(state)
        return source

    def schema(self) -> StructType:
        """Return the schema of the rows that will be read, and pin the snapshot."""
        with worker_step():
            job = self.read_job()
            self._pinned_table = job.pinned_table
            return job.schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the pinned snapshot; with a user-given schema, a reader of only its
        columns.
        """
        with worker_step():
            return self.read_job().reader(schema)

    def read_job(self) -> ReadJob | MetadataTableReadJob | StateReadJob:
        """Return the read that the options describe, of the pinned snapshot if there is one."""
        from iceberg_pyspark.spark.data_source.read_job import open_read_job  # noqa: PLC0415

        return open_read_job(self.options, self._pinned_table)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer for one job; the job's commit creates the table if it does not exist."""
        with worker_step():
            if ROW_CHANGES in self.options:
                from iceberg_pyspark.spark.data_source.change_job import prepare_changes  # noqa: PLC0415
                from iceberg_pyspark.spark.data_source.change_writer import ChangeWriter  # noqa: PLC0415

                return ChangeWriter(prepare_changes(self.options, schema))
            if TABLE_CALL in self.options:
                from iceberg_pyspark.spark.data_source.table_calls import CallWriter  # noqa: PLC0415

                return CallWriter(self.options)
            from iceberg_pyspark.spark.data_source.write_job import prepare_write  # noqa: PLC0415
            from iceberg_pyspark.spark.data_source.writer import IcebergWriter  # noqa: PLC0415

            return IcebergWriter(prepare_write(self.options, schema, overwrite=overwrite))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of the rows that the table gets, with the columns of `schema`."""
        # This is not a `worker_step`: Spark's runner fails once more afterwards, and without the
        # traceback its message would hide this one.
        from iceberg_pyspark.spark.data_source.stream_source import open_stream_reader  # noqa: PLC0415

        return open_stream_reader(self.options, self.read_job(), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a writer of the batches of a query; each batch is one snapshot."""
        with worker_step():
            from iceberg_pyspark.spark.data_source.stream_sink import prepare_stream_write  # noqa: PLC0415
            from iceberg_pyspark.spark.data_source.stream_writer import IcebergStreamWriter  # noqa: PLC0415

            write = prepare_stream_write(self.options, schema, overwrite=overwrite)
            return IcebergStreamWriter(write)
