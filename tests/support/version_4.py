"""Convert version 3 tables to version 4 as Java 1.12 writes it, or with relative paths.

Avro manifest lists declare version 4; leaf manifests are Parquet with the same columns and field
ids. fastavro reads and pyarrow writes the manifests, without any code of ours.
"""

from __future__ import annotations

import io as streams
import json
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from iceberg_pyspark.storage.files.file_io import FileIO

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
FORMAT_VERSION = {"format-version": "4"}
Rename = Callable[[str], str]


def parquet_manifest(
    avro: bytes, rename: Rename = str, *, extra_metadata: Mapping[str, str] | None = FORMAT_VERSION
) -> bytes:
    """Return the manifest as Parquet; `extra_metadata` is added to it, `rename` maps paths."""
    reader = fastavro.reader(streams.BytesIO(avro))
    schema: Any = reader.writer_schema
    dropped = ("avro.", "format-version")
    metadata = {k: v for k, v in reader.metadata.items() if not k.startswith(dropped)}
    records: list[Any] = []
    for entry in reader:
        assert isinstance(entry, dict)
        file = entry["data_file"]
        file["file_path"] = rename(file["file_path"])
        if file.get("referenced_data_file") is not None:
            file["referenced_data_file"] = rename(file["referenced_data_file"])
        records.append(entry)
    type_ = _arrow_type(schema, {})
    table = pa.Table.from_struct_array(pa.chunked_array([pa.array(_plain(records, type_), type_)]))
    out = streams.BytesIO()
    with pq.ParquetWriter(out, table.schema, store_schema=False, compression="zstd") as writer:
        writer.write_table(table, row_group_size=50)
        writer.add_key_value_metadata({**metadata, **(extra_metadata or {})})
    return out.getvalue()


def _arrow_type(schema: Any, defined_types: dict[str, Any]) -> pa.DataType:
    """Return an Avro schema's Arrow type; `defined_types` holds those already defined."""
    if isinstance(schema, dict) and "name" in schema:
        defined_types[schema["name"]] = schema
    match schema:
        case {"type": "record", "fields": fields}:
            columns = [
                pa.field(
                    f["name"],
                    type_,
                    nullable=isinstance(f["type"], list),
                    metadata={"PARQUET:field_id": str(f["field-id"])},
                )
                for f in fields
                if (type_ := _arrow_type(f["type"], defined_types)) is not None
            ]
            # Parquet has no group without columns.
            return pa.struct(columns) if columns else None
        case {"type": "array", "items": {"fields": [key, value]}, "logicalType": "map"}:
            return pa.map_(
                _arrow_type(key["type"], defined_types), _arrow_type(value["type"], defined_types)
            )
        case {"type": "array", "items": items, "element-id": element_id}:
            ids = {"PARQUET:field_id": str(element_id)}
            return pa.list_(pa.field("element", _arrow_type(items, defined_types), False, ids))
        case {"type": "int", "logicalType": "date"}:
            return pa.date32()
        case {"type": "long", "logicalType": "time-micros"}:
            return pa.time64("us")
        case {"type": "long", "logicalType": str(kind)}:
            unit = "ns" if "nanos" in kind else "us"
            return pa.timestamp(unit, "UTC" if schema.get("adjust-to-utc") else None)
        case {"logicalType": "decimal", "precision": precision, "scale": scale}:
            return pa.decimal128(precision, scale)
        case {"type": "fixed", "size": size}:
            return pa.binary(size)
        case [*branches]:
            not_null = [b for b in branches if b != "null"]
            return _arrow_type(not_null[0], defined_types) if not_null else None
        case "null":
            return None
        case {"type": inner}:
            return _arrow_type(inner, defined_types)
        case str() if schema in defined_types:
            return _arrow_type(defined_types[schema], defined_types)
        case _:
            return _PRIMITIVES[schema]


def _plain(value: Any, type_: pa.DataType) -> Any:
    """Return records without the fields that Parquet cannot represent, and with maps as pairs."""
    if isinstance(value, list) and not pa.types.is_nested(type_):
        return value
    if value is None:
        return None
    if pa.types.is_struct(type_):
        if isinstance(value, list):
            return [_plain(v, type_) for v in value]
        return {f.name: _plain(value[f.name], f.type) for f in type_}
    if pa.types.is_map(type_):
        return [(pair["key"], pair["value"]) for pair in value]
    if pa.types.is_fixed_size_binary(type_) and not isinstance(value, bytes):
        return value.bytes
    return value


def version_4(
    io: FileIO,
    metadata_location: str,
    *,
    is_relative: bool = False,
    has_location: bool = True,
    upgraded_at: int = 0,
    rename_file: Rename | None = None,
) -> str:
    """Write a version 4 copy of a table's metadata beside it and return its location.

    The first `upgraded_at` snapshots keep their manifest lists and Avro manifests, as an upgrade
    leaves them. Data files stay where they are; `rename_file` can write wrong paths for them.
    """
    content = json.loads(io.read_bytes(metadata_location))
    location: str = content["location"]
    scheme = "" if ":" in location else "file:"

    def rename(path: str) -> str:
        if is_relative and path.startswith(f"{location}/"):
            return path.removeprefix(f"{location}/")
        return path if ":" in path else f"{scheme}{path}"

    manifests: dict[str, tuple[str, int]] = {}

    def manifest(path: str) -> tuple[str, int]:
        if path not in manifests:
            data = parquet_manifest(io.read_bytes(path), rename_file or rename)
            target = f"{path.removesuffix('.avro')}-{'r' if is_relative else 'a'}.parquet"
            _write(io, target, data)
            manifests[path] = rename(target), len(data)
        return manifests[path]

    content["format-version"] = 4
    for i, snapshot in enumerate(content["snapshots"]):
        if i < upgraded_at:
            snapshot["manifest-list"] = f"{scheme}{snapshot['manifest-list']}"
            continue
        reader = fastavro.reader(streams.BytesIO(io.read_bytes(snapshot["manifest-list"])))
        records: list[Any] = list(reader)
        for record in records:
            record["manifest_path"], record["manifest_length"] = manifest(record["manifest_path"])
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        out = streams.BytesIO()
        schema: Any = reader.writer_schema
        fastavro.writer(out, schema, records, metadata={**metadata, "format-version": "4"})
        target = f"{snapshot['manifest-list'].removesuffix('.avro')}-{i}.avro"
        target = target.replace("snap-", "snap-r-" if is_relative else "snap-a-")
        _write(io, target, out.getvalue())
        snapshot["manifest-list"] = rename(target)
    for statistics in (*content["statistics"], *content["partition-statistics"]):
        statistics["statistics-path"] = rename(statistics["statistics-path"])
    content["location"] = f"{scheme}{location}"
    if not has_location:
        del content["location"]
    target = f"{location}/metadata/00004-{upgraded_at}{is_relative}{has_location}.metadata.json"
    _write(io, target, json.dumps(content).encode())
    return f"{scheme}{target}"


def _write(io: FileIO, location: str, data: bytes) -> None:
    with io.open_output(location) as stream:
        stream.write(data)
