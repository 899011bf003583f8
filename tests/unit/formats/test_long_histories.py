"""A long history is read like a short one: with the same metadata and the same errors."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.formats.long_histories import _Collector, metadata_with_long_history
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotLogEntry, SummaryText
from iceberg_pyspark.spec.table_metadata import (
    TableMetadata,
    metadata_from_bytes,
    metadata_to_bytes,
    metadata_to_json,
)
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.support.catalog_contract import first_metadata

WHERE = "there.metadata.json"


def history(snapshots: int, version: int = 3) -> TableMetadata:
    lineage: dict[str, Any] = {"first_row_id": 1, "added_rows": 2} if version >= 3 else {}
    all_snapshots = tuple(
        Snapshot(
            snapshot_id=n,
            parent_snapshot_id=n - 1 if n > 1 else None,
            sequence_number=n if version > 1 else 0,
            timestamp_ms=1_700_000_000_000 + n,
            manifest_list=f"/t/metadata/snap-{n}.avro",
            summary={"operation": "append", "total-records": str(n), "note": 'ü "x" \\ \n'},
            schema_id=0 if n % 2 else None,
            **lineage,
        )
        for n in range(1, snapshots + 1)
    )
    log = tuple(
        SnapshotLogEntry(snapshot_id=s.snapshot_id, timestamp_ms=s.timestamp_ms)
        for s in all_snapshots
    )
    metadata = first_metadata("/t", {"format-version": str(version)})
    return replace(
        metadata,
        table_uuid="b8e377c1-3491-4ed6-955e-34539e299fef",
        snapshots=all_snapshots,
        snapshot_log=log,
        last_sequence_number=snapshots + 1 if version > 1 else 0,
    )


def text(change: Callable[[dict[str, Any]], Any] = lambda _: None, version: int = 3) -> bytes:
    data = metadata_to_json(history(3, version))
    change(data)
    return json.dumps(data, ensure_ascii=False).encode()


def read(data: bytes) -> TableMetadata:
    return metadata_with_long_history(data, WHERE) or metadata_from_bytes(data, WHERE)


def is_text(metadata: TableMetadata) -> bool:
    return all(isinstance(s.summary, SummaryText) for s in metadata.snapshots)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_lazy_metadata_equals_parsed_metadata(version: int) -> None:
    data = text(version=version)
    metadata = read(data)
    assert is_text(metadata)
    assert metadata == metadata_from_bytes(data, WHERE) == history(3, version)
    assert metadata_to_json(metadata) == json.loads(data)
    # written again both before and after its parts were accessed
    untouched = read(data)
    for written in (metadata_to_bytes(untouched), metadata_to_bytes(metadata)):
        assert json.loads(written) == json.loads(data)
    assert pickle.loads(pickle.dumps(untouched)) == metadata


@pytest.mark.parametrize("version", [1, 2, 3])
def test_snapshots_are_written_as_they_were_read(version: int) -> None:
    data = text(version=version)
    assert b'{"snapshot-id": 1, "' in data  # this package writes no spaces
    assert b'{"snapshot-id": 1, "' in metadata_to_bytes(read(data))


def test_changed_snapshots_are_written_anew() -> None:
    metadata = read(text())
    changed = replace(metadata.snapshots[0], schema_id=7)
    written = metadata_to_bytes(replace(metadata, snapshots=(changed, *metadata.snapshots[1:])))
    assert json.loads(written)["snapshots"][0]["schema-id"] == 7


@pytest.mark.parametrize("given", [{"sequence-number": 0}, {"schema-id": None}])
def test_values_that_are_left_out_are_not_written_again(given: dict[str, Any]) -> None:
    metadata = read(text(lambda m: m["snapshots"][0].update(given), version=2))
    assert is_text(metadata)
    written = json.loads(metadata_to_bytes(metadata))["snapshots"][0]
    assert not given.keys() & written.keys()


def test_row_ids_of_a_table_without_them_are_not_kept() -> None:
    data = text(lambda m: m["snapshots"][0].update({"first-row-id": 7}), version=2)
    metadata = read(data)
    assert metadata.snapshots[0].first_row_id is None
    assert b"first-row-id" not in metadata_to_bytes(metadata)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["snapshots"][1].update({"new-key": [1]}),
        lambda m: m["snapshots"][1].pop("summary"),
        lambda m: m["snapshots"][1].update(summary=None),
        lambda m: m["snapshots"][1].update({"parent-snapshot-id": None, "key-id": None}),
        lambda m: m["snapshot-log"][0].update({"new-key": 1}),
        lambda m: m.pop("snapshot-log"),
        lambda m: m.update(snapshots=None),
        lambda m: m.update({"new-key": {"a": {}}}),
        lambda m: m["snapshots"][1].update(manifests=["/t/m.avro"]),
    ],
)
def test_unusual_history_is_read_and_kept(change: Callable[[dict[str, Any]], Any]) -> None:
    data = text(change)
    metadata = read(data)
    assert metadata_with_long_history(data, WHERE) in (None, metadata)
    expected = metadata_from_bytes(data, WHERE)
    assert metadata == expected
    assert json.loads(metadata_to_bytes(metadata)) == metadata_to_json(expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["snapshots"][1]["summary"].update(n=1),
        lambda m: m["snapshots"][1]["summary"].update(n="\ud800"),
        lambda m: m["snapshots"][1].update({"snapshot-id": 1}),
        lambda m: m["snapshots"][1].update({"snapshot-id": 2**63}),
        lambda m: m["snapshots"][1].update({"snapshot-id": "2"}),
        lambda m: m["snapshots"][1].update({"sequence-number": -1}),
        lambda m: m["snapshots"][1].pop("manifest-list"),
        lambda m: m["snapshots"][1].update({"manifest-list": "\udc00"}),
        lambda m: m["snapshots"].append("text"),
        lambda m: m["snapshot-log"].append({"snapshot-id": 1}),
        lambda m: m.update({"current-snapshot-id": 99}),
        lambda m: m.update({"format-version": 5}),
    ],
)
def test_errors_are_those_of_any_other_file(change: Callable[[dict[str, Any]], Any]) -> None:
    data = metadata_to_json(history(3))
    change(data)
    broken = json.dumps(data).encode()
    with pytest.raises(IcebergError) as expected:
        metadata_from_bytes(broken, WHERE)
    with pytest.raises(type(expected.value)) as actual:
        read(broken)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff\xfe", b"{", text()[:-1], text() + b"x"])
def test_invalid_metadata_raises_the_same_error(data: bytes) -> None:
    with pytest.raises(IcebergError) as expected:
        metadata_from_bytes(data, WHERE)
    with pytest.raises(type(expected.value)) as actual:
        read(data)
    assert str(actual.value) == str(expected.value)


def test_text_in_another_encoding_is_read() -> None:
    data = text().decode().encode("utf-16")
    assert read(data) == history(3)


def test_large_files_are_read_so(tmp_path: Path) -> None:
    long, short = history(2000), history(2)
    for name, metadata, expected in (("long", long, True), ("short", short, False)):
        file = tmp_path / f"{name}.metadata.json"
        file.write_bytes(metadata_to_bytes(metadata))
        table_metadata = read_table_metadata(LocalFileIO(), str(file))
        assert is_text(table_metadata) is expected
        assert table_metadata == metadata


def test_a_summary_is_asked_without_being_parsed() -> None:
    data = '{"a":"one","b":"\\u006fne","c":"\\ud83d\\ude00"}'
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=0, summary=SummaryText(data.encode()))
    assert snapshot.has_value("a", "one")
    assert snapshot.has_value("b", "one")
    assert snapshot.has_value("c", "\N{GRINNING FACE}")
    assert not snapshot.has_value("a", "two")
    assert not snapshot.has_value("d", "one")
    assert not Snapshot(snapshot_id=1, timestamp_ms=0, summary={"a": "b"}).has_value("a", "one")
    assert repr(snapshot.summary) == repr(dict(snapshot.summary))
    plain = SummaryText(b'{"a":"one"}')
    assert not plain.may_hold("two")
    assert len(plain) == 1


@pytest.mark.parametrize("data", [text(), b"not JSON"])
def test_cycles_are_collected_again_afterwards(data: bytes) -> None:
    metadata_with_long_history(data, WHERE)
    assert gc.isenabled()
    gc.disable()  # as the caller may have chosen
    try:
        metadata_with_long_history(data, WHERE)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_no_cycles_are_collected_while_one_of_two_threads_still_reads() -> None:
    collector = _Collector()
    with collector.pause():
        with collector.pause():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
