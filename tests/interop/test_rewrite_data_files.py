"""Data files rewritten by Java and by this package, on two tables with the same history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.rows import sort_key

OPTIONS = {
    "small files": "",
    "all files": "options => map('rewrite-all', 'true'), ",
    "many deletes": "options => map('delete-ratio-threshold', '0.2', 'min-file-size-bytes', '1'), ",
    "sorted": "sort_order => 'id DESC', ",
    "own order": "strategy => 'sort', options => map('compression-factor', '1.0'), ",
    "curve": "strategy => 'sort', sort_order => 'zorder(id, note)', ",
    "few files": "options => map('max-files-to-rewrite', '3', 'min-input-files', '2'), ",
    "some": "where => 'day = \"2026-01-01\"', options => map('min-input-files', '2'), ",
    "equality deletes": "",
    "formats": "",
    "specs": "",
    # all files, because Java groups files by the table's own spec, and we by the new files' spec
    "older spec": "options => map('output-spec-id', '0', 'use-starting-sequence-number', 'false', "
    "'max-concurrent-file-group-rewrites', '1', 'rewrite-all', 'true'), ",
    "two delete files": "options => map('delete-file-threshold', '2', "
    "'delete-ratio-threshold', '1.0', 'min-file-size-bytes', '1'), ",
}
VERSIONS = {"formats": (3,), "specs": (2,), "older spec": (2,), "two delete files": (2,)}
"""The format versions of cases that run on one version; other cases run on versions 2 and 3."""

CASES = [(case, v) for case in OPTIONS for v in VERSIONS.get(case, (2, 3))]
ALWAYS = [("small files", 3), ("equality deletes", 2)]


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.rewritten")
        yield native_oracle


def make(oracle: Oracle, name: str, version: int, case: str) -> None:
    """Create two partitions of several files, with deleted rows and a column that was added late.

    The case `formats` writes files of all formats, the cases of specs files of two partition specs.
    """
    oracle.sql(
        f"CREATE TABLE {name} (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    for number in range(6):
        if number == 3:
            oracle.sql(f"ALTER TABLE {name} ADD COLUMN note STRING")
            if case in ("specs", "older spec"):
                oracle.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(100, id)")
        if case == "formats":
            file_format = ("parquet", "avro", "orc")[number % 3]
            oracle.sql(
                f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default' = '{file_format}')"
            )
        note = ", 'n' || id" if number >= 3 else ""
        oracle.sql(
            f"INSERT INTO {name} SELECT id, DATE'2026-01-01' + CAST(id % 2 AS INT){note} "
            f"FROM range({10 * number}, {10 * number + 10}, 1, 1)"
        )
    oracle.sql(f"DELETE FROM {name} WHERE id IN (2, 4, 6, 33)")
    if case in ("equality deletes", "two delete files"):
        days = [date(2026, 1, 1 + i) for i in range(2)]
        for day, keys in zip(days, ([8, 20, 33], [9, 21, 41]), strict=True):
            oracle.write_equality_deletes(name, ["id"], [(key,) for key in keys], (day,))
        # The equality deletes are older than these rows, so no row is deleted.
        oracle.sql(f"INSERT INTO {name} SELECT id, DATE'2026-01-01', 'again' FROM range(20, 22)")


@cases(("case", "version"), fast=ALWAYS, nightly=[c for c in CASES if c not in ALWAYS])
def test_rewrite_leaves_the_files_that_java_leaves(lake: Oracle, case: str, version: int) -> None:
    outcomes = []
    for catalog, side in (("java_hadoop", "java"), ("lake", "us")):
        name = f"{case.replace(' ', '_')}_{version}_{side}"
        table = f"java_hadoop.rewritten.{name}"
        make(lake, table, version, case)
        if case == "own order":
            # Only in this case: Java's binpack marks its files with the table's order, even if they
            # are unsorted.
            lake.sql(f"ALTER TABLE {table} WRITE ORDERED BY note, id DESC")
        lineage = ", _row_id, _last_updated_sequence_number" if version == 3 else ""
        rows = f"SELECT id, day, note{lineage} FROM {table}"
        before = sorted(lake.sql(rows).collect())
        call = (
            f"CALL {catalog}.system.rewrite_data_files({OPTIONS[case]}table => 'rewritten.{name}')"
        )
        result = lake.sql(call)
        lake.sql(f"REFRESH TABLE {table}")
        assert sorted(lake.sql(rows).collect()) == before
        files = sorted(
            lake.sql(
                "SELECT content, partition, record_count, sort_order_id, file_format, spec_id "
                f"FROM {table}.files"
            ).collect(),
            key=lambda file: sort_key(file[:3]),
        )
        if case in ("sorted", "own order"):
            # The order of the rows within their files.
            places = lake.sql(f"SELECT _file, _pos, day, id, note FROM {table}").collect()
            files += [r[2:] for r in sorted(places, key=lambda row: (row.day, row._pos))]
        added = lake.sql(
            f"SELECT sequence_number, data_file.content FROM {table}.entries WHERE status = 1"
        ).collect()
        numbers = sorted(set(added))
        done = result.collect()[0].asDict()
        if case == "few files":
            # Java selects other files each time, and so other delete files.
            del done["removed_delete_files_count"]
            files, numbers = [f.content for f in files if f.content == 0], []
        if case in ("equality deletes", "two delete files") and version == 2:
            # In any commit, Java drops deletes that are older than every data file, without
            # counting them.
            files, numbers = ([f for f in some if f.content == 0] for some in (files, numbers))
        # The two writers' files have different sizes.
        has_bytes = done.pop("rewritten_bytes_count") > 0
        assert has_bytes == (done["rewritten_data_files_count"] > 0)
        if case == "older spec":
            assert {f.spec_id for f in files if f.content == 0} == {0}
        if case == "two delete files":
            # each of the others has no delete file, or the equality deletes of its partition
            assert done["rewritten_data_files_count"] == 2
        outcomes.append((result.schema, done, files, numbers))
        if side == "us" and case not in ("all files", "few files", "older spec"):
            assert lake.sql(call).collect()[0].rewritten_data_files_count == 0
    assert outcomes[0] == outcomes[1]


@pytest.mark.nightly
def test_a_file_that_is_too_large_becomes_several(lake: Oracle) -> None:
    """A single file above `max-file-size-bytes` is rewritten to files of about the target size."""
    target = 1024 * 1024
    file_counts = []
    for catalog, side in (("java_hadoop", "java"), ("lake", "us")):
        table = f"java_hadoop.rewritten.large_{side}"
        lake.sql(f"CREATE TABLE {table} (id BIGINT, text STRING) USING iceberg")
        lake.sql(f"INSERT INTO {table} SELECT id, sha2(string(id), 256) FROM range(0, 60000, 1, 1)")
        # A file of the right size is not rewritten.
        lake.sql(f"INSERT INTO {table} SELECT id, sha2(string(id), 256) FROM range(0, 40000, 1, 1)")
        before = lake.sql(f"SELECT count(*), sum(id), sum(hash(text)) FROM {table}").collect()
        call = (
            f"CALL {catalog}.system.rewrite_data_files(table => 'rewritten.large_{side}', "
            f"options => map('target-file-size-bytes', '{target}'))"
        )
        [done] = lake.sql(call).collect()
        lake.sql(f"REFRESH TABLE {table}")
        after = lake.sql(f"SELECT count(*), sum(id), sum(hash(text)) FROM {table}").collect()
        assert after == before
        sizes = [
            row[0]
            for row in lake.sql(f"SELECT file_size_in_bytes FROM {table}.data_files").collect()
        ]
        lake.sql(f"REFRESH TABLE lake.rewritten.large_{side}")
        assert max(sizes) <= target * 9 // 5
        assert lake.sql(call).collect()[0].rewritten_data_files_count == 0
        # The number of new files depends on the sizes that each writer's files reach.
        assert done.added_data_files_count == len(sizes) - 1 > 1
        file_counts.append(done.rewritten_data_files_count)
        # With a smaller `max-file-size-bytes`, the file of 40,000 rows is too large too.
        most = target * 5 // 4
        smaller = call.replace(f"'{target}')", f"'{target}', 'max-file-size-bytes', '{most}')")
        [done] = lake.sql(smaller).collect()
        wrong = [size for size in sizes if not target * 3 // 4 <= size <= most]
        assert done.rewritten_data_files_count == len(wrong) >= 1
        lake.sql(f"REFRESH TABLE {table}")
        after = lake.sql(f"SELECT count(*), sum(id), sum(hash(text)) FROM {table}").collect()
        assert after == before
    assert file_counts == [1, 1]
