"""The health report of a table: figures, gains of procedures, and commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from iceberg_pyspark import Table, TableCatalog, load_catalog
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.formats.manifest_columns import entries_of_manifests
from iceberg_pyspark.formats.manifest_lists import read_snapshot_manifests
from iceberg_pyspark.planning.scan_plan import ScanPlan
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.statistics import StatisticsFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.health.figures import ProcedureGain
from iceberg_pyspark.table.health.health_report import TableHealth
from iceberg_pyspark.table.maintenance.rewrites.file_groups import RewriteOptions, plan_groups
from iceberg_pyspark.table.maintenance.rewrites.rewrite_count import PartitionNumbers, RewriteCount
from tests.support.commit_tables import commit_table, data_file, publish
from tests.support.deleted_rows import delete_keys, delete_positions, list_positions
from tests.support.frames import append_rows, create_path_table
from tests.support.parameters import cases
from tests.support.table_histories import a_history

GIB = 1 << 30
PROCEDURES = (
    "rewrite_equality_deletes",
    "rewrite_position_delete_files",
    "rewrite_data_files",
    "rewrite_manifests",
    "expire_snapshots",
    "remove_orphan_files",
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> TableCatalog:
    folder = tmp_path_factory.mktemp("health")
    return load_catalog("health", type="hadoop", warehouse=str(folder))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Create a table with six files in partition a and two in b; every file has two rows."""
    new = create_path_table(tmp_path / "t", "id BIGINT, p STRING", partitioned_by=["p"])
    for number in range(6):
        parts = ["a", "b"] if number < 2 else ["a"]
        append_rows(new, [{"id": 10 * number + i, "p": p} for p in parts for i in range(2)])
    return new


def delete_rows(table: Table, path: str, rows: Sequence[int]) -> None:
    """Delete rows by a deletion vector, or in version 2 by a position delete file."""
    if table.metadata.format_version >= 3:
        delete_positions(table, {path: rows})
        return
    columns = {DELETE_FILE_PATH.name: [path] * len(rows), DELETE_FILE_POS.name: list(rows)}
    schema = Schema(fields=(DELETE_FILE_PATH, DELETE_FILE_POS))
    listed = pa.table(columns, to_arrow_schema(schema, field_ids=True))
    list_positions(table, listed, {}, referenced_data_file=path)


def gain(health: TableHealth, procedure: str) -> ProcedureGain:
    (result,) = (g for g in health.procedures if g.procedure == procedure)
    return result


def test_the_figures_are_those_of_the_files(table: Table) -> None:
    tasks = list(table.scan().plan_files())
    health = table.health()
    sizes = health.file_sizes
    lengths = sorted(t.file_size_in_bytes for t in tasks)
    assert (sizes.files, sizes.bytes, sizes.records) == (8, sum(lengths), 16)
    assert (sizes.smallest, sizes.largest) == (lengths[0], lengths[-1])
    assert sizes.median == int(np.median(lengths))
    assert (sizes.small_files, sizes.large_files) == (8, 0)
    assert sizes.files_by_format == {"parquet": 8}
    assert [b.files for b in sizes.files_by_size] == [8] + [0] * 9
    assert sum(b.bytes for b in sizes.files_by_size) == sizes.bytes
    assert sizes.files_by_size[0].less_than == 64 * 1024
    assert sizes.files_by_size[-1].less_than is None
    manifests = health.metadata
    assert manifests.manifests == 6
    assert manifests.metadata_bytes == table.io.size(table.loaded.metadata_location)
    assert health.snapshots.count == len(health.snapshots.history) == 6
    assert [s.records for s in health.snapshots.history] == [4, 8, 10, 12, 14, 16]


def test_partitions_are_shown_by_size_and_by_files(table: Table) -> None:
    append_rows(table, [{"id": i, "p": "large"} for i in range(10_000)])
    partitions = table.health().partitions
    assert partitions.count == 3
    assert [p.partition for p in partitions.largest] == ["p=large", "p=a", "p=b"]
    assert [p.partition for p in partitions.most_files] == ["p=a", "p=b", "p=large"]
    assert [(p.files, p.records) for p in partitions.most_files] == [(6, 12), (2, 4), (1, 10_000)]
    assert partitions.skew is not None
    assert partitions.skew == pytest.approx(
        partitions.largest[0].bytes / sum(p.bytes for p in partitions.largest) * 3
    )
    (one,) = table.health(top=1).partitions.largest
    assert one == partitions.largest[0]
    with pytest.raises(InvalidRequestError, match="at least 1"):
        table.health(top=0)


