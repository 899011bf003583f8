"""The table a name and options stand for, as reads and writes take them: for jobs and scripts."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.spark.data_source.options import parse_table_options
from iceberg_pyspark.spark.data_source.table_access import find_table, load_table
from iceberg_pyspark.table.table import Table


def open_table(name: str, options: Mapping[str, str]) -> Table:
    """The table of a name or path, with the options that reads and writes take."""
    table_options = parse_table_options({**options, "path": name})
    catalog, identifier = find_table(table_options)
    return Table(catalog, load_table(catalog, identifier, table_options))
