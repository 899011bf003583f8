"""Manifest lists and manifests as a commit writes them: numbers, counts, summaries, row ids."""

from __future__ import annotations

import io as streams
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from iceberg_pyspark.errors import InvalidMetadataError, InvalidRequestError, StorageError
from iceberg_pyspark.formats.manifest_lists import (
    WrittenManifestList,
    _manifest_file_record,
    manifests_to_build_on,
    read_manifest_list,
    read_other_manifests,
    read_snapshot_manifests,
    write_manifest_list,
)
from iceberg_pyspark.formats.manifest_reader import read_manifest_header
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.spec.avro_schemas import manifest_file_schema
from iceberg_pyspark.spec.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionFieldSummary,
    summarise_partitions,
)
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.types import (
    DoubleType,
    FloatType,
    LongType,
    StringType,
    StructType,
    UUIDType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.manifests import (
    NO_COLUMNS,
    SEQUENCE_NUMBER,
    SNAPSHOT_ID,
    UNPARTITIONED,
    a_file,
    added,
    deleted,
    existing,
    identity_table,
    listed,
)

NO_PARTITION = StructType(())


def a_manifest(path: str = "m.avro", **values: Any) -> ManifestFile:
    return ManifestFile(
        **{
            "manifest_path": path,
            "manifest_length": 10,
            "partition_spec_id": 0,
            "sequence_number": UNASSIGNED_SEQUENCE_NUMBER,
            "min_sequence_number": UNASSIGNED_SEQUENCE_NUMBER,
            "added_snapshot_id": SNAPSHOT_ID,
            "added_files_count": 1,
            "existing_files_count": 0,
            "deleted_files_count": 0,
            "added_rows_count": 10,
            "existing_rows_count": 0,
            "deleted_rows_count": 0,
            "partitions": (),
            **values,
        }
    )


def write_list(
    io: MemoryFileIO, manifests: Sequence[ManifestFile], format_version: int = 3, **values: Any
) -> WrittenManifestList:
    options = {
        "snapshot_id": SNAPSHOT_ID,
        "parent_snapshot_id": 76,
        "sequence_number": SEQUENCE_NUMBER,
        "first_row_id": 1000 if format_version >= 3 else None,
    }
    return write_manifest_list(
        io, "snap.avro", manifests, format_version=format_version, **{**options, **values}
    )


def write_entries(
    io: MemoryFileIO, entries: Sequence[ManifestEntry], **values: Any
) -> ManifestFile:
    options: dict[str, Any] = {
        "spec": UNPARTITIONED,
        "schema": NO_COLUMNS,
        "partition_type": NO_PARTITION,
        "format_version": 2,
        "content": ManifestContent.DATA,
        "snapshot_id": SNAPSHOT_ID,
    }
    return write_manifest(io, "m.avro", entries, **{**options, **values})


def key_values(io: MemoryFileIO, location: str) -> dict[str, str]:
    with io.open_input(location) as stream:
        metadata = fastavro.reader(stream).metadata
    return {k: v for k, v in metadata.items() if not k.startswith("avro.")}


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_list_reads_back_as_it_was_assigned(format_version: int) -> None:
    """The next commit of the process uses the assigned manifests without reading the file."""
    io = MemoryFileIO()
    deletes = ManifestContent.DATA if format_version == 1 else ManifestContent.DELETES
    summary = PartitionFieldSummary(
        contains_null=True, contains_nan=False, lower_bound=b"\x01", upper_bound=b"\x02"
    )
    written = write_list(
        io,
        [
            a_manifest("a", partitions=(summary,), key_metadata=b"k"),
            a_manifest("b", content=deletes, partitions=None),
        ],
        format_version,
        sequence_number=0 if format_version == 1 else SEQUENCE_NUMBER,
    )
    assert read_manifest_list(io, "snap.avro") == list(written.manifests)
    snapshot = Snapshot(snapshot_id=SNAPSHOT_ID, timestamp_ms=0, manifest_list="snap.avro")
    assert manifests_to_build_on(io, snapshot) == list(written.manifests)
    io.delete("snap.avro")
    assert manifests_to_build_on(io, snapshot) == list(written.manifests)
    with pytest.raises(StorageError):
        manifests_to_build_on(MemoryFileIO(), snapshot)


def test_older_manifests_keep_their_numbers() -> None:
    """docs/conformance.md 8."""
    old = a_manifest(
        "old", sequence_number=2, min_sequence_number=1, added_snapshot_id=3, first_row_id=40
    )
    new = a_manifest("new")
    written = write_list(MemoryFileIO(), [old, new])
    assert written.manifests[0] == old
    assert written.manifests[1].sequence_number == SEQUENCE_NUMBER
    assert written.manifests[1].min_sequence_number == SEQUENCE_NUMBER


def test_row_ids_of_the_specification_example() -> None:
    """docs/conformance.md 16."""
    manifests = [
        a_manifest("existing", sequence_number=1, added_snapshot_id=3, first_row_id=925),
        a_manifest("added1", added_rows_count=100, existing_rows_count=25),
        a_manifest("added2", added_rows_count=0, existing_rows_count=100),
        a_manifest("added3", added_rows_count=125, existing_rows_count=25),
    ]
    written = write_list(MemoryFileIO(), manifests)
    assert [m.first_row_id for m in written.manifests] == [925, 1000, 1125, 1225]
    assert (written.next_row_id, written.added_rows) == (1375, 375)


def test_delete_manifests_get_no_row_id() -> None:
    """docs/conformance.md 17."""
    io = MemoryFileIO()
    delete = a_manifest("d", content=ManifestContent.DELETES, added_rows_count=7)
    written = write_list(io, [delete, a_manifest("a")])
    assert [m.first_row_id for m in written.manifests] == [None, 1000]
    assert key_values(io, "snap.avro")["first-row-id"] == "1000"


def test_data_manifests_from_before_v3_get_row_ids() -> None:
    """docs/conformance.md 18."""
    old = a_manifest("old", sequence_number=1, added_snapshot_id=3, existing_rows_count=5)
    written = write_list(MemoryFileIO(), [old], first_row_id=0)
    assert written.manifests[0].first_row_id == 0
    assert written.next_row_id == 15


def test_before_v3_nothing_is_assigned() -> None:
    written = write_list(MemoryFileIO(), [a_manifest("a")], format_version=2)
    assert written.manifests[0].first_row_id is None
    assert (written.next_row_id, written.added_rows) == (None, None)


def test_a_retry_changes_the_list_only() -> None:
    """docs/conformance.md 7."""
    io = MemoryFileIO()
    manifest = write_entries(io, [added(a_file())])
    before = io.read_bytes("m.avro")
    first = write_manifest_list(
        io,
        "snap-1.avro",
        [manifest],
        format_version=3,
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=1,
        sequence_number=5,
        first_row_id=0,
    )
    second = write_manifest_list(
        io,
        "snap-2.avro",
        [manifest],
        format_version=3,
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=2,
        sequence_number=6,
        first_row_id=50,
    )
    assert io.read_bytes("m.avro") == before
    assert [first.manifests[0].sequence_number, second.manifests[0].sequence_number] == [5, 6]
    assert [first.manifests[0].first_row_id, second.manifests[0].first_row_id] == [0, 50]


def test_a_manifest_of_another_commit_without_number_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="written for snapshot 3"):
        write_list(MemoryFileIO(), [a_manifest("a", added_snapshot_id=3)])


