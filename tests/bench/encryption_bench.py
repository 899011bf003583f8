"""Scans of an encrypted table, compared with the same rows in a plaintext table.

`python -m tests.bench.encryption_bench`; with `--without-spark`, no JVM is started.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as TextTable

from iceberg_pyspark import TableCatalog, install, load_catalog
from tests.bench.races import Line, race, text_table
from tests.support.encrypted_tables import key_properties

ROWS = 4_000_000
FILES = 4
MAX_OF_SCANS = 1.3
"""The limit of the time of a scan, as a ratio to that of the plaintext table."""
_FORMS = {"ours": {"encryption.key-id": "keyA"}, "plaintext": {}}


def compare(*, with_spark: bool = True) -> list[TextTable]:
    """Return the times of whole scans."""
    with tempfile.TemporaryDirectory(prefix="iceberg-bench-") as folder:
        properties = {"warehouse": f"{folder}/wh", **key_properties(Path(folder))}
        catalog = load_catalog("bench", type="hadoop", **properties)
        write_tables(catalog)
        scans: dict[str, Callable[[str], object]] = {
            "scan without Spark": lambda name: catalog.load_table(f"d.{name}").scan().to_arrow()
        }
        if with_spark:
            scans["scan by Spark's reader"] = _spark_scan(properties)
        lines = [compared(title, scan) for title, scan in scans.items()]
    title = f"encrypted (ours) and plaintext, {ROWS:,} rows in {FILES} files"
    return [text_table(title, lines, {"plaintext": "plaintext"})]


def write_tables(catalog: TableCatalog) -> None:
    """Write the same rows to a table of each form."""
    count = ROWS // FILES
    for name, properties in _FORMS.items():
        table = catalog.create_table(
            f"d.{name}",
            "id BIGINT, v STRING, x DOUBLE",
            properties={"format-version": "3", **properties},
        )
        for start in range(0, ROWS, count):
            ids = pa.array(range(start, start + count))
            texts = pc.cast(pc.multiply(ids, 2654435761), pa.string())
            table.append(pa.table({"id": ids, "v": texts, "x": pc.divide(ids, 7.0)}))


def compared(title: str, scan: Callable[[str], object]) -> Line:
    """Measure a scan of both tables."""
    return race(title, {name: partial(scan, name) for name in _FORMS}, limit=MAX_OF_SCANS)


def _spark_scan(properties: dict[str, str]) -> Callable[[str], object]:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "2g").getOrCreate()
    spark.conf.set("spark.sql.catalog.bench", "iceberg_pyspark")
    for key, value in {"type": "hadoop", **properties}.items():
        spark.conf.set(f"spark.sql.catalog.bench.{key}", value)
    install(spark)
    return lambda name: spark.sql(
        f"select count(id), max(v), sum(x) from bench.d.{name} where x >= 0"
    ).collect()


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-spark", action="store_true")
    arguments = parser.parse_args()
    for table in compare(with_spark=not arguments.without_spark):
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
