"""`Table.verify()`: intact tables have no findings, and each broken rule is named."""

from __future__ import annotations

import math
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from struct import Struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.errors import StorageError
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests, write_manifest_list
from iceberg_pyspark.formats.manifest_reader import read_manifest_entries
from iceberg_pyspark.formats.manifest_writer import write_manifest
from iceberg_pyspark.spec.manifests import (
    FileContent,
    ManifestContent,
    ManifestFile,
    PartitionFieldSummary,
)
from iceberg_pyspark.spec.partitioning import partition_type
from iceberg_pyspark.spec.snapshots import SnapshotLogEntry, SnapshotRef
from iceberg_pyspark.spec.statistics import StatisticsFile
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.types import NestedField, UnknownType
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.table.verify import metadata_rules
from iceberg_pyspark.table.verify.findings import Finding, TableVerification
from iceberg_pyspark.table.verify.rules import RULES_OF_ROOT_MANIFESTS, RULES_OF_TABLES
from iceberg_pyspark.table.verify.verification import verify_table
from tests.support.deleted_rows import delete_positions, list_positions
from tests.support.frames import append_rows, create_path_table, path_table
from tests.support.hooked_storage import HookedFileIO
from tests.support.parameters import cases
from tests.support.table_histories import a_history
from tests.unit.table.verify.test_verify_entries import BREAKS

PROGRAM = """
import sys
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.table import Table
from tests.support.peak_memory import peak_bytes
from tests.support.commit_tables import commit_table, data_file

count, at_once = int(sys.argv[1]), 10_000
t = commit_table(partitioned=True)
for start in range(0, count, at_once):
    files = tuple(
        data_file(f"part={i % 100}/{i}-1b4e28ba-2fa1-11d2.parquet", str(i % 100))
        for i in range(start, start + at_once)
    )
    commit_action(t.catalog, t.loaded, t.io, AppendFiles(data_files=files, merge=False))
assert Table(t.catalog, t.loaded, io=t.io).verify().ok
print(peak_bytes())
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("verify")
    return load_catalog("verify", type="hadoop", warehouse=str(folder))


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_tables_are_sound(catalog: TableCatalog, data: st.DataObject) -> None:
    table = a_history(data.draw, catalog).table.refresh()
    actual = table.verify(check_files=True)
    assert actual.findings == ()
    assert actual.snapshots == len(table.snapshots)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tables_are_sound_after_every_change(tmp_path: Path, version: int) -> None:
    table = create_path_table(
        tmp_path / "t",
        "id BIGINT, p STRING",
        partitioned_by=["p"],
        properties={"format-version": str(version), "commit.manifest.min-count-to-merge": "3"},
    )
    for number in range(5):
        append_rows(table, [{"id": 2 * number + i, "p": f"p{i}"} for i in range(2)])
    table.manage_snapshots().create_branch("audit").commit()
    append_rows(table, [{"id": 100, "p": "p0"}], branch="audit")
    append_rows(table, [{"id": 101, "p": "p1"}])
    table.manage_snapshots().cherry_pick(table.refs["audit"].snapshot_id).commit()
    table.delete("p = 'p1' AND id = 3")
    (task, *_) = table.scan(filter="id = 4").plan_files()
    options = {"partition": task.partition}
    if version == 2:
        rows = pa.table({"file_path": [task.file_path], "pos": pa.array([0], pa.int64())})
        list_positions(table, rows, {}, **options)
    elif version == 3:
        delete_positions(table, {task.file_path: [0]}, **options)
    assert table.verify(check_files=True).findings == ()
    maintenance = table.maintenance()
    maintenance.rewrite_data_files(options={"rewrite-all": True})
    maintenance.rewrite_manifests()
    if version > 1:
        maintenance.rewrite_position_delete_files(options={"rewrite-all": True})
    table.overwrite(table.scan(filter="p = 'p0'").to_arrow(), "p = 'p0'")
    assert table.verify(check_files=True).findings == ()
    maintenance.expire_snapshots(older_than=table.refresh().snapshots[-1].timestamp_ms + 1)
    actual = table.refresh().verify(check_files=True)
    assert actual.findings == ()
    assert actual.snapshots == len(table.snapshots) < 10


def test_a_table_without_snapshots_is_sound(tmp_path: Path) -> None:
    assert create_path_table(tmp_path / "t", "id BIGINT").verify().ok


# --- each rule ------------------------------------------------------------------------------------


def a_table(folder: Path, *partitioned_by: str) -> Table:
    """Create a table of two files, with a deletion vector of the first, in three snapshots."""
    table = create_path_table(
        folder,
        "id BIGINT, p DOUBLE",
        partitioned_by=partitioned_by,
        properties={"format-version": "3"},
    )
    append_rows(table, [{"id": 1, "p": 1.5}, {"id": 2, "p": 1.5}])
    append_rows(table, [{"id": 3, "p": 2.5}])
    (task, *_) = table.scan(filter="id = 1").plan_files()
    delete_positions(table, {task.file_path: [0]}, partition=task.partition)
    return path_table(folder)


Change = Callable[[TableMetadata], TableMetadata]


def last_snapshot(**values: Any) -> Change:
    """Return a change of the newest snapshot's fields."""

    def change(metadata: TableMetadata) -> TableMetadata:
        *others, last = metadata.snapshots
        return replace(metadata, snapshots=(*others, replace(last, **values)))

    return change


