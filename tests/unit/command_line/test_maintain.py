"""`iceberg-py maintain`: plans, and the options of each procedure."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

import pyarrow as pa

import iceberg_pyspark as ice
from tests.support.deleted_rows import delete_positions
from tests.unit.command_line.conftest import Run

SMALL, GOOD, LARGE = 1, 2000, 8000


def numbers(partition: str, count: int) -> pa.Table:
    """Return rows whose file has about 8 bytes for each."""
    choose = random.Random(count)
    ids = [choose.randrange(2**62) for _ in range(count)]
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [partition] * count})


def table_for_reasons() -> tuple[ice.Table, dict[str, list[int]]]:
    """Create db.r with a partition for each reason; return it, and the file sizes by partition."""
    catalog = ice.load_catalog("default", warehouse="w")
    table = catalog.create_table(
        "db.r", "id BIGINT, p STRING", partitioned_by=["p"], properties={"format-version": "3"}
    )
    for partition, count in (
        ("small", SMALL),
        ("small", SMALL),
        ("large", LARGE),
        ("deleted", GOOD),
        ("good", GOOD),
    ):
        table.append(numbers(partition, count))
    sizes: dict[str, list[int]] = {}
    for task in table.scan().plan_files():
        [partition] = task.partition
        sizes.setdefault(partition, []).append(task.file_size_in_bytes)
        if partition == "deleted":
            positions = {task.file_path: range(GOOD // 2)}
            delete_positions(table, positions, partition=task.partition)
    return table, sizes


def test_a_plan_says_which_files_are_rewritten_and_why(run: Run) -> None:
    table, sizes = table_for_reasons()
    options: dict[str, Any] = {
        "target-file-size-bytes": sizes["good"][0],
        "min-input-files": 2,
        "rewrite-job-order": "bytes-asc",
    }
    plan = table.maintenance().rewrite_data_files(options=options, dry_run=True)
    expected = [
        ("p=small", 2, sum(sizes["small"]), {"too small": 2}),
        ("p=deleted", 1, *sizes["deleted"], {"many deleted rows": 1}),
        ("p=large", 1, *sizes["large"], {"too large": 1}),
    ]
    assert [
        (g.partition, g.data_files_count, g.bytes_count, dict(g.reasons)) for g in plan.groups
    ] == expected
    command = ("maintain", "rewrite-data-files", "db.r", "--plan")
    given = [w for k, v in options.items() for w in ("--option", f"{k}={v}")]
    document = run(*command, *given, "--json").json
    assert document["groups"] == [asdict(group) for group in plan.groups]
    assert document["rewritten_data_files_count"] == 4
    heading = run(*command, *given).lines.index("groups of files")
    assert [line.split() for line in run(*command, *given).lines[heading + 1 :]] == [
        ["group", "partition", "files", "bytes", "new", "files", "reasons"],
        *(
            [str(n), p, str(files), str(size), str(g.new_files_count), *_words(reasons)]
            for n, ((p, files, size, reasons), g) in enumerate(
                zip(expected, plan.groups, strict=True), start=1
            )
        ),
    ]
    done = table.maintenance().rewrite_data_files(options=options)
    assert done.groups == ()
    assert (done.rewritten_data_files_count, done.rewritten_bytes_count) == (
        plan.rewritten_data_files_count,
        plan.rewritten_bytes_count,
    )


def test_options_that_choose_all_files_or_count_delete_files_are_reasons(run: Run) -> None:
    table, _ = table_for_reasons()
    maintenance = table.maintenance()
    every = maintenance.rewrite_data_files(options={"rewrite-all": True}, dry_run=True)
    assert {reason for g in every.groups for reason in g.reasons} == {"rewrite of all files"}
    assert sum(n for g in every.groups for n in g.reasons.values()) == 5
    counted = maintenance.rewrite_data_files(options={"delete-file-threshold": 1}, dry_run=True)
    assert [dict(g.reasons) for g in counted.groups] == [{"many delete files": 1}]


def test_a_long_plan_is_a_short_table(run: Run) -> None:
    catalog = ice.load_catalog("default", warehouse="w")
    table = catalog.create_table("db.many", "id BIGINT, p STRING", partitioned_by=["p"])
    table.append(pa.table({"id": list(range(22)), "p": [f"{n:02}" for n in range(22)]}))
    command = ("maintain", "rewrite-data-files", "db.many", "--option", "rewrite-all=true")
    lines = run(*command, "--plan").lines
    assert lines[-1].split()[:5] == ["...", "(2", "more", "groups)", "2"]
    assert lines[-2].split()[0] == "20"
    assert len(run(*command, "--plan", "--json").json["groups"]) == 22
    assert "groups of files" not in run(*command).text


def _words(reasons: dict[str, int]) -> list[str]:
    return " ".join(f"{count} {reason}" for reason, count in reasons.items()).split()