def test_v3_needs_a_first_row_id() -> None:
    with pytest.raises(InvalidRequestError, match="first row id"):
        write_list(MemoryFileIO(), [], first_row_id=None)


def test_a_v1_list_holds_no_deletes() -> None:
    delete = a_manifest("d", content=ManifestContent.DELETES)
    with pytest.raises(InvalidRequestError, match="v1 table cannot list the deletes of d"):
        write_list(MemoryFileIO(), [delete], format_version=1)


def test_key_values_of_a_list() -> None:
    io = MemoryFileIO()
    write_list(io, [], format_version=2, parent_snapshot_id=None)
    assert key_values(io, "snap.avro") == {
        "snapshot-id": str(SNAPSHOT_ID),
        "parent-snapshot-id": "null",
        "sequence-number": str(SEQUENCE_NUMBER),
        "format-version": "2",
    }


def test_v1_lists_have_no_numbers_and_may_have_no_counts() -> None:
    """docs/conformance.md 9."""
    io = MemoryFileIO()
    written = write_list(
        io,
        [a_manifest("a", sequence_number=0, added_files_count=None, existing_files_count=None)],
        format_version=1,
    )
    (read,) = read_manifest_list(io, "snap.avro")
    assert (read.sequence_number, read.min_sequence_number) == (0, 0)
    assert read.content is ManifestContent.DATA
    assert read.added_files_count is None
    assert read.has_live_files
    assert written.manifests[0].has_live_files


