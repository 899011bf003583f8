"""Snapshots with root manifests in both proposed forms have the rows of the original table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, TableCatalog, load_catalog, load_table
from iceberg_pyspark.errors import InvalidMetadataError, UnsupportedFeatureError
from iceberg_pyspark.formats.manifest_columns import read_entries
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.formats.puffin.deletion_vectors import encode_deletion_vector
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.table_metadata import metadata_from_json, metadata_to_json
from iceberg_pyspark.spec.types import StructType
from iceberg_pyspark.spec.unknown_keys import NOTHING_UNKNOWN
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.table.reading.metadata_aggregates import (
    Aggregate,
    KnownAggregates,
    known_aggregates,
)
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from tests.support.frames import create_path_table
from tests.support.manifests import a_file, added, listed
from tests.support.root_tables import ProfileName, RootTable, Row, content_file
from tests.support.sql_conditions import conditions
from tests.support.table_histories import a_history
from tests.unit.table.commits.test_version_4 import rows

PROFILES: tuple[ProfileName, ...] = ("single-file commits", "tracked files")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("roots")
    return load_catalog("roots", type="hadoop", warehouse=str(folder))


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_tables_have_the_rows_of_the_version_3_table_that_they_were(
    catalog: TableCatalog, profile: ProfileName, data: st.DataObject
) -> None:
    history = a_history(data.draw, catalog, newest=3)
    table = history.table.refresh()
    snapshots = table.metadata.snapshots
    assume(table.metadata.format_version == 3 and snapshots)
    # Root manifests cannot contain position delete files.
    deletes = table.metadata_table("all_delete_files").to_arrow().to_pylist()
    assume(all(row["file_format"] == "PUFFIN" or row["content"] == 2 for row in deletes))
    roots = RootTable(
        table,
        LocalFileIO(),
        profile,
        random.Random(data.draw(st.integers(0, 2**32))),
        has_stats=data.draw(st.booleans()),
    )
    copy = load_table(roots.write())
    for where in roots.placed:
        event(where)
    assert rows(copy) == rows(table)
    for snapshot in snapshots:
        assert rows(copy, snapshot.snapshot_id) == rows(table, snapshot.snapshot_id)
    struct = history.struct
    for condition in data.draw(
        st.lists(conditions(struct).filter(lambda c: c.is_filter), max_size=2)
    ):
        assert filtered(copy, condition.text) == filtered(table, condition.text)


def changes(table: Table) -> list[str]:
    return sorted(map(str, table.metadata_table("changes").to_arrow().to_pylist()))


def appended(table: Table, between: SnapshotSelector) -> list[str]:
    return sorted(map(str, table.scan(selector=between).to_arrow().to_pylist()))


def files(table: Table) -> list[tuple[str, int, int]]:
    result = table.metadata_table("files").to_arrow().to_pylist()
    return sorted(
        (row["file_path"].removeprefix("file:"), row["content"], row["record_count"])
        for row in result
    )


def filtered(table: Table, text: str) -> list[str]:
    return sorted(map(str, table.scan(filter=text).to_arrow().to_pylist()))


# --- the rules of entries -------------------------------------------------------------------------

SEQUENCE = {
    "version_info.status": 1,
    "version_info.snapshot_id": 5,
    "version_info.sequence_number": 1,
    "version_info.file_sequence_number": 1,
}
DATA = {
    **SEQUENCE,
    "content_type": 0,
    "location": "data/a.parquet",
    "file_format": "parquet",
    "record_count": 3,
    "file_size_in_bytes": 100,
    "partition_spec_id": 0,
    "first_row_id": 40,
}
LEAF = {
    **SEQUENCE,
    "content_type": 3,
    "location": "metadata/leaf.parquet",
    "file_format": "parquet",
    "record_count": 2,
    "file_size_in_bytes": 100,
    "partition_spec_id": 0,
    "first_row_id": 40,
    "manifest_stats.existing_files_count": 2,
}
VECTOR = {
    **SEQUENCE,
    "content_type": 5,
    "file_format": "puffin",
    "referenced_file": "metadata/leaf.parquet",
    "partition_spec_id": 0,
    "record_count": 1,
    "deletion_vector.inline_content": encode_deletion_vector([0]),
}
INHERITING = {**DATA, "version_info.sequence_number": None, "first_row_id": None}
INHERITING["version_info.file_sequence_number"] = None


def entries(*root: Row, leaf: Sequence[Row] = ()) -> pa.Table:
    """Return the files of a snapshot whose root has these entries, and whose leaf has `leaf`."""
    io = MemoryFileIO()
    profile = PROFILES[0]
    io.create_exclusive("s3://b/t/metadata/r.parquet", content_file(profile, root, content="root"))
    io.create_exclusive(
        "s3://b/t/metadata/leaf.parquet", content_file(profile, leaf, content="data")
    )
    snapshot = Snapshot(
        snapshot_id=7,
        sequence_number=9,
        timestamp_ms=0,
        root_manifest="s3://b/t/metadata/r.parquet",
        table_location="s3://b/t",
    )
    manifests = read_snapshot_manifests(io, snapshot)
    tables = [read_entries(io, m, StructType(())) for m in manifests]
    return pa.concat_tables(tables) if tables else pa.table({})


def test_row_ids_of_a_leaf_are_counted_before_its_dead_entries_go() -> None:
    leaf = [{**INHERITING, "location": f"data/{i}.parquet"} for i in range(3)]
    actual = entries({**LEAF, "record_count": 3}, VECTOR, leaf=leaf)
    assert actual["file_path"].to_pylist() == ["s3://b/t/data/1.parquet", "s3://b/t/data/2.parquet"]
    assert actual["first_row_id"].to_pylist() == [43, 46]
    assert actual["sequence_number"].to_pylist() == [1, 1]


def test_all_live_vectors_of_a_leaf_count_together() -> None:
    leaf = [{**INHERITING, "location": f"data/{i}.parquet"} for i in range(3)]
    more = {**VECTOR, "deletion_vector.inline_content": encode_deletion_vector([2])}
    deleted = {**VECTOR, "deletion_vector.inline_content": encode_deletion_vector([1])}
    deleted["version_info.status"] = 2
    actual = entries({**LEAF, "record_count": 3}, VECTOR, more, deleted, leaf=leaf)
    assert actual["file_path"].to_pylist() == ["s3://b/t/data/1.parquet"]


def test_a_column_that_is_not_known_is_refused_where_a_live_entry_has_a_value() -> None:
    other = {**DATA, "column_files": [{"location": "data/a-2.parquet"}]}
    assert entries({**DATA, "column_files": None}).num_rows == 1
    assert entries(DATA, {**other, "version_info.status": 2}).num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match=r"metadata/r.parquet: .* in column 158"):
        entries(DATA, other)
    with pytest.raises(UnsupportedFeatureError, match=r"metadata/leaf.parquet: .* in column 158"):
        entries(LEAF, leaf=[INHERITING, {**INHERITING, **other}])


def test_deleted_entries_are_not_live() -> None:
    assert entries({**DATA, "version_info.status": 2}).num_rows == 0
    assert entries({**LEAF, "version_info.status": 2}, leaf=[INHERITING]).num_rows == 0


@pytest.mark.parametrize(
    ("root", "leaf", "message"),
    [
        ([LEAF], [LEAF, DATA], "allowed only in a root manifest"),
        ([LEAF], [VECTOR, DATA], "allowed only in a root manifest"),
        ([LEAF], [INHERITING], "1 entries where its manifest list says 2"),
        ([VECTOR], [], "which it has no live entry of"),
        ([{**LEAF, "location": None}], [], "a manifest without location"),
        ([LEAF, {**VECTOR, "referenced_file": None}], [], "without referenced_file"),
        ([LEAF, {**VECTOR, "location": "x"}], [], "is inline and in a file"),
        ([LEAF, {**VECTOR, "record_count": 2}], [], "has 1 positions, its entry says 2"),
        ([LEAF, {**VECTOR, "deletion_vector.inline_content": None}], [], "neither inline nor"),
        ([LEAF, {**VECTOR, "deletion_vector.inline_content": b"x" * 50}], [], "deletion vector"),
        ([{**DATA, "content_type": 6}], [], "content_type 6"),
        ([{**DATA, "content_type": None}], [], "without content_type"),
        ([{**DATA, "version_info.status": 9}], [], "status 9"),
        ([{**DATA, "location": None}], [], "without file_path"),
        ([{**DATA, "record_count": None}], [], "without record_count"),
    ],
)
def test_entries_that_break_the_rules_are_damage(
    root: list[Row], leaf: list[Row], message: str
) -> None:
    with pytest.raises(InvalidMetadataError, match=message) as refused:
        entries(*root, leaf=leaf)
    assert "s3://b/t/metadata/" in str(refused.value)


def test_manifest_of_older_columns_as_root_is_refused() -> None:
    io = MemoryFileIO()
    manifest = listed(io, [added(a_file())], format_version=3)
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=0, root_manifest=manifest.manifest_path)
    with pytest.raises(InvalidMetadataError, match="referenced as a root manifest"):
        read_snapshot_manifests(io, snapshot)


def test_entries_without_a_spec_beside_partitions_are_refused() -> None:
    io = MemoryFileIO()
    row = {**{k.replace("version_info", "tracking"): v for k, v in DATA.items()}, "spec_id": None}
    data = content_file(PROFILES[1], [row], content="root", partition=[(1000, pa.int32())])
    io.create_exclusive("r.parquet", data)
    snapshot = Snapshot(snapshot_id=1, timestamp_ms=0, root_manifest="r.parquet")
    with pytest.raises(UnsupportedFeatureError, match="without a partition spec"):
        read_snapshot_manifests(io, snapshot)


def test_loose_bounds_answer_no_min_or_max(tmp_path: Path) -> None:
    table = create_path_table(
        tmp_path / "t", "id BIGINT", [{"id": 1}, {"id": 5}], properties={"format-version": "3"}
    )
    copy = load_table(RootTable(table, LocalFileIO(), PROFILES[0], random.Random(1)).write())
    column = table.schema.fields[0]
    least = Aggregate(kind="min", column=column)
    assert known_aggregates(table.scan(), (), [least]) == KnownAggregates(rows=[(1,)])
    assert known_aggregates(copy.scan(), (), [least]) is None
    assert known_aggregates(copy.scan(), (), [Aggregate(kind="rows")]) == KnownAggregates(
        rows=[(2,)]
    )


@pytest.mark.parametrize("version", [3, 4])
def test_a_snapshot_has_a_root_or_a_list_and_no_root_before_version_4(
    tmp_path: Path, version: int
) -> None:
    table = create_path_table(
        tmp_path / "t", "id BIGINT", [{"id": 1}], properties={"format-version": "3"}
    )
    content = metadata_to_json(table.metadata)
    content["format-version"] = version
    content["snapshots"][0]["root-manifest"] = "metadata/r.parquet"
    with pytest.raises(InvalidMetadataError, match="root-manifest"):
        metadata_from_json(content)


def test_a_root_manifest_is_written_back_as_it_was(tmp_path: Path) -> None:
    table = create_path_table(
        tmp_path / "t", "id BIGINT", [{"id": 1}], properties={"format-version": "3"}
    )
    copy = load_table(RootTable(table, LocalFileIO(), PROFILES[0], random.Random(1)).write())
    assert copy.metadata.unknown == NOTHING_UNKNOWN
    written = metadata_to_json(copy.metadata)
    assert "manifest-list" not in written["snapshots"][0]
    assert metadata_from_json(written).snapshots == copy.metadata.snapshots
    shown = copy.metadata_table("snapshots").to_arrow().to_pylist()
    assert shown[0]["manifest_list"].endswith(written["snapshots"][0]["root-manifest"])