def test_minus_one_and_minus_two_are_two_partitions(tmp_path: Path) -> None:
    """Python's hash of -1 equals its hash of -2."""
    new = create_path_table(tmp_path / "t", "p INT", [{"p": -1}, {"p": -2}], partitioned_by=["p"])
    assert new.health().partitions.count == 2


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_are_counted_by_kind(tmp_path: Path, version: int) -> None:
    new = create_path_table(
        tmp_path / "t", "id BIGINT, p STRING", properties={"format-version": str(version)}
    )
    for number in range(3):
        append_rows(new, [{"id": 10 * number + i, "p": "x"} for i in range(10)])
    first, second, _ = (t.file_path for t in new.scan().plan_files())
    delete_rows(new, first, range(5))
    delete_rows(new, second, [0])
    delete_keys(new, "id", [1, 11])
    health = new.refresh().health()
    deletes = health.deletes
    by_position = deletes.deletion_vectors if version == 3 else deletes.position_deletes
    assert by_position.records == 6
    assert (deletes.equality_deletes.files, deletes.equality_deletes.records) == (1, 2)
    assert deletes.deleted_ratio == pytest.approx(6 / 30)
    assert sum(b.files for b in deletes.files_by_deletes) == 3
    expected = sorted(len(t.deletes) for t in new.scan().plan_files())
    assert deletes.most_deletes_of_a_file == expected[-1]
    assert deletes.data_files_with_deletes == sum(n > 0 for n in expected)
    plan = gain(health, "rewrite_equality_deletes")
    assert (plan.files_before, plan.is_worthwhile, plan.is_upper_bound) == (1, True, True)
    done = new.maintenance().rewrite_equality_deletes()
    assert plan.files_after is not None
    assert done.added_delete_files_count <= plan.files_after
    assert not gain(new.health(), "rewrite_equality_deletes").is_worthwhile


def test_position_deletes_of_version_two_become_vectors(tmp_path: Path) -> None:
    new = create_path_table(tmp_path / "t", "id BIGINT, p STRING")
    append_rows(new, [{"id": i, "p": "x"} for i in range(10)])
    (path,) = (t.file_path for t in new.scan().plan_files())
    for row in range(3):
        delete_rows(new, path, [row])
    new.update_properties().set({"format-version": "3"}).commit()
    plan = gain(new.health(), "rewrite_position_delete_files")
    done = new.maintenance().rewrite_position_delete_files()
    assert (plan.files_before, plan.files_after) == (3, 1)
    assert plan.bytes == done.rewritten_bytes_count
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (3, 1)
    assert gain(new.health(), "rewrite_position_delete_files").files_before == 0


def test_many_position_deletes_of_version_two_become_few(tmp_path: Path) -> None:
    new = create_path_table(tmp_path / "t", "id BIGINT, p STRING")
    append_rows(new, [{"id": i, "p": "x"} for i in range(10)])
    (path,) = (t.file_path for t in new.scan().plan_files())
    for row in range(5):
        assert not gain(new.health(), "rewrite_position_delete_files").is_worthwhile
        delete_rows(new, path, [row])
    plan = gain(new.health(), "rewrite_position_delete_files")
    done = new.maintenance().rewrite_position_delete_files()
    assert (plan.files_before, plan.files_after) == (5, 1)
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (5, 1)


