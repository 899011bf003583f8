"""A table as the format `iceberg-py` finds it: by its name or path, and by options."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from iceberg_pyspark.catalogs.catalog import LoadedTable
from iceberg_pyspark.spark.data_source.table_state import state_in
from iceberg_pyspark.spark.portable.server_errors import servers_errors
from iceberg_pyspark.spark.row_changes.change_request import STATE

FORMAT = "iceberg-py"
_BY_PYTHON = {"native": "false"}
"""In a session with Iceberg installed, the bridge would take such reads and writes over."""


@dataclass(frozen=True, kw_only=True)
class FormatTable:
    """A table of the format, and the options that every read and write of it gets."""

    spark: SparkSession
    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def read(self, options: Mapping[str, str] | None = None) -> DataFrame:
        """Return a DataFrame of the table's rows, read by Python."""
        every = {**self.options, **_BY_PYTHON, **(options or {})}
        return self.spark.read.format(FORMAT).options(**every).load(self.name)

    def write(self, frame: DataFrame, options: Mapping[str, str]) -> None:
        """Write a DataFrame; raise the errors of this package that the server reports."""
        every = {**self.options, **_BY_PYTHON, **options}
        with servers_errors():
            frame.write.format(FORMAT).options(**every).mode("append").save(self.name)

    def load(self) -> LoadedTable:
        """Return the table's current state, without its credentials; raise `NoSuchTableError`."""
        # Spark keeps the schemas of equal reads of a session.
        read = self.read({STATE: str(uuid.uuid4())})
        with servers_errors():
            schema = read.schema
        return state_in(schema)
