"""The data source `iceberg-py`: `spark.read.format("iceberg-py")`, `df.write.format("iceberg-py")`.

Spark makes and pickles this object in processes that have no SparkSession; each step may be a new
one (`schema`, `reader`, `partitions`, `read`, `commit`). What must stay the same from step to
step, the snapshot above all, is kept on the object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from iceberg_pyspark.catalogs.catalog import LoadedTable, TableIdentifier
from iceberg_pyspark.spark.options import (
    parse_read_options,
    parse_table_options,
    parse_write_options,
)
from iceberg_pyspark.spark.prepare_write import prepare_write
from iceberg_pyspark.spark.reader import IcebergReader
from iceberg_pyspark.spark.table_access import find_table, load_table
from iceberg_pyspark.spark.types import project_like, to_spark_schema
from iceberg_pyspark.spark.writer import IcebergWriter
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.storage.metadata_files import read_table_metadata
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.scan import TableScan, scan_table
from iceberg_pyspark.table.table_storage import table_io


@dataclass(frozen=True)
class _Pinned:
    """The metadata file a DataFrame saw when it was loaded: it fixes snapshot and schema.

    Later steps need no catalog.
    """

    identifier: TableIdentifier
    metadata_location: str
    config: dict[str, str] = field(repr=False)


class IcebergDataSource(DataSource):
    """Apache Iceberg tables, read and written by Python alone.

    >>> df = spark.read.format("iceberg-py").load("db.events")  # doctest: +SKIP
    >>> df.write.format("iceberg-py").mode("append").save("db.events")  # doctest: +SKIP

    A table is a name (`db.events`, with the catalog in the option `catalog`, in `.pyiceberg.yaml`
    or in the environment) or a path (`/warehouse/db/events`). Options: README, "Options".
    """

    _pinned: _Pinned | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "iceberg-py"

    def schema(self) -> StructType:
        """The schema of what will be read; pins the snapshot."""
        return to_spark_schema(self._scan(self._load()).context.projection)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the pinned snapshot; with a user-given schema, of just its columns."""
        loaded = self._load()
        scan = self._scan(loaded)
        if to_spark_schema(scan.context.projection) != schema:
            scan = self._scan(loaded, lambda known: project_like(known, schema))
        return IcebergReader(scan)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer for one job; the table is created by its commit if there is none."""
        options = dict(self.options)
        return IcebergWriter(
            prepare_write(
                parse_table_options(options), parse_write_options(options), schema, overwrite
            )
        )

    def _load(self) -> LoadedTable:
        pinned = self._pinned
        if pinned is not None:
            return LoadedTable(
                identifier=pinned.identifier,
                metadata=_read_pinned(pinned),
                metadata_location=pinned.metadata_location,
                config=pinned.config,
            )
        table_options = parse_table_options(self.options)
        catalog, identifier = find_table(table_options)
        loaded = load_table(catalog, identifier, table_options)
        self._pinned = _Pinned(identifier, loaded.metadata_location, dict(loaded.config))
        return loaded

    def _scan(
        self, loaded: LoadedTable, projection: Callable[[Schema], Schema] | None = None
    ) -> TableScan:
        table_options = parse_table_options(self.options)
        read = parse_read_options(self.options)
        return scan_table(
            table_options.table,
            loaded.metadata,
            table_io(loaded, table_options.storage_properties),
            selector=read.selector,
            columns=read.columns,
            projection=projection,
            filter=read.filter,
            case_sensitive=read.case_sensitive,
            split_overrides=read.split_properties,
        )


def _read_pinned(pinned: _Pinned) -> TableMetadata:
    location = pinned.metadata_location
    return read_table_metadata(open_storage(location, pinned.config), location)