def test_gains_are_what_the_procedures_do(table: Table) -> None:
    health = table.health()
    assert tuple(g.procedure for g in health.procedures) == PROCEDURES
    files, manifests = gain(health, "rewrite_data_files"), gain(health, "rewrite_manifests")
    packed = table.maintenance().rewrite_manifests()
    assert manifests.files_before == packed.rewritten_manifests_count == 6
    assert manifests.files_after == packed.added_manifests_count
    done = table.maintenance().rewrite_data_files()
    assert files.files_before == done.rewritten_data_files_count == 6
    assert files.files_after == done.added_data_files_count == 1
    assert files.bytes == done.rewritten_bytes_count
    assert not gain(table.health(), "rewrite_data_files").is_worthwhile


def test_snapshots_that_are_old_are_told(table: Table) -> None:
    assert not gain(table.health(), "expire_snapshots").is_worthwhile
    table.update_properties().set({"history.expire.max-snapshot-age-ms": "1"}).commit()
    plan = gain(table.health(), "expire_snapshots")
    assert plan.is_worthwhile
    assert "5" in plan.what
    done = table.maintenance().expire_snapshots()
    assert (done.expired_snapshots_count, plan.files_before) == (
        5,
        done.deleted_manifest_lists_count + done.deleted_manifest_files_count,
    )


def test_the_storage_is_listed_only_where_it_is_asked_for(table: Table) -> None:
    orphan = Path(table.location) / "data" / "left-over.parquet"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"x")
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    assert gain(table.health(), "remove_orphan_files").files_before is None
    assert gain(table.health(list_storage=True), "remove_orphan_files").files_before == 1


def test_report_names_refused_procedures_and_has_all_else(table: Table) -> None:
    table.update_properties().set({"gc.enabled": "false"}).commit()
    health = table.health(list_storage=True)
    for procedure in ("expire_snapshots", "remove_orphan_files"):
        problem = gain(health, procedure).problem
        assert problem is not None
        assert "gc.enabled" in problem
        assert problem in str(health)
    assert gain(health, "rewrite_data_files").files_before == 6


def test_statistics_of_no_snapshot_are_counted() -> None:
    t = commit_table()
    loaded_table = commit_action(
        t.catalog, t.loaded, t.io, AppendFiles(data_files=(data_file("a"),))
    )
    snapshot_id = loaded_table.metadata.current_snapshot_id
    assert snapshot_id is not None
    statistics = tuple(
        StatisticsFile(
            snapshot_id=owner,
            statistics_path="mem://t/metadata/x.stats",
            file_size_in_bytes=size,
            file_footer_size_in_bytes=1,
        )
        for owner, size in ((snapshot_id, 3), (7, 5))
    )
    publish(t, replace(loaded_table.metadata, statistics=statistics))
    actual = Table(t.catalog, t.loaded, io=t.io).health().metadata
    assert (actual.statistics_files, actual.statistics_bytes) == (2, 8)
    assert (actual.unreferenced_statistics_files, actual.unreferenced_statistics_bytes) == (1, 5)


def test_an_empty_table_is_healthy(tmp_path: Path) -> None:
    health = create_path_table(tmp_path / "t", "id BIGINT").health(list_storage=True)
    assert health.snapshot_id is None
    assert (health.file_sizes.files, health.partitions.count) == (0, 0)
    assert not any(g.is_worthwhile or g.problem for g in health.procedures)
    assert "no file" in str(health)
    assert json.loads(json.dumps(health.to_dict()))["file_sizes"]["median"] is None


# --- texts ----------------------------------------------------------------------------------------


def test_json_has_everything(table: Table) -> None:
    document = json.loads(json.dumps(table.health().to_dict()))
    assert document["file_sizes"]["files"] == 8
    assert document["partitions"]["most_files"][0]["partition"] == "p=a"
    assert [g["procedure"] for g in document["procedures"]] == list(PROCEDURES)


def test_the_text_has_figures_and_commands(table: Table) -> None:
    text = repr(table.health())
    assert "8 (" in text
    assert f"iceberg-py maintain rewrite-data-files {table.location}" in text
    assert all(len(line) < 200 for line in text.splitlines())


