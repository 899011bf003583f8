"""Tables USING avro in a Spark without the package spark-avro, which cannot create them.

The format of a Parquet table's entry in Spark's catalog is changed, and fastavro writes the files,
with the schema of Spark's own writer.
"""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
from pyspark.sql import SparkSession

_PROVIDER = 4
"""The index of the format in the parameters of Spark's CatalogTable."""

COLUMNS = (
    "id BIGINT, small TINYINT, name STRING, at TIMESTAMP, local TIMESTAMP_NTZ, "
    "price DECIMAL(9, 2), born DATE, tags ARRAY<STRING>, pair STRUCT<x: INT, y: DOUBLE>, "
    "counts MAP<STRING, BIGINT>"
)


def _optional(kind: Any) -> list[Any]:
    return [kind, "null"]


FIELDS: list[dict[str, Any]] = [
    {"name": name, "type": _optional(kind)}
    for name, kind in {
        "id": "long",
        "small": "int",
        "name": "string",
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "local": {"type": "long", "logicalType": "local-timestamp-micros"},
        "price": {
            "type": "fixed",
            "name": "fixed",
            "namespace": "topLevelRecord.price",
            "size": 4,
            "logicalType": "decimal",
            "precision": 9,
            "scale": 2,
        },
        "born": {"type": "int", "logicalType": "date"},
        "tags": {"type": "array", "items": _optional("string")},
        "pair": {
            "type": "record",
            "name": "pair",
            "namespace": "topLevelRecord",
            "fields": [
                {"name": "x", "type": _optional("int")},
                {"name": "y", "type": _optional("double")},
            ],
        },
        "counts": {"type": "map", "values": _optional("long")},
    }.items()
]
FULL = {
    "id": 1,
    "small": -3,
    "name": "é",
    "at": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc),
    "local": datetime(1969, 12, 31, 23, 59, 59, 999999),
    "price": Decimal("-12.34"),
    "born": date(1960, 2, 29),
    "tags": ["a", None],
    "pair": {"x": 1, "y": None},
    "counts": {"k": 7, "l": None},
}
EMPTY: dict[str, Any] = {**dict.fromkeys(FULL), "id": 2}


def set_provider(spark: SparkSession, namespace: str, name: str, provider: str) -> None:
    """Give a Parquet table's entry another format; its files do not change."""
    catalog = spark._jsparkSession.sessionState().catalog()
    jvm: Any = spark._jvm
    option = jvm.scala.Option
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, option.apply(namespace))
    entry = catalog.getTableMetadata(identifier)
    parameters = [entry.productElement(i) for i in range(entry.productArity())]
    assert parameters[_PROVIDER].get() == "parquet"
    parameters[_PROVIDER] = option.apply(provider)
    catalog.alterTable(entry.copy(*parameters))


def write(
    place: Path, rows: list[dict[str, Any]], name: str = "part-0.avro", without: str = ""
) -> None:
    """Write rows such as `FULL` and `EMPTY` to a file in a folder, which may be absent.

    `without` names a column that the file does not have.
    """
    fields = [f for f in FIELDS if f["name"] != without]
    schema = fastavro.parse_schema({"type": "record", "name": "topLevelRecord", "fields": fields})
    place.mkdir(parents=True, exist_ok=True)
    with (place / name).open("wb") as out:
        fastavro.writer(out, schema, rows, codec="deflate")
