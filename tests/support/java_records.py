"""Rows written by Java's generic writer, for types and defaults that Spark cannot write.

Values cross py4j as text or numbers and become Java objects according to the column's type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from py4j.java_gateway import JavaObject

from iceberg_pyspark.spec.variant_encoding import comparable_of
from tests.support.oracle import Oracle


def create_java_table(
    oracle: Oracle,
    name: str,
    fields: Iterable[Mapping[str, Any]],
    *,
    partitioning: Iterable[tuple[str, str]] = (),
    properties: Mapping[str, str] | None = None,
) -> Any:
    """Create a table with Java; `fields` as in schema JSON, `partitioning` (transform, column).

    Field ids and `required` are filled in.
    """
    iceberg = oracle.jvm.org.apache.iceberg
    numbered = [{"id": i, "required": False, **f} for i, f in enumerate(fields, 1)]
    schema = iceberg.SchemaParser.fromJson(
        json.dumps({"type": "struct", "schema-id": 0, "fields": numbered})
    )
    builder = iceberg.PartitionSpec.builderFor(schema)
    ids = {f["name"]: f["id"] for f in numbered}
    spec_json = {
        "spec-id": 0,
        "fields": [
            {
                "name": f"p{i}",
                "transform": transform,
                "source-id": ids[column],
                "field-id": 1000 + i,
            }
            for i, (transform, column) in enumerate(partitioning)
        ],
    }
    spec = builder.build()
    if spec_json["fields"]:
        spec = iceberg.PartitionSpecParser.fromJson(schema, json.dumps(spec_json))
    catalog_name, namespace, table = name.split(".")
    identifier = iceberg.catalog.TableIdentifier.of(_strings(oracle, [namespace, table]))
    catalog = java_catalog(oracle, catalog_name)
    return catalog.createTable(identifier, schema, spec, dict(properties or {}))


def java_catalog(oracle: Oracle, catalog_name: str) -> Any:
    """Return the org.apache.iceberg.catalog.Catalog of one of the oracle's catalogs."""
    spark_catalog = oracle.java_session.sessionState().catalogManager().catalog(catalog_name)
    return spark_catalog.icebergCatalog()


def append_records(oracle: Oracle, name: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Append rows as one Parquet file of an unpartitioned table; return its location."""
    iceberg = oracle.jvm.org.apache.iceberg
    table = oracle.load_java_table(name)
    schema = table.schema()
    builder = iceberg.data.GenericFileWriterFactory.Builder(table)
    parquet = iceberg.FileFormat.PARQUET
    files = iceberg.io.OutputFileFactory.builderFor(table, 0, 0).format(parquet).build()
    writers = builder.dataFileFormat(parquet).dataSchema(schema).build()
    writer = writers.newDataWriter(files.newOutputFile(), table.spec(), None)
    for row in rows:
        record = iceberg.data.GenericRecord.create(schema)
        for column, value in row.items():
            type_ = schema.findField(column).type()
            record.setField(column, None if value is None else java_value(oracle, type_, value))
        writer.write(record)
    writer.close()
    file = writer.toDataFile()
    table.newAppend().appendFile(file).commit()
    location: str = file.location()
    return location


def read_records(oracle: Oracle, name: str) -> list[list[Any]]:
    """Return the rows that Java's generic reader reads; it applies no deletes of encrypted tables.

    Times are ISO texts, bytes of geometries are bytes, and variants bytes that are equal for equal
    values.
    """
    generics = oracle.jvm.org.apache.iceberg.data.IcebergGenerics
    iterator = generics.read(oracle.load_java_table(name)).build().iterator()
    rows = []
    while iterator.hasNext():
        record = iterator.next()
        rows.append([_python_value(oracle, record.get(i)) for i in range(record.size())])
    return rows


def _python_value(oracle: Oracle, value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, JavaObject) and value.getClass().getName().startswith("java.time."):
        return str(value.toString())
    if isinstance(value, JavaObject) and "variant" in value.getClass().getName().lower():
        parts = value.metadata(), value.value()
        java = oracle.jvm.java
        encoded = []
        for part in parts:
            order = java.nio.ByteOrder.LITTLE_ENDIAN
            buffer = java.nio.ByteBuffer.allocate(part.sizeInBytes()).order(order)
            part.writeTo(buffer, 0)
            encoded.append(bytes(buffer.array()))
        return comparable_of(*encoded)
    return bytes(value.array())


def java_value(oracle: Oracle, type_: Any, value: Any) -> Any:
    """Return a value as the object that Java's generic records hold for the type."""
    java = oracle.jvm.java
    match str(type_.typeId().name()):
        case "TIME":
            return java.time.LocalTime.parse(value)
        case "UUID":
            return java.util.UUID.fromString(value)
        case "TIMESTAMP" | "TIMESTAMP_NANO":
            zoned = value.endswith(("Z", "+00:00"))
            kind = java.time.OffsetDateTime if zoned else java.time.LocalDateTime
            return kind.parse(value)
        case "LONG":
            return java.lang.Long.valueOf(str(value))
        case "VARIANT":
            order = java.nio.ByteOrder.LITTLE_ENDIAN
            data = java.nio.ByteBuffer.wrap(value["metadata"] + value["value"]).order(order)
            return oracle.jvm.org.apache.iceberg.variants.Variant.__getattr__("from")(data)
        case "BINARY" | "GEOMETRY" | "GEOGRAPHY":
            return java.nio.ByteBuffer.wrap(value)
        case _:
            return value


def _strings(oracle: Oracle, values: list[str]) -> Any:
    gateway: Any = oracle.spark.sparkContext._gateway
    array = gateway.new_array(oracle.jvm.java.lang.String, len(values))
    for i, value in enumerate(values):
        array[i] = value
    return array