def test_counts_v1_left_out_are_counted_when_v2_lists_the_manifest() -> None:
    io = MemoryFileIO()
    entries = [added(a_file("a")), existing(a_file("b")), deleted(a_file("c"))]
    manifest = write_entries(io, [*entries, added(a_file("d"))], format_version=1)
    uncounted = replace(manifest, added_files_count=None, added_rows_count=None)
    written = write_list(io, [uncounted], format_version=2)
    assert written.manifests[0] == manifest
    assert manifest.added_files_count == 2
    assert manifest.added_rows_count == 20


def test_counts_and_the_least_sequence_number_of_live_files() -> None:
    manifest = write_entries(
        MemoryFileIO(),
        [
            added(a_file("a", record_count=1)),
            existing(a_file("b", record_count=2), sequence_number=4),
            existing(a_file("c", record_count=3), sequence_number=3),
            deleted(a_file("d", record_count=4), sequence_number=1),
        ],
    )
    assert (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    ) == (1, 2, 1)
    assert (
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    ) == (1, 5, 4)
    assert manifest.min_sequence_number == 3
    assert manifest.sequence_number == UNASSIGNED_SEQUENCE_NUMBER


def test_key_values_of_a_manifest() -> None:
    """docs/conformance.md 12."""
    io = MemoryFileIO()
    schema, spec = identity_table(LongType())
    write_entries(
        io,
        [],
        schema=replace(schema, schema_id=4),
        spec=spec,
        partition_type=partition_type(spec, [schema]),
        content=ManifestContent.DELETES,
    )
    metadata = key_values(io, "m.avro")
    assert set(metadata) == {
        "schema",
        "schema-id",
        "partition-spec",
        "partition-spec-id",
        "format-version",
        "content",
    }
    assert (metadata["schema-id"], metadata["content"], metadata["format-version"]) == (
        "4",
        "deletes",
        "2",
    )
    assert metadata["partition-spec"].startswith("[{")


def test_a_manifest_tells_its_own_schema_and_spec() -> None:
    """docs/conformance.md 10."""
    io = MemoryFileIO()
    schema, spec = identity_table(LongType(), StringType(), spec_id=6)
    write_entries(io, [], schema=schema, spec=spec, partition_type=partition_type(spec, [schema]))
    header = read_manifest_header(io, "m.avro")
    assert (header.schema, header.spec, header.format_version) == (schema, spec, 2)
    assert header.content is ManifestContent.DATA


@pytest.mark.parametrize("entry", [existing(a_file()), deleted(a_file())])
def test_entries_of_older_snapshots_must_bring_their_numbers(
    entry: ManifestEntry,
) -> None:
    """docs/conformance.md 4."""
    with pytest.raises(InvalidRequestError, match="must bring its snapshot id"):
        write_entries(MemoryFileIO(), [replace(entry, sequence_number=None)])