def last_manifest(content: ManifestContent, **values: Any) -> Change:
    """Return a change of the last manifest of this content in the newest manifest list."""

    def of(manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
        target = [m for m in manifests if m.content is content][-1]
        return [replace(m, **values) if m == target else m for m in manifests]

    return listed_otherwise(of)


def listed_otherwise(of: Callable[[Sequence[ManifestFile]], Sequence[ManifestFile]]) -> Change:
    """Return a change that gives the newest snapshot another manifest list."""

    def change(metadata: TableMetadata) -> TableMetadata:
        io, last = LocalFileIO(), metadata.snapshots[-1]
        location = f"{metadata.location}/metadata/snap-{uuid.uuid4()}.avro"
        write_manifest_list(
            io,
            location,
            of(read_snapshot_manifests(io, last)),
            format_version=3,
            snapshot_id=last.snapshot_id,
            parent_snapshot_id=last.parent_snapshot_id,
            sequence_number=last.sequence_number,
            first_row_id=metadata.next_row_id,
        )
        return last_snapshot(manifest_list=location)(metadata)

    return change


def last_entries(of_content: ManifestContent, **values: Any) -> Change:
    """Return a change of all files' entries in the last manifest of this content."""

    def change(metadata: TableMetadata) -> TableMetadata:
        def of(manifests: Sequence[ManifestFile]) -> list[ManifestFile]:
            target = [m for m in manifests if m.content is of_content][-1]
            io, spec = LocalFileIO(), metadata.spec_by_id[target.partition_spec_id]
            type_ = partition_type(spec, metadata.schemas)
            entries = [
                replace(e, data_file=replace(e.data_file, **values))
                for e in read_manifest_entries(io, target, type_)
            ]
            written = write_manifest(
                io,
                f"{metadata.location}/metadata/{uuid.uuid4()}-m0.avro",
                entries,
                spec=spec,
                schema=metadata.current_schema,
                partition_type=type_,
                format_version=3,
                content=of_content,
                snapshot_id=target.added_snapshot_id or 0,
            )
            written = replace(
                written,
                sequence_number=target.sequence_number,
                min_sequence_number=target.min_sequence_number,
                first_row_id=target.first_row_id,
            )
            return [written if m == target else m for m in manifests]

        return listed_otherwise(of)(metadata)

    return change


def statistics_of(*snapshot_ids: int) -> Change:
    """Return a change that adds statistics, whose files are not there."""
    files = tuple(
        StatisticsFile(
            snapshot_id=i,
            statistics_path="/nowhere/s.puffin",
            file_size_in_bytes=1,
            file_footer_size_in_bytes=1,
        )
        for i in snapshot_ids
    )
    return lambda m: replace(m, statistics=files)


def current_statistics_twice(metadata: TableMetadata) -> TableMetadata:
    return statistics_of(*[metadata.snapshots[-1].snapshot_id] * 2)(metadata)


def row_ids_of_deletes(metadata: TableMetadata) -> TableMetadata:
    location = str(metadata.snapshots[-1].manifest_list)
    with Path(location).open("rb") as file:
        reader: Any = fastavro.reader(file)
        records = [{**r, "first_row_id": 0} if r["content"] == 1 else r for r in reader]
    with Path(f"{location}-otherwise").open("wb") as file:
        fastavro.writer(file, reader.writer_schema, records, metadata=reader.metadata)
    return last_snapshot(manifest_list=f"{location}-otherwise")(metadata)


def summary_with(**totals: str) -> Change:
    return lambda m: last_snapshot(
        summary={
            **m.snapshots[-1].summary,
            **{k.replace("_", "-"): v for k, v in totals.items()},
        }
    )(m)


def with_a_key_id(metadata: TableMetadata) -> TableMetadata:
    return replace(metadata, properties={**metadata.properties, "encryption.key-id": "k"})


def beside_a_root(metadata: TableMetadata) -> TableMetadata:
    return last_snapshot(root_manifest=f"{metadata.location}/metadata/r.parquet")(metadata)


def twice(metadata: TableMetadata) -> TableMetadata:
    return replace(metadata, snapshots=(*metadata.snapshots, metadata.snapshots[-1]))


def last_schema(**values: Any) -> Change:
    return lambda m: replace(m, schemas=(*m.schemas[:-1], replace(m.schemas[-1], **values)))


def refs(**values: dict[str, Any]) -> Change:
    """Return a change that adds refs of the current snapshot."""

    def change(metadata: TableMetadata) -> TableMetadata:
        current = metadata.snapshots[-1].snapshot_id
        new = {name: SnapshotRef(snapshot_id=current, **v) for name, v in values.items()}
        return replace(metadata, refs={**metadata.refs, **new})

    return change


def backwards(log: Sequence[SnapshotLogEntry]) -> tuple[SnapshotLogEntry, ...]:
    first, *others = log
    return replace(first, timestamp_ms=first.timestamp_ms + 70_000), *others


def summaries(**values: Any) -> Change:
    """Return a change of the summary of the partition field in the last manifest of data."""
    bounds = {"lower_bound": DOUBLE(2.5), "upper_bound": DOUBLE(2.5), **values}
    return last_manifest(
        DATA,
        partitions=(PartitionFieldSummary(contains_null=False, contains_nan=False, **bounds),),
    )


DATA, DELETES = ManifestContent
UNKNOWN = (NestedField(field_id=1, name="id", type=UnknownType(), required=True),)
TAG = {"type": "tag", "max_snapshot_age_ms": 5}
OF_MAIN = {"max_ref_age_ms": 5}
LONG, DOUBLE = Struct("<q").pack, Struct("<d").pack
AN_EQUALITY_DELETE: dict[str, Any] = {
    "content": FileContent.EQUALITY_DELETES,
    "file_format": "parquet",
    "content_offset": None,
    "content_size_in_bytes": None,
    "referenced_data_file": None,
}
TABLE_BREAKS: list[tuple[str, Change]] = [
    ("known-snapshot", lambda m: replace(m, refs={**m.refs, "x": SnapshotRef(snapshot_id=9)})),
    ("known-snapshot", lambda m: replace(m, current_snapshot_id=9)),
    (
        "known-snapshot",
        lambda m: replace(m, snapshot_log=(SnapshotLogEntry(snapshot_id=9, timestamp_ms=1),)),
    ),
    ("unique-snapshot-id", twice),
    ("known-schema", last_snapshot(schema_id=9)),
    ("known-partition-spec", last_manifest(DATA, partition_spec_id=9)),
    ("snapshot-sequence-number", lambda m: replace(m, last_sequence_number=2)),
    ("snapshot-sequence-number", last_snapshot(sequence_number=2)),
    ("snapshot-row-ids", last_snapshot(first_row_id=1)),
    ("snapshot-row-ids", last_snapshot(added_rows=1)),
    ("root-manifest-xor-manifest-list", beside_a_root),
    ("file-length", last_manifest(DATA, manifest_length=7)),
    ("manifest-counts", last_manifest(DATA, added_files_count=2)),
    ("manifest-counts", last_manifest(DATA, added_rows_count=5)),
    ("manifest-counts", last_manifest(DATA, existing_files_count=1)),
    ("sequence-number-range", last_manifest(DELETES, sequence_number=4)),
    ("sequence-number-range", last_manifest(DATA, min_sequence_number=3)),
    ("one-entry-per-file", listed_otherwise(lambda ms: [*ms, ms[-1]])),
    ("vector-applies", last_manifest(DELETES, sequence_number=0, min_sequence_number=0)),
    ("row-ids", last_manifest(DATA, first_row_id=1)),
    ("row-ids", last_manifest(DATA, first_row_id=7)),
    ("valid-schema", last_schema(identifier_field_ids=(1,))),
    ("valid-schema", last_schema(fields=UNKNOWN)),
    ("retention-of-refs", refs(x=TAG)),
    ("retention-of-refs", refs(main=OF_MAIN)),
    ("history-order", lambda m: replace(m, last_updated_ms=m.last_updated_ms - 70_000)),
    ("history-order", lambda m: replace(m, snapshot_log=backwards(m.snapshot_log))),
    ("statistics-of-snapshot", statistics_of(7)),
    ("statistics-of-snapshot", current_statistics_twice),
    ("encrypted", with_a_key_id),
    ("summary-totals", summary_with(total_records="4")),
    ("summary-totals", summary_with(total_data_files="1")),
    ("summary-totals", summary_with(total_delete_files="0", total_position_deletes="0")),
    ("vector-of-live-file", last_entries(DELETES, referenced_data_file="/gone")),
    ("vector-iff-type", last_entries(DELETES, referenced_data_file=None)),
    ("vector-iff-type", last_entries(DATA, content_offset=4)),
    ("vector-iff-type", last_entries(DATA, file_format="puffin")),
    ("equality-ids-iff-equality-deletes", last_entries(DATA, equality_ids=(1,))),
    (
        "equality-ids-iff-equality-deletes",
        last_entries(DELETES, equality_ids=(9,), **AN_EQUALITY_DELETE),
    ),
    ("equality-ids-iff-equality-deletes", last_entries(DELETES, **AN_EQUALITY_DELETE)),
    ("column-metrics", last_entries(DATA, value_counts={1: -1})),
    ("column-metrics", last_entries(DATA, value_counts={2: 1}, null_value_counts={2: 2})),
    (
        "column-metrics",
        last_entries(DATA, lower_bounds={1: LONG(5)}, upper_bounds={1: LONG(4)}),
    ),
    ("first-row-id-of-data", row_ids_of_deletes),
]
PARTITION_BREAKS: list[tuple[str, Change]] = [
    ("partition-summaries", summaries(lower_bound=DOUBLE(2.6))),
    ("partition-summaries", summaries(upper_bound=DOUBLE(2.4))),
    ("partition-summaries", summaries(upper_bound=b"123")),
    ("partition-summaries", summaries(lower_bound=None, upper_bound=None)),
    ("partition-summaries", last_manifest(DATA, partitions=())),
    ("vector-partition", last_entries(DELETES, partition=(2.5,))),
    ("vector-partition", last_entries(DELETES, partition=(None,))),
]
ALSO = {
    "unique-snapshot-id": {"snapshot-sequence-number"},
    # A missing root manifest cannot be read.
    "root-manifest-xor-manifest-list": {"file-exists"},
    "snapshot-sequence-number": {"sequence-number-range"},
    "one-entry-per-file": {"summary-totals"},
    "statistics-of-snapshot": {"file-exists"},
    "equality-ids-iff-equality-deletes": {"summary-totals"},
    "vector-iff-type": {"readable", "vector-of-live-file"},
}


@pytest.mark.parametrize(("rule", "change"), TABLE_BREAKS, ids=[rule for rule, _ in TABLE_BREAKS])
def test_a_rule_that_is_broken_is_named(tmp_path: Path, rule: str, change: Change) -> None:
    table = a_table(tmp_path / "t")
    assert table.verify(check_files=True).findings == ()
    actual = verified(table, change(table.metadata))
    assert rule in rules_of(actual), repr(actual)
    assert rules_of(actual) <= {rule, *ALSO.get(rule, ())}, repr(actual)


@pytest.mark.parametrize(
    ("rule", "change"), PARTITION_BREAKS, ids=[rule for rule, _ in PARTITION_BREAKS]
)
def test_a_rule_of_partitions_that_is_broken_is_named(
    tmp_path: Path, rule: str, change: Change
) -> None:
    """docs/conformance.md 25 and 47."""
    table = a_table(tmp_path / "t", "p")
    assert table.verify(check_files=True).findings == ()
    actual = verified(table, change(table.metadata))
    assert rules_of(actual) == {rule}, repr(actual)


def test_the_metrics_of_many_columns_are_read_in_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_rules, "_MOST_METRICS", 1)
    table = a_table(tmp_path / "t")
    assert table.verify().ok
    for column in (1, 2):
        change = last_entries(DATA, value_counts={column: 1}, null_value_counts={column: 2})
        (finding,) = verified(table, change(table.metadata)).findings
        assert (finding.rule, f"'{'?ip'[column]}" in finding.what) == ("column-metrics", True)


