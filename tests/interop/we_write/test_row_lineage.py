"""Row lineage, deletion vectors and upgrades of our tables, which Java reads and changes further.

See docs/conformance.md 9-18, 27-36; specification, "Row Lineage", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.support.java_tables import JavaTables, show_rows
from tests.support.oracle import Oracle
from tests.support.our_tables import CATALOGS, new_table, pyiceberg_table
from tests.support.readings import our_table

Row = tuple[int, str]
Lineage = tuple[int, int, int]
MERGE_ON_READ = {
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}
LINEAGE = ["_row_id", "_last_updated_sequence_number", "id"]
_numbers = count(1)


def create(oracle: Oracle, catalog: str, version: int, **properties: str) -> tuple[str, Table]:
    name = f"{catalog}.we_write_lineage.t{next(_numbers)}"
    table = new_table(
        oracle,
        name,
        "id BIGINT, p STRING",
        partitioned_by=["p"],
        properties={"format-version": str(version), **MERGE_ON_READ, **properties},
    )
    return name, table


def arrow(ids: Sequence[int]) -> pa.Table:
    """Return rows in two partitions: even ids in a, odd ids in b."""
    return pa.table({"id": pa.array(ids, pa.int64()), "p": ["ab"[i % 2] for i in ids]})


def java_lineage(oracle: Oracle, name: str) -> list[Lineage]:
    rows = oracle.sql(f"SELECT {', '.join(LINEAGE)} FROM {name}").collect()
    return sorted(tuple(row) for row in rows)


def our_lineage(oracle: Oracle, name: str) -> list[Lineage]:
    rows = our_table(oracle, name).scan(columns=LINEAGE).to_arrow()
    return sorted(zip(*(rows[c].to_pylist() for c in LINEAGE), strict=True))


def assert_lineage(oracle: Oracle, name: str) -> dict[int, Lineage]:
    """Check that both readers agree and that row ids are unique and below next-row-id; return the
    lineage by id.
    """
    result = java_lineage(oracle, name)
    assert our_lineage(oracle, name) == result
    row_ids = [row_id for row_id, _, _ in result]
    metadata = our_table(oracle, name).metadata
    assert len(set(row_ids)) == len(row_ids)
    assert all(0 <= row_id < metadata.next_row_id for row_id in row_ids)
    assert all(0 <= seq <= metadata.last_sequence_number for _, seq, _ in result)
    return {id_: (row_id, seq, id_) for row_id, seq, id_ in result}


@pytest.mark.nightly
@pytest.mark.parametrize("catalog", CATALOGS)
def test_rows_have_ids_from_the_table(oracle: Oracle, catalog: str) -> None:
    name, table = create(oracle, catalog, 3)
    table.append(arrow(range(10)))
    table.append(arrow(range(10, 15)))
    rows = assert_lineage(oracle, name)
    # There are no gaps: each commit assigns exactly the ids of its rows.
    assert {row[0] for row in rows.values()} == set(range(15))
    assert {id_: seq for _, seq, id_ in rows.values()} == {i: 1 if i < 10 else 2 for i in range(15)}
    assert table.metadata.next_row_id == 15
    # Existing entries keep their row ids, although their manifest is rewritten.
    table.delete("p = 'b'")
    lineage = assert_lineage(oracle, name)
    assert lineage == {i: row for i, row in rows.items() if i % 2 == 0}
    after = our_table(oracle, name).metadata
    snapshot = after.current_snapshot
    assert snapshot is not None
    # "added-rows" may exceed the number of added rows, but no id is assigned twice.
    assert snapshot.first_row_id == 15
    assert after.next_row_id == 15 + (snapshot.added_rows or 0)
    table.overwrite(arrow([20, 22]), dynamic=True)
    assert min(row[0] for row in assert_lineage(oracle, name).values()) >= after.next_row_id


def test_java_continues_our_row_ids(oracle: Oracle, java: JavaTables) -> None:
    name, table = create(oracle, "java_sql", 3)
    table.append(arrow(range(10)))
    before = assert_lineage(oracle, name)
    oracle.sql(f"INSERT INTO {name} VALUES (10, 'a')")
    oracle.sql(f"DELETE FROM {name} WHERE id IN (3, 4)")
    oracle.sql(f"UPDATE {name} SET id = 105 WHERE id = 5")
    after = assert_lineage(oracle, name)
    for id_ in (0, 1, 2, 6, 7, 8, 9):
        assert after[id_] == before[id_]
    # An updated row keeps its row id.
    assert after[105] == (before[5][0], 4, 105)
    oracle.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM VALUES (6L, 'a'), (30L, 'a') AS s(id, p)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.id = 106 WHEN NOT MATCHED THEN INSERT *"
    )
    merged = assert_lineage(oracle, name)
    assert merged[106][0] == before[6][0]
    table.refresh().append(arrow([40, 41]))
    appended = assert_lineage(oracle, name)
    assert {*appended} == {0, 1, 2, 7, 8, 9, 10, 30, 40, 41, 105, 106}
    assert appended[40][0] >= max(row[0] for row in merged.values())
    assert java.rows(name) == show_rows(our_table(oracle, name).scan().to_arrow())


@pytest.mark.nightly
@pytest.mark.parametrize("start", [1, 2])
def test_upgrades(oracle: Oracle, java: JavaTables, start: int) -> None:
    name, table = create(oracle, "java_sql", start)
    table.append(arrow(range(4)))
    expected = [0, 1, 2, 3]
    for version in range(start + 1, 4):
        with table.update_properties() as properties:
            properties.set({"format-version": str(version)})
        assert our_table(oracle, name).metadata.format_version == version
        oracle.sql(f"INSERT INTO {name} VALUES ({version}0, 'a')")
        table.refresh().append(arrow([version * 10 + 1]))
        oracle.sql(f"DELETE FROM {name} WHERE id = {version - 2}")
        expected = sorted({*expected, version * 10, version * 10 + 1} - {version - 2})
        assert java.rows(name) == show_rows(arrow(expected))
        assert show_rows(our_table(oracle, name).scan().to_arrow()) == show_rows(arrow(expected))
        table.refresh()
    # After an upgrade, the next commit assigns row ids to existing rows.
    rows = assert_lineage(oracle, name)
    assert {*rows} == {*expected}
    oracle.sql(f"UPDATE {name} SET id = 99 WHERE id = 3")
    assert assert_lineage(oracle, name)[99][0] == rows[3][0]
    content = oracle.sql(f"SELECT content, file_format FROM {name}.delete_files").collect()
    assert (1, "PUFFIN") in [tuple(row) for row in content]


def delete_rows(
    table: Table, positions: Mapping[str, Sequence[int]], replaces: Sequence[DataFile] = ()
) -> list[DataFile]:
    """Commit deletion vectors for data files, in one Puffin file; return the delete files."""
    location = f"{table.location}/data/{next(_numbers)}-deletes.puffin"
    blobs = write_deletion_vectors(table.io, location, positions)
    partitions = {task.file_path: task.partition for task in table.scan().plan_files()}
    files = [
        DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format="puffin",
            partition=partitions[data_file],
            record_count=blob.cardinality,
            file_size_in_bytes=table.io.size(location),
            referenced_data_file=data_file,
            content_offset=blob.content_offset,
            content_size_in_bytes=blob.content_size_in_bytes,
        )
        for data_file, blob in blobs.items()
    ]
    snapshot = table.current_snapshot
    assert snapshot is not None
    commit_action(
        table.catalog,
        table.loaded,
        table.io,
        RowDelta(
            delete_files=tuple(files),
            removed_deletes=frozenset((f.file_path, f.content_offset) for f in replaces),
            checks=ConflictChecks(
                base_snapshot_id=snapshot.snapshot_id, still_live=frozenset(positions)
            ),
        ),
    )
    table.refresh()
    return files


def data_files(table: Table) -> dict[str, str]:
    """Return the locations of the data files by partition."""
    return {task.partition[0]: task.file_path for task in table.scan().plan_files()}


@pytest.mark.nightly
@pytest.mark.parametrize("catalog", CATALOGS)
def test_our_deletion_vectors(oracle: Oracle, java: JavaTables, catalog: str) -> None:
    name, table = create(oracle, catalog, 3)
    table.append(arrow(range(10)))
    before = assert_lineage(oracle, name)
    files = data_files(table)
    # Row 1 of a has id 2; rows 0 and 4 of b have the ids 1 and 9.
    written = delete_rows(table, {files["a"]: [1], files["b"]: [0, 4]})
    remaining_ids = [0, 3, 4, 5, 6, 7, 8]
    assert java.rows(name) == show_rows(arrow(remaining_ids))
    assert assert_lineage(oracle, name) == {i: before[i] for i in remaining_ids}
    with pyiceberg_table(oracle, name) as theirs:
        assert show_rows(theirs.scan().to_arrow()) == show_rows(arrow(remaining_ids))
    shown = oracle.sql(
        f"SELECT content, file_format, record_count, referenced_data_file, content_offset, "
        f"content_size_in_bytes, partition.p FROM {name}.delete_files"
    ).collect()
    assert [tuple(row) for row in sorted(shown, key=lambda row: row.p)] == [
        (
            *(1, "PUFFIN", f.record_count, f.referenced_data_file, f.content_offset),
            *(f.content_size_in_bytes, f.partition[0]),
        )
        for f in written
    ]
    summary = table.metadata.snapshots[-1].summary
    assert {k: v for k, v in summary.items() if "dvs" in k or "position-deletes" in k} == {
        "added-dvs": "2",
        "added-position-deletes": "3",
        "total-position-deletes": "3",
    }

    # Java deletes one more row of b: it must replace our vector of b and keep the vector of a.
    oracle.sql(f"DELETE FROM {name} WHERE id = 5")
    remaining_ids.remove(5)
    assert java.rows(name) == show_rows(arrow(remaining_ids))
    assert {*assert_lineage(oracle, name)} == {*remaining_ids}
    counts = oracle.sql(f"SELECT partition.p, record_count FROM {name}.delete_files").collect()
    assert sorted(tuple(row) for row in counts) == [("a", 1), ("b", 3)]

    # We delete one more row of a, and replace our own vector.
    table.refresh()
    delete_rows(table, {files["a"]: [0, 1]}, replaces=[written[0]])
    remaining_ids.remove(0)
    assert java.rows(name) == show_rows(arrow(remaining_ids))
    assert {*assert_lineage(oracle, name)} == {*remaining_ids}


@pytest.mark.nightly
def test_our_deletion_vectors_far_into_a_file(oracle: Oracle, java: JavaTables) -> None:
    name, table = create(oracle, "java_sql", 3)
    size = 150_000
    ids = list(range(0, 2 * size, 2))
    table.append(pa.table({"id": pa.array(ids, pa.int64()), "p": ["a"] * size}))
    # Runs, single rows, and both sides of the boundary between bitmap containers.
    deleted = [*range(10, 70_000), 65_535, 99_999, 131_071, 131_072, size - 1]
    delete_rows(table, {data_files(table)["a"]: deleted})
    remaining = sorted(set(range(size)) - set(deleted))
    [(rows, total)] = oracle.sql(f"SELECT count(*), sum(id) FROM {name}").collect()
    assert (rows, total) == (len(remaining), sum(2 * i for i in remaining))


@pytest.mark.nightly
def test_java_compacts_our_deletion_vectors_away(oracle: Oracle, java: JavaTables) -> None:
    name, table = create(oracle, "java_sql", 3)
    table.append(arrow(range(10)))
    table.append(arrow(range(10, 20)))
    before = assert_lineage(oracle, name)
    files = {task.file_path for task in table.scan().plan_files() if task.partition == ("a",)}
    delete_rows(table, {path: [0] for path in files})
    remaining_ids = sorted({*range(20)} - {0, 10})
    oracle.sql(
        f"CALL java_sql.system.rewrite_data_files(table => '{name.removeprefix('java_sql.')}', "
        "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))"
    )
    assert java.rows(name) == show_rows(arrow(remaining_ids))
    # A rewritten row keeps its row id and sequence number, which are written to the file.
    assert assert_lineage(oracle, name) == {i: before[i] for i in remaining_ids}
    assert oracle.sql(f"SELECT * FROM {name}.delete_files").collect() == []