def test_a_manifest_holds_one_content_and_one_spec() -> None:
    delete = a_file("d", content=FileContent.EQUALITY_DELETES)
    with pytest.raises(InvalidRequestError, match="d does not belong in a manifest of data"):
        write_entries(MemoryFileIO(), [added(delete)])
    with pytest.raises(InvalidRequestError, match="partition spec 3"):
        write_entries(MemoryFileIO(), [added(a_file(spec_id=3))])
    with pytest.raises(InvalidRequestError, match="v1 table cannot hold delete files"):
        write_entries(
            MemoryFileIO(), [added(delete)], content=ManifestContent.DELETES, format_version=1
        )


def test_a_v1_snapshot_may_list_its_manifests_itself() -> None:
    """docs/conformance.md 86."""
    io = MemoryFileIO()
    write_entries(io, [added(a_file())], format_version=1)
    snapshot = Snapshot(snapshot_id=3, timestamp_ms=0, manifests=("m.avro",))
    (manifest,) = read_snapshot_manifests(io, snapshot)
    assert manifest.manifest_length == io.size("m.avro")
    assert manifest.added_snapshot_id == 3
    assert manifest.has_live_files


def test_an_empty_list_of_a_snapshot_with_files_is_damage() -> None:
    io = MemoryFileIO()
    write_list(io, [a_manifest()], format_version=2)
    whole = io.read_bytes("snap.avro")
    sync = whole[-16:]
    io.write_bytes("snap.avro", whole[: whole.index(sync) + 16])
    summary = {"operation": "append", "total-data-files": "3"}
    snapshot = Snapshot(snapshot_id=3, timestamp_ms=0, manifest_list="snap.avro", summary=summary)
    with pytest.raises(InvalidMetadataError, match=r"snap\.avro.*3 data files"):
        read_snapshot_manifests(io, snapshot)
    with pytest.raises(InvalidMetadataError, match=r"snap\.avro.*3 data files"):
        read_other_manifests(io, snapshot, {})
    empty = replace(snapshot, summary={"operation": "delete", "total-data-files": "0"})
    assert read_snapshot_manifests(io, empty) == []
    assert read_other_manifests(io, empty, {}) == []


def test_manifests_that_are_known_are_left_out() -> None:
    """A known manifest is read again if it has dead positions, which may be live here."""
    io = MemoryFileIO()
    written = write_list(
        io,
        [
            a_manifest("a.avro"),
            a_manifest("b.avro", content=ManifestContent.DELETES),
            a_manifest("c.avro", partition_spec_id=1),
        ],
    )
    summary = {"operation": "append", "total-data-files": "3"}
    snapshot = Snapshot(snapshot_id=3, timestamp_ms=0, manifest_list="snap.avro", summary=summary)
    first, second, third = written.manifests
    manifest_by_part = {first.part: first, second.part: second, ("c.avro", third.content, 0): third}
    assert read_other_manifests(io, snapshot, manifest_by_part) == [third]
    with_dead = {**manifest_by_part, first.part: replace(first, dead_positions=b"x")}
    assert read_other_manifests(io, snapshot, with_dead) == [first, third]
    everything = {m.part: m for m in written.manifests}
    assert read_other_manifests(io, snapshot, everything) == []
    assert read_other_manifests(io, snapshot, {}) == list(written.manifests)


def test_a_list_without_required_fields_is_damage() -> None:
    io = MemoryFileIO()
    manifest = listed(io, [added(a_file())])
    with pytest.raises(InvalidMetadataError, match=manifest.manifest_path):
        read_manifest_list(io, manifest.manifest_path)


