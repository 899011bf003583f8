"""Rows that are read as a stream of Arrow batches, and the libraries that take them.

Polars, DuckDB and pandas are optional: the methods that return their frames import them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceberg_pyspark.arrow.geo_columns import without_edges
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spec.argument_types import check_text, wrong_type

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


class RowStream(ABC):
    """Rows to read; each call reads them again.

    Libraries that know the Arrow C stream (`__arrow_c_stream__`) take the object itself:
    `polars.DataFrame(rows)`, `duckdb.from_arrow(rows)`, `pyarrow.table(rows)`.
    """

    @abstractmethod
    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, which is read batch by batch, in bounded memory."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table in memory."""
        with self.to_batches() as batches:
            return batches.read_all()

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """Return all rows as a pandas frame; `options` are those of `pyarrow.Table.to_pandas`."""
        _optional("pandas", "to_pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas(**options)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return all rows as a Polars frame."""
        frame: polars.DataFrame = _optional("polars", "to_polars").DataFrame(self)
        return frame

    def to_duckdb(
        self, table_name: str, connection: duckdb.DuckDBPyConnection | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Register all rows as a table in DuckDB; return the connection.

        Without a connection, a new one to a database in memory is used. Geographies are bytes.
        """
        check_text("to_duckdb: table_name", table_name)
        module = _optional("duckdb", "to_duckdb")
        if connection is None:
            connection = module.connect(":memory:")
        elif not isinstance(connection, module.DuckDBPyConnection):
            raise wrong_type("to_duckdb: connection", "a connection of DuckDB", connection)
        rows = self.to_arrow()
        # DuckDB refuses tables that have a geography
        plain = pa.schema([without_edges(f) for f in rows.schema])
        connection.register(table_name, rows.cast(plain))
        return connection

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_batches().__arrow_c_stream__(requested_schema)


def _optional(package: str, method: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as e:
        if e.name != package:
            raise
        raise UnsupportedFeatureError(
            f"{method} needs the package {package}; run pip install {package}"
        ) from e
