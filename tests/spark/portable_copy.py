"""A program that copies a table into another one by a portable stream.

Arguments: a folder. Each run adds one row to the source, in a file of its own; a batch reads two
files at most, where Spark knows limits.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from iceberg_pyspark import load_catalog
from tests.support.spark_sessions import start_session

KNOWS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None
"""Whether this release of Spark limits the batches of Python data sources."""


def main(folder: Path) -> None:
    """Add a row to the source, and copy it."""
    catalog = load_catalog("copy", type="hadoop", warehouse=str(folder / "lake"))
    catalog.create_namespace("db", if_not_exists=True)
    tables = catalog.list_tables("db")
    if not tables:
        for name in ("db.source", "db.copy"):
            catalog.create_table(name, "id BIGINT")
    spark = start_session(folder / "spark")
    source, copy = (catalog.load_table(f"db.{name}") for name in ("source", "copy"))
    added = source.scan().count()
    row = spark.range(added, added + 1).coalesce(1).write.format("iceberg-py").mode("append")
    row.save(source.location)
    stream = spark.readStream.format("iceberg-py")
    if KNOWS_LIMITS:
        stream = stream.option("streaming-max-files-per-micro-batch", 2)
    writer = (
        stream.load(source.location).writeStream.format("iceberg-py").trigger(availableNow=True)
    )
    writer.option("checkpointLocation", str(folder / "checkpoint")).start(
        copy.location
    ).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
