"""Procedures that read or write many files say how far they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.table.progress import Progress
from tests.support.frames import append_rows, create_path_table

FILES = 3


def added_files(table: Table, progress: Progress) -> object:
    source = Path(table.location, "..", "source").resolve()
    source.mkdir()
    for number in range(FILES):
        rows = table.scan(filter=f"id = {number}").to_arrow()
        pq.write_table(rows.select(["id"]), source / f"{number}.parquet")
    return table.add_files(str(source), progress=progress)


def moved(table: Table, progress: Progress) -> object:
    maintenance = table.maintenance(progress=progress)
    prefix = table.location.rpartition("/")[0]
    return maintenance.rewrite_table_path(source_prefix=prefix, target_prefix="s3://b/copy")


PROCEDURES: Mapping[str, tuple[Callable[[Table, Progress], object], Sequence[str]]] = {
    "add_files": (added_files, ("files examined",)),
    "rewrite_table_path": (
        moved,
        ("manifests read", "manifests written", "metadata files written"),
    ),
    "compute_table_stats": (
        lambda table, progress: table.maintenance(progress=progress).compute_table_stats(),
        ("data files read",),
    ),
    "compute_partition_stats": (
        lambda table, progress: table.maintenance(progress=progress).compute_partition_stats(),
        ("manifests read",),
    ),
}


@pytest.mark.parametrize("name", PROCEDURES)
def test_each_step_is_reported_up_to_the_last(name: str, tmp_path: Path) -> None:
    run, phases = PROCEDURES[name]
    partitioning = ["id"] if name == "compute_partition_stats" else []
    table = create_path_table(tmp_path / "t", "id BIGINT", partitioned_by=partitioning)
    for number in range(FILES):
        append_rows(table, [{"id": number}])
    steps: list[tuple[str, int, int | None]] = []

    def listen(phase: str, done: int, total: int | None) -> None:
        steps.append((phase, done, total))

    run(table.refresh(), listen)
    for phase in phases:
        [*_, (_, _, total)] = of_phase = [step for step in steps if step[0] == phase]
        assert total is not None
        assert of_phase == [(phase, done, total) for done in range(total + 1)]
        assert total >= FILES