def test_nulls_and_nan_that_a_summary_leaves_out_are_named(tmp_path: Path) -> None:
    """docs/conformance.md 47."""
    table = create_path_table(
        tmp_path / "t", "p DOUBLE", partitioned_by=["p"], properties={"format-version": "3"}
    )
    append_rows(table, [{"p": 1.0}, {"p": None}, {"p": math.nan}])
    table.refresh()
    assert table.verify().ok
    one = DOUBLE(1.0)
    for nulls, nan in ((False, True), (True, False)):
        summary = PartitionFieldSummary(
            contains_null=nulls, contains_nan=nan, lower_bound=one, upper_bound=one
        )
        change = last_manifest(DATA, partitions=(summary,))
        actual = verified(table, change(table.metadata))
        (finding,) = actual.findings
        assert (finding.rule, "NaN" in finding.what) == ("partition-summaries", nulls)


def verified(table: Table, metadata: TableMetadata) -> TableVerification:
    return verify_table(table.io, replace(table.loaded, metadata=metadata))


def rules_of(result: TableVerification) -> set[str]:
    return {f.rule for f in result.findings}


def test_a_manifest_is_read_for_the_first_of_the_snapshots_that_share_it(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    for number in range(6):
        append_rows(table, [{"id": 100 + number, "p": 0.5}])
    reads = Counter[str]()

    def count(operation: str, location: str, _: str) -> None:
        if operation in ("open_input", "read_bytes", "read_range"):
            reads[location] += 1

    table.refresh()
    assert verify_table(HookedFileIO(table.io, count), table.loaded).ok
    first, *_, last = (
        {m.manifest_path for m in read_snapshot_manifests(table.io, s)} for s in table.snapshots
    )
    assert len(last) > 6
    assert first < last
    assert len({reads[path] for path in last}) == 1, reads


@cases("count", fast=[10_000], nightly=[1_000_000])
def test_memory_is_bounded(count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(count)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1 << 30


def test_files_that_are_missing_are_named_once(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    *_, last = (s.manifest_list for s in table.snapshots)
    (manifest, *_) = read_snapshot_manifests(table.io, table.snapshots[0])
    (data, *_) = (t.file_path for t in table.scan(filter="id = 3").plan_files())
    for path in (last, data):
        Path(str(path)).unlink()
    actual = table.verify(check_files=True)
    assert {(f.rule, f.file) for f in actual.findings} == {
        ("file-exists", last),
        ("file-exists", data),
    }
    assert len(actual.findings) == 2
    Path(manifest.manifest_path).unlink()
    assert ("file-exists", manifest.manifest_path) in {
        (f.rule, f.file) for f in table.verify().findings
    }


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    (manifest, *_) = read_snapshot_manifests(table.io, table.snapshots[0])
    content = Path(manifest.manifest_path).read_bytes()
    Path(manifest.manifest_path).write_bytes(content[:-20] + bytes(20))
    (finding,) = table.verify().findings
    assert (finding.rule, finding.file) == ("readable", manifest.manifest_path)
    assert finding.snapshot_id == table.snapshots[0].snapshot_id
    Path(manifest.manifest_path).write_bytes(content)
    assert table.verify().ok


def test_a_file_that_was_cut_is_named_where_files_are_checked(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    (data, *_) = (t.file_path for t in table.scan(filter="id = 3").plan_files())
    content = Path(data).read_bytes()
    Path(data).write_bytes(content[:-1])
    assert table.verify().ok
    (finding,) = table.verify(check_files=True).findings
    assert (finding.rule, finding.file) == ("file-length", data)
    assert f"{len(content) - 1} bytes, and {len(content)} are said" in finding.what


def test_a_store_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")

    class Silent(LocalFileIO):
        def read_bytes(self, location: str) -> bytes:
            raise StorageError(f"{location}: no answer")

        def exists(self, location: str) -> bool:
            raise StorageError(f"{location}: no answer")

    with pytest.raises(StorageError, match="no answer"):
        verify_table(Silent(), table.loaded)


def test_a_finding_is_one_line_for_a_person() -> None:
    finding = Finding(rule="row-ids", snapshot_id=7, file="m\n.avro", entry=3, what="too\nmany")
    assert str(finding) == "row-ids: snapshot 7: m\\n.avro, entry 3: too\\nmany"


def test_every_rule_is_broken_by_a_test() -> None:
    others = {"file-exists", "readable", "one-vector-per-data-file"}
    of_tables = {rule for rule, _ in (*TABLE_BREAKS, *PARTITION_BREAKS)} | others
    assert of_tables >= RULES_OF_TABLES.keys()
    # `test_leaf_pruning.py` breaks these rules, where it writes leaves.
    of_leaves = {"content-stats"}
    assert of_tables | of_leaves | {b.rule for b in BREAKS} == (
        RULES_OF_TABLES.keys() | RULES_OF_ROOT_MANIFESTS.keys()
    )
