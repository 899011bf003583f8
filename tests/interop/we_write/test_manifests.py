"""Our manifests and manifest lists, as Avro files, equal those that Java writes for the same table.

Field ids, names, order, types, required flags and the header's key-values are compared with a table
that Java wrote; fastavro reads both.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import VERSIONS, new_table
from tests.support.raw_avro import RawAvro, raw_manifest_list, raw_manifests
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

COLUMNS = {
    "id": pa.int64(),
    "a b.c": pa.string(),
    "1st": pa.decimal128(9, 2),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "u": pa.binary(16),
    "f": pa.float64(),
}
SPECS = {
    "none": [],
    "one": ["days(at)"],
    "many": [
        "`a b.c`",
        "truncate(2, `a b.c`)",
        "`1st`",
        "truncate(50, `1st`)",
        "day",
        "years(day)",
        "hours(at)",
        "bucket(4, u)",
        "f",
        "void(id)",
    ],
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("spec", SPECS)
def test_schemas_and_key_values(oracle: Oracle, java: JavaTables, spec: str, version: int) -> None:
    name = f"java_sql.we_write_manifests.{spec}_{version}"
    rows = pa.table({c: pa.array([None], type_) for c, type_ in COLUMNS.items()})
    table = new_table(
        oracle,
        name,
        rows.schema,
        partitioned_by=SPECS[spec],
        properties={"format-version": str(version)},
    )
    table.append(rows)
    java.create(f"{name}_twin", like=name)
    java.copy(name, f"{name}_twin")
    twin = our_table(oracle, f"{name}_twin")

    ours, javas = raw_manifest_list(table), raw_manifest_list(twin)
    assert without_docs(ours.schema) == without_docs(javas.schema)
    assert key_values(ours) == key_values(javas)
    [our_entry], [java_entry] = ours.records, javas.records
    differing = ("manifest_path", "manifest_length", "added_snapshot_id")
    assert {k: v for k, v in our_entry.items() if k not in differing} == {
        k: v for k, v in java_entry.items() if k not in differing
    }

    [ours], [javas] = raw_manifests(table), raw_manifests(twin)
    expected = without_docs(javas.schema)
    expected_values = key_values(javas)
    # The specification requires schema-id since version 2; Java omits it.
    expected_values["schema-id"] = 0
    if version == 1:
        # The specification requires snapshot_id in version 1; Java always lets it be inherited.
        expected["fields"][1] = {"name": "snapshot_id", "type": "long", "field-id": 1}
        expected_values["content"] = "data"
    assert without_docs(ours.schema) == expected
    assert key_values(ours) == expected_values


def without_docs(value: Any) -> Any:
    match value:
        case dict():
            return {k: without_docs(v) for k, v in value.items() if k != "doc"}
        case list():
            return [without_docs(item) for item in value]
    return value


def key_values(file: RawAvro) -> dict[str, Any]:
    # These differ between files, or describe Java's own record schema.
    own = ("snapshot-id", "parent-snapshot-id", "iceberg.schema")
    return {k: parsed(v) for k, v in file.metadata.items() if k not in own}


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("version", VERSIONS)
def test_snapshot_and_parent_are_in_the_header_of_the_list(oracle: Oracle, version: int) -> None:
    name = f"java_sql.we_write_manifests.parents_{version}"
    table = new_table(oracle, name, "id BIGINT", properties={"format-version": str(version)})
    table.append(pa.table({"id": [1]}))
    [first] = table.snapshots
    values = raw_manifest_list(table).metadata
    assert values["snapshot-id"] == str(first.snapshot_id)
    assert values["parent-snapshot-id"] == "null"
    table.append(pa.table({"id": [2]}))
    assert raw_manifest_list(table).metadata["parent-snapshot-id"] == str(first.snapshot_id)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_every_codec(oracle: Oracle, java: JavaTables, codec: str) -> None:
    name = f"java_sql.we_write_manifests.codec_{codec}"
    table = new_table(
        oracle, name, "id BIGINT", properties={"write.manifest.compression-codec": codec}
    )
    table.append(pa.table({"id": [1, 2]}))
    assert java.rows(name) == ["{1}", "{2}"]
    java.create(f"{name}_twin", like=name)
    java.copy(name, f"{name}_twin")
    twin = our_table(oracle, f"{name}_twin")
    ours, javas = raw_manifests(table)[0].metadata, raw_manifests(twin)[0].metadata
    assert ours["avro.codec"] == javas["avro.codec"]
