"""Avro files as fastavro reads them: independent evidence, without our own reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import fastavro

from iceberg_pyspark import Table


@dataclass(frozen=True)
class RawAvro:
    """An Avro file: the writer's schema, the key-value metadata of its header, and its records."""

    schema: Any
    metadata: dict[str, str]
    records: list[dict[str, Any]]


def read_raw(location: str) -> RawAvro:
    """Read a local Avro file."""
    with open(location.removeprefix("file:"), "rb") as file:
        reader = fastavro.reader(file)
        return RawAvro(
            schema=reader.writer_schema,
            metadata={k: v for k, v in reader.metadata.items() if k != "avro.schema"},
            records=[cast("dict[str, Any]", record) for record in reader],
        )


def raw_manifest_list(table: Table) -> RawAvro:
    """Read the manifest list of the current snapshot."""
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    return read_raw(snapshot.manifest_list)


def raw_manifests(table: Table) -> list[RawAvro]:
    """Read the manifests of the current snapshot, in the order of its manifest list."""
    return [read_raw(m["manifest_path"]) for m in raw_manifest_list(table).records]


def raw_data_files(table: Table) -> list[dict[str, Any]]:
    """Read the live data files of the current snapshot, sorted by location, with maps as dicts."""
    result = [
        {name: as_dict(value) for name, value in record["data_file"].items()}
        for manifest in raw_manifests(table)
        for record in manifest.records
        if record["status"] != 2
    ]
    return sorted(result, key=lambda f: str(f["file_path"]))


def as_dict(value: Any) -> Any:
    """Turn an array of key-value records, Avro's form of a map with field ids, into a dict."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "key" in value[0]:
        return {pair["key"]: pair["value"] for pair in value}
    return value