def summary_of(type_: Any, *values: Any) -> PartitionFieldSummary:
    schema, spec = identity_table(type_)
    partitions = [(v,) for v in values]
    summaries = summarise_partitions(partition_type(spec, [schema]), partitions)
    assert summaries is not None
    return summaries[0]


def test_summaries_of_zeros_keep_their_sign() -> None:
    """docs/conformance.md 43."""
    for values in ([0.0, -0.0], [-0.0, 0.0]):
        summary = summary_of(DoubleType(), *values)
        assert summary.lower_bound == struct.pack("<d", -0.0)
        assert summary.upper_bound == struct.pack("<d", 0.0)
    assert summary_of(FloatType(), 0.0, 1.0).lower_bound == struct.pack("<f", 0.0)
    assert summary_of(FloatType(), -1.0, -0.0).upper_bound == struct.pack("<f", -0.0)


def test_uuids_that_java_orders_otherwise_are_not_summarised() -> None:
    schema, spec = identity_table(UUIDType())
    type_ = partition_type(spec, [schema])
    low, middle, high = bytes(16), b"\x80" + bytes(15), b"\xff" * 16
    # Without bounds, a summary would mean that there are only nulls.
    assert summarise_partitions(type_, [(low,), (None,), (high,)]) is None
    summary = summary_of(UUIDType(), high, middle)
    assert (summary.lower_bound, summary.upper_bound) == (middle, high)
    io = MemoryFileIO()
    files = [replace(a_file(), file_path=f"mem/{v.hex()}", partition=(v,)) for v in (low, high)]
    written = write_manifest(
        io,
        "mem/m0.avro",
        [added(f) for f in files],
        spec=spec,
        schema=schema,
        partition_type=type_,
        format_version=2,
        content=ManifestContent.DATA,
        snapshot_id=1,
        codec="gzip",
    )
    assert written.partitions is None


def test_summaries_of_nulls_and_nans() -> None:
    """docs/conformance.md 47."""
    nan = summary_of(DoubleType(), math.nan, math.nan)
    assert nan == PartitionFieldSummary(contains_null=False, contains_nan=True)
    null = summary_of(LongType(), None)
    assert null == PartitionFieldSummary(contains_null=True, contains_nan=False)
    mixed = summary_of(DoubleType(), None, math.nan, 2.0)
    assert (mixed.contains_null, mixed.contains_nan) == (True, True)
    assert mixed.lower_bound == mixed.upper_bound == struct.pack("<d", 2.0)


def test_summaries_are_not_truncated() -> None:
    text = "x" * 40
    assert summary_of(StringType(), text, "a").upper_bound == text.encode()


@pytest.mark.parametrize(
    ("name", "avro_type", "value", "message"),
    [
        ("manifest_path", "bytes", b"a", "field 500 is bytes, not str"),
        ("manifest_length", "string", "10", "field 501 is not an integer of 64 bits"),
        ("partition_spec_id", "long", 2**40, "field 502 is not an integer of 32 bits"),
        ("added_files_count", "long", 2**40, "field 504 is not an integer of 32 bits"),
        ("content", "int", 9, "9 is not a valid ManifestContent"),
        ("manifest_path", None, None, "field 500 is required"),
    ],
)
def test_a_list_of_other_types_is_damage(
    name: str, avro_type: str | None, value: Any, message: str
) -> None:
    schema: dict[str, Any] = dict(manifest_file_schema(2))
    record = {**_manifest_file_record(a_manifest(), "snap.avro", 2), name: value}
    schema["fields"] = [
        {**f, "type": avro_type} if f["name"] == name and avro_type else f
        for f in schema["fields"]
        if f["name"] != name or avro_type
    ]
    out = streams.BytesIO()
    fastavro.writer(out, schema, [record])
    io = MemoryFileIO()
    io.write_bytes("snap.avro", out.getvalue())
    with pytest.raises(InvalidMetadataError, match=f"snap.avro: damaged Avro file: {message}"):
        read_manifest_list(io, "snap.avro")
