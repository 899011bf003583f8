"""Java's metadata tables show the same for our tables and for Java's tables with the same rows.

Each table has a twin that Java wrote with the same statements (docs/conformance.md 1-8, 88-90).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.our_tables import VERSIONS, new_table
from tests.support.readings import our_table, snapshot_ids
from tests.support.rows import plain_value, sort_key

pytestmark = pytest.mark.nightly

Rows = Sequence[tuple[int, str]]
# Summary keys that depend on the writer.
OWN_KEYS = {
    *("spark.app.id", "iceberg-version", "engine-name", "engine-version", "app-id", "app-name"),
    "iceberg-pyspark.write-id",
}
FIRST, SECOND = [(1, "a"), (2, "b")], [(3, "a"), (4, "c"), (5, "d")]
THIRD, FOURTH, FIFTH = [(6, "a"), (7, "b")], [(8, "c")], [(9, "a"), (10, "b")]


def arrow(rows: Rows) -> pa.Table:
    return pa.table({"id": pa.array([i for i, _ in rows], pa.int64()), "p": [p for _, p in rows]})


class Twins:
    """Our table and Java's table, changed in the same way."""

    def __init__(self, oracle: Oracle, number: str, version: int, partitioned: bool) -> None:
        self.oracle = oracle
        self.ours = f"java_sql.we_write_tables.ours_{number}"
        self.javas = f"java_sql.we_write_tables.javas_{number}"
        properties = {"format-version": str(version), "write.summary.partition-limit": "2"}
        self.table = new_table(
            oracle,
            self.ours,
            "id BIGINT, p STRING",
            partitioned_by=["p"] if partitioned else [],
            properties=properties,
        )
        shown = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
        oracle.sql(
            f"CREATE TABLE {self.javas} (id BIGINT, p STRING) USING iceberg "
            f"{'PARTITIONED BY (p)' if partitioned else ''} TBLPROPERTIES ({shown})"
        )

    def append(self, rows: Rows) -> None:
        self.table.append(arrow(rows))
        self._insert("INTO", rows)

    def overwrite_dynamically(self, rows: Rows) -> None:
        self.table.overwrite(arrow(rows), dynamic=True)
        with self._overwrite_mode("dynamic"):
            self._insert("OVERWRITE", rows)

    def overwrite(self, rows: Rows) -> None:
        self.table.overwrite(arrow(rows))
        with self._overwrite_mode("static"):
            self._insert("OVERWRITE", rows)

    def overwrite_partition(self, rows: Rows, p: str) -> None:
        self.table.overwrite(arrow(rows), f"p = '{p}'")
        ids = ", ".join(f"({i})" for i, _ in rows)
        with self._overwrite_mode("static"):
            self.oracle.sql(
                f"INSERT OVERWRITE {self.javas} PARTITION (p = '{p}') "
                f"SELECT /*+ COALESCE(1) */ CAST(col1 AS BIGINT) FROM VALUES {ids}"
            )

    def delete(self, where: str) -> None:
        self.table.delete(where)
        self.oracle.sql(f"DELETE FROM {self.javas} WHERE {where}")

    def _insert(self, how: str, rows: Rows) -> None:
        values = ", ".join(f"({i}, '{p}')" for i, p in rows)
        self.oracle.sql(
            f"INSERT {how} {self.javas} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}"
        )

    @contextmanager
    def _overwrite_mode(self, mode: str) -> Iterator[None]:
        key = "spark.sql.sources.partitionOverwriteMode"
        self.oracle.spark.conf.set(key, mode)
        yield
        self.oracle.spark.conf.unset(key)

    def shown(self, query: str) -> list[list[Any]]:
        """Run a query on both tables at once; `{t}` in the query is the table's name."""
        sides = (
            f"SELECT {side} AS side, * FROM ({query.format(t=name)})"
            for side, name in enumerate((self.ours, self.javas))
        )
        shown: list[list[Any]] = [[], []]
        for side, *row in self.oracle.sql(" UNION ALL ".join(sides)).collect():
            shown[side].append(plain_value(row))
        return shown

    def sorted_shown(self, query: str) -> list[list[Any]]:
        """Do the same, and sort the rows."""
        return [sorted(rows, key=sort_key) for rows in self.shown(query)]

    def assert_same_snapshots(self) -> None:
        """Check that all snapshots are equal, except for ids, times and sizes."""
        ours, javas = our_table(self.oracle, self.ours), our_table(self.oracle, self.javas)
        assert len(ours.snapshots) == len(javas.snapshots)
        for our, java in zip(ours.snapshots, javas.snapshots, strict=True):
            assert comparable(our.summary) == comparable(java.summary)
            for key in ("schema_id", "sequence_number", "first_row_id", "added_rows"):
                assert getattr(our, key) == getattr(java, key), key
            assert (our.parent_snapshot_id is None) == (java.parent_snapshot_id is None)
        assert ours.metadata.next_row_id == javas.metadata.next_row_id
        assert ours.metadata.last_sequence_number == javas.metadata.last_sequence_number


