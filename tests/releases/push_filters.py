"""Prints how many rows a second query on a DataFrame has whose first query pushed a filter.

The data source keeps what was pushed, as the interface asks for; without it, it reads five rows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, InputPartition

ROWS = 5


class FilteringReader(DataSourceReader):
    """A reader that applies equalities of its one column, and takes no other filters."""

    def __init__(self) -> None:
        self.values: set[Any] | None = None

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802
        """Keep the equalities; return the other filters."""
        for f in filters:
            if isinstance(f, EqualTo):
                self.values = {f.value}
            else:
                yield f

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Yield the rows that the kept filters select."""
        del partition
        for i in range(ROWS):
            if self.values is None or i in self.values:
                yield (i,)


class FilteredRows(DataSource):
    """Five rows."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "filtered-rows"

    def schema(self) -> str:
        """Return the columns."""
        return "id int"

    def reader(self, schema: Any) -> FilteringReader:
        """Return a new reader."""
        del schema
        return FilteringReader()


def main() -> None:
    """Count the rows with a filter, and then without it."""
    settings: dict[str, bool | float | int | str | None]
    settings = {"spark.sql.python.filterPushdown.enabled": "true", "spark.ui.enabled": "false"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.dataSource.register(FilteredRows)
    frame = spark.read.format(FilteredRows.name()).load()
    counts = [frame.filter("id = 3").count(), frame.count()]
    sys.stdout.write(json.dumps({"release": spark.version, "counts": counts}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
