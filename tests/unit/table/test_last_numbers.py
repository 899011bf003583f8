"""Damaged metadata with the largest possible numbers: a commit is refused, the table stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from iceberg_pyspark.catalogs.memory import MemoryCatalog
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.table.table import Table
from tests.support.commit_tables import IDENTIFIER, commit_table

ROWS = pa.table({"id": pa.array([1], pa.int64()), "part": ["a"]})
_INT32, _INT64 = 2**31 - 1, 2**63 - 1


def _append(table: Table) -> None:
    table.append(ROWS)


def _add_column(table: Table) -> None:
    table.update_schema().add_column("new", "int").commit()


def _add_partition(table: Table) -> None:
    table.update_spec().add_field("id", "bucket[3]").commit()


def _last_schema(data: dict[str, Any]) -> None:
    data["schemas"][0]["schema-id"] = data["current-schema-id"] = _INT32


def _last_spec(data: dict[str, Any]) -> None:
    data["partition-specs"][0]["spec-id"] = data["default-spec-id"] = _INT32


@pytest.mark.parametrize(
    ("damage", "change", "message"),
    [
        (lambda data: data.update({"last-sequence-number": _INT64}), _append, "no sequence number"),
        (
            lambda data: data.update({"next-row-id": _INT64}),
            _append,
            "would reach 9223372036854775808",
        ),
        (lambda data: data.update({"last-column-id": _INT32}), _add_column, "field id 2147483648"),
        (
            lambda data: data.update({"last-partition-id": _INT32}),
            _add_partition,
            "last-partition-id would be",
        ),
        (_last_schema, _add_column, "schema-id would be 2147483648"),
        (_last_spec, _add_partition, "spec-id would be 2147483648"),
    ],
)
def test_a_commit_that_no_reader_could_load_is_refused(
    damage: Callable[[dict[str, Any]], object], change: Callable[[Table], None], message: str
) -> None:
    source = commit_table(format_version=3)
    data = json.loads(source.io.read_bytes(source.loaded.metadata_location))
    damage(data)
    source.io.write_bytes("mem://t/metadata/damaged.json", json.dumps(data).encode())
    catalog = MemoryCatalog("test", io=source.io)
    catalog.create_namespace(("db",))
    loaded = catalog.register_table(IDENTIFIER, "mem://t/metadata/damaged.json")
    table = Table(catalog, loaded, io=source.io)
    with pytest.raises(IcebergError, match=message):
        change(table)
    assert table.refresh().metadata == loaded.metadata