def comparable(summary: Any) -> dict[str, str]:
    result = {}
    for key, value in summary.items():
        if key not in OWN_KEYS and not key.endswith("files-size"):
            parts = [part for part in value.split(",") if "files-size" not in part]
            result[key] = ",".join(parts)
    return result


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(v, id=f"version {v}") for v in (1, 2)),
        pytest.param(3, id="version 3"),
    ],
)
def partitioned(request: pytest.FixtureRequest, oracle: Oracle) -> Twins:
    twins = Twins(oracle, f"partitioned_{request.param}", request.param, partitioned=True)
    twins.append(FIRST)
    twins.append(SECOND)
    twins.overwrite_dynamically(THIRD)
    twins.overwrite_partition(FOURTH, "c")
    twins.delete("p = 'b'")
    return twins


def test_snapshots(partitioned: Twins) -> None:
    partitioned.assert_same_snapshots()
    ours, javas = partitioned.shown("SELECT operation, parent_id IS NULL FROM {t}.snapshots")
    assert ours == javas
    assert [operation for operation, _ in ours] == [
        *("append", "append", "overwrite", "overwrite", "delete")
    ]


def test_history_refs_and_metadata_log(partitioned: Twins) -> None:
    ours, javas = partitioned.shown(
        "SELECT is_current_ancestor, parent_id IS NULL FROM {t}.history"
    )
    assert ours == javas == [(True, True)] + [(True, False)] * 4
    ours, javas = partitioned.shown(
        "SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, "
        "max_snapshot_age_in_ms, snapshot_id IS NULL FROM {t}.refs"
    )
    assert ours == javas == [("main", "BRANCH", None, None, None, False)]
    ours, javas = partitioned.shown(
        "SELECT latest_schema_id, latest_sequence_number, latest_snapshot_id IS NULL "
        "FROM {t}.metadata_log_entries"
    )
    assert ours == javas
    assert len(ours) == 6


def test_entries(partitioned: Twins) -> None:
    # Entries of the current manifests: existing, added and deleted, with their sequence numbers.
    columns = (
        "status, sequence_number, file_sequence_number, snapshot_id, "
        "data_file.content, data_file.spec_id, data_file.partition, data_file.record_count,"
        " data_file.value_counts, data_file.null_value_counts, data_file.lower_bounds, "
        "data_file.upper_bounds, data_file.sort_order_id, readable_metrics.id.lower_bound, "
        "readable_metrics.id.upper_bound, readable_metrics.p.lower_bound, "
        "readable_metrics.p.value_count, readable_metrics.p.nan_value_count"
    )
    shown = partitioned.shown(f"SELECT {columns} FROM {{t}}.entries")
    for rows, name in zip(shown, (partitioned.ours, partitioned.javas), strict=True):
        ids = snapshot_ids(partitioned.oracle, name)
        rows[:] = sorted(((*r[:3], ids.index(r[3]), *r[4:]) for r in rows), key=sort_key)
    ours, javas = shown
    assert ours == javas
    assert {row[0] for row in ours} == {0, 1, 2}


def test_files_partitions_and_manifests(partitioned: Twins) -> None:
    ours, javas = partitioned.sorted_shown(
        "SELECT partition, spec_id, record_count, file_count, position_delete_record_count, "
        "position_delete_file_count, equality_delete_record_count, equality_delete_file_count "
        "FROM {t}.partitions"
    )
    assert ours == javas
    ours, javas = partitioned.sorted_shown(
        "SELECT content, file_format, spec_id, partition, record_count, equality_ids, key_metadata,"
        " first_row_id, readable_metrics.id.lower_bound FROM {t}.files"
    )
    assert ours == javas
    assert [row[4] for row in ours] == [1, 1, 1]
    ours, javas = partitioned.sorted_shown(
        "SELECT content, partition_spec_id, added_data_files_count, existing_data_files_count, "
        "deleted_data_files_count, added_delete_files_count, existing_delete_files_count, "
        "deleted_delete_files_count, partition_summaries FROM {t}.manifests"
    )
    assert ours == javas


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unpartitioned_table(oracle: Oracle, java: JavaTables, version: int) -> None:
    twins = Twins(oracle, f"unpartitioned_{version}", version, partitioned=False)
    twins.append(FIRST)
    twins.overwrite_dynamically(THIRD)
    twins.append(SECOND)
    twins.overwrite(FIFTH)
    twins.delete("true")
    twins.append(FIRST)
    twins.assert_same_snapshots()
    assert java.rows(twins.ours) == java.rows(twins.javas)
    ours, javas = twins.shown(
        "SELECT * EXCEPT (last_updated_at, last_updated_snapshot_id, "
        "total_data_file_size_in_bytes) FROM {t}.partitions"
    )
    assert ours == javas


def test_manifests_are_merged_as_java_merges(oracle: Oracle, java: JavaTables) -> None:
    twins = Twins(oracle, "merged", 2, partitioned=True)
    for name in (twins.ours, twins.javas):
        oracle.sql(
            f"ALTER TABLE {name} SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '3')"
        )
    twins.table.refresh()
    for number in range(7):
        twins.append([(number, "abcdefg"[number])])
    twins.assert_same_snapshots()
    ours, javas = twins.shown(
        "SELECT added_data_files_count, existing_data_files_count, partition_summaries "
        "FROM {t}.manifests"
    )
    assert ours == javas
    assert len(ours) < 7