def test_names_and_values_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[2J"
    new = create_path_table(
        tmp_path / "<b>", "id BIGINT, p STRING", [{"id": 1, "p": evil}], partitioned_by=["p"]
    )
    append_rows(new, [{"id": 2, "p": "x"}])
    health = new.health()
    assert evil in {p.partition.removeprefix("p=") for p in health.partitions.largest}
    assert "\x1b" not in str(health)
    page = health._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    parser = HTMLParser()
    parser.feed(page)


# --- agreement with plans -------------------------------------------------------------------------


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_counts_are_those_of_the_plan_of_a_rewrite(catalog: TableCatalog, data: Any) -> None:
    history = a_history(data.draw, catalog)
    assume(history.moments)
    table = history.table.refresh()
    snapshot = table.current_snapshot
    assume(snapshot is not None)
    assert snapshot is not None
    draw = data.draw
    options = RewriteOptions.of(
        {
            "target-file-size-bytes": str(draw(st.sampled_from([700, 1000, 2000, 1_000_000]))),
            "min-input-files": str(draw(st.integers(1, 3))),
            "max-file-group-size-bytes": str(draw(st.sampled_from([1, 2000, 5000, 1 << 40]))),
            "delete-file-threshold": str(draw(st.sampled_from([1, 2, 9]))),
            "delete-ratio-threshold": str(draw(st.sampled_from([0.1, 0.5, 0.9]))),
            "rewrite-all": str(draw(st.booleans())).lower(),
        },
        table.properties,
    )
    spec_id = draw(st.sampled_from([s.spec_id for s in table.metadata.partition_specs]))
    count, numbers = RewriteCount(options, spec_id), PartitionNumbers()
    plan = ScanPlan(
        metadata=table.metadata,
        manifests=read_snapshot_manifests(table.io, snapshot),
        predicate=AlwaysTrue(),
        read_entries=partial(entries_of_manifests, table.io),
    )
    for files in plan.files():
        partitions = files.entries["partition"].combine_chunks()
        count.add(files, numbers.of(files.spec.spec_id, partitions))
    count.finish()
    groups = plan_groups(table.scan().plan_files(), options, spec_id)
    assert (count.groups, count.files, count.bytes) == (
        len(groups),
        sum(len(g.tasks) for g in groups),
        sum(g.size for g in groups),
    )


@settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_deletes_are_those_of_the_scan(catalog: TableCatalog, data: Any) -> None:
    history = a_history(data.draw, catalog)
    assume(history.moments)
    table = history.table.refresh()
    deletes = table.health().deletes
    tasks = list(table.scan().plan_files())
    assert sum(b.files for b in deletes.files_by_deletes) == len(tasks)
    assert deletes.data_files_with_deletes == sum(bool(t.deletes) for t in tasks)
    assert deletes.most_deletes_of_a_file == max((len(t.deletes) for t in tasks), default=0)
    applied = {(d.file_path, d.content_offset) for t in tasks for d in t.deletes}
    kinds = (deletes.deletion_vectors, deletes.position_deletes, deletes.equality_deletes)
    assert sum(k.files - k.dangling_files for k in kinds) == len(applied)


# --- volume ---------------------------------------------------------------------------------------

PROGRAM = """
import sys
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.table import Table
from tests.support.peak_memory import peak_bytes
from tests.support.commit_tables import commit_table, data_file

count, partitions, at_once = int(sys.argv[1]), int(sys.argv[2]), 5000
t = commit_table(partitioned=True)
for start in range(0, count, at_once):
    files = tuple(
        data_file(f"part={i % partitions}/{i}-1b4e28ba-2fa1-11d2.parquet", str(i % partitions))
        for i in range(start, start + at_once)
    )
    commit_action(t.catalog, t.loaded, t.io, AppendFiles(data_files=files, merge=False))
health = Table(t.catalog, t.loaded, io=t.io).health()
assert health.file_sizes.files == count
assert health.partitions.count == partitions
assert len(health.partitions.largest) == 20
(rewrite,) = (g for g in health.procedures if g.procedure == "rewrite_data_files")
assert rewrite.files_before == (count if count >= 5 * partitions else 0)
print(peak_bytes())
"""


@cases(
    ("files", "partitions"),
    fast=[(5_000, 1_000)],
    nightly=[(1_000_000, 1_000), (1_000_000, 1_000_000)],
)
def test_memory_is_bounded(files: int, partitions: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(files), str(partitions)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GIB
