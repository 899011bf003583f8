"""`iceberg-py maintain`: plans, and the options of each procedure."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pyarrow import orc

import iceberg_pyspark as ice
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.command_line.application import app
from iceberg_pyspark.spec.manifests import DataFile
from iceberg_pyspark.table.commits.commit_files import commit_action
from tests.support.deleted_rows import delete_positions
from tests.support.procedure_work import UNKNOWN_BEFORE, table_with_work
from tests.unit.command_line.conftest import Run

SMALL, GOOD, LARGE = 1, 2000, 8000
PLANS: Mapping[str, Sequence[str]] = {
    "add-files": ("{folder}/source",),
    "compute-partition-stats": (),
    "compute-table-stats": (),
    "expire-snapshots": ("--older-than", "2099-01-01", "--retain-last", "1"),
    "remove-orphan-files": (),
    "rewrite-data-files": ("--option", "min-input-files=2"),
    "rewrite-equality-deletes": (),
    "rewrite-manifests": (),
    "rewrite-position-delete-files": ("--option", "min-input-files=2"),
    "rewrite-table-path": ("/", "/copy/"),
}
"""The arguments with which each command of `maintain` has something to do in the table `db.w`."""


def numbers(partition: str, count: int) -> pa.Table:
    """Return rows whose file has about 8 bytes for each."""
    choose = random.Random(count)
    ids = [choose.randrange(2**62) for _ in range(count)]
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [partition] * count})


def table_for_reasons() -> tuple[ice.Table, dict[str, list[int]]]:
    """Create db.r with a partition for each reason; return it, and the file sizes by partition."""
    catalog = ice.load_catalog("default", warehouse="w")
    catalog.create_namespace("db", if_not_exists=True)
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


def test_plan_lists_rewritten_files_with_reasons(run: Run) -> None:
    table, sizes = table_for_reasons()
    options: dict[str, Any] = {
        "target-file-size-bytes": sizes["good"][0],
        "min-input-files": 2,
        "rewrite-job-order": "bytes-asc",
    }
    plan = table.maintenance().rewrite_data_files(options=options, dry_run=True)
    expected: list[tuple[str, int, int, dict[str, int]]] = [
        ("p=small", 2, sum(sizes["small"]), {"too small": 2}),
        ("p=deleted", 1, sizes["deleted"][0], {"many deleted rows": 1}),
        ("p=large", 1, sizes["large"][0], {"too large": 1}),
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
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table("db.many", "id BIGINT, p STRING", partitioned_by=["p"])
    table.append(pa.table({"id": list(range(22)), "p": [f"{n:02}" for n in range(22)]}))
    command = ("maintain", "rewrite-data-files", "db.many", "--option", "rewrite-all=true")
    lines = run(*command, "--plan").lines
    assert lines[-1].split()[:5] == ["...", "(2", "more", "groups)", "2"]
    assert lines[-2].split()[0] == "20"
    assert len(run(*command, "--plan", "--json").json["groups"]) == 22
    assert "groups of files" not in run(*command).text


@pytest.mark.parametrize("command", PLANS)
def test_a_plan_changes_nothing_and_prints_what_the_command_does(run: Run, command: str) -> None:
    catalog = ice.load_catalog("default", warehouse="w")
    table = table_with_work(catalog, "db.w")
    Path("source/p=a").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), "source/p=a/1.parquet")
    name = command.replace("-", "_")
    words = [word.replace("{folder}", str(Path.cwd())) for word in PLANS[command]]
    call = ("maintain", command, "db.w", *words)
    before = contents()
    planned = run(*call, "--plan", "--json")
    plan_text = run(*call, "--plan")
    assert contents() == before
    assert table.refresh().loaded.metadata_location in before
    assert (planned.code, plan_text.code) == (0, 0)
    done = run(*call, "--json").json
    assert contents() != before
    unknown = {*UNKNOWN_BEFORE.get(name, set()), "groups"}
    assert _known(planned.json, unknown) == _known(done, unknown)
    assert any(_known(done, unknown))
    facts = [done] if isinstance(done, dict) else done
    printed = plan_text.text.split()
    assert [
        v for f in facts for k, v in f.items() if k not in unknown and str(v) not in printed
    ] == ([done["distinct_counts"]] if command == "compute-table-stats" else [])


def test_every_command_has_a_plan() -> None:
    group: Any = typer.main.get_command(app)
    assert {*group.commands["maintain"].commands} == {*PLANS}


def test_a_plan_of_register_registers_nothing(run: Run, table: ice.Table) -> None:
    metadata = table.loaded.metadata_location
    before = contents()
    for name, code in (("db.again", 0), ("db.t", 4), ("nowhere.t", 3)):
        assert run("register", name, metadata, "--plan").code == code
    assert contents() == before
    assert run("list", "db").lines == ["name  kind", "db.t  table"]
    assert run("register", "db.again", metadata).lines == ["registered table db.again"]
    assert run("register", "db.again", metadata, "--plan").code == 4


def contents() -> dict[str, bytes]:
    """Return all files of the warehouse with their content."""
    files = [path for path in Path.cwd().rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in files if ".db" not in path.name}


def _known(document: Any, unknown: Collection[str]) -> Any:
    """Return the document of a command without values that a plan does not have."""
    if isinstance(document, list):
        return document
    return {name: value for name, value in document.items() if name not in unknown}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_orphan_files_of_an_inventory(run: Run, table: ice.Table, suffix: str) -> None:
    data = Path(table.location, "data")
    strays = [data / name for name in ("old.parquet", "new.parquet", "unlisted.parquet")]
    for stray in strays:
        stray.touch()
    needed = next(iter(table.scan().plan_files())).file_path
    paths, long_ago = [str(strays[0]), str(strays[1]), needed], "2026-01-01T00:00:00Z"
    if suffix == "csv":
        pairs = zip(paths, (long_ago, "", long_ago), strict=True)
        lines = ["file_path,last_modified", *(",".join(pair) for pair in pairs)]
        Path("listed.csv").write_text("\n".join(lines), encoding="utf-8")
    else:
        time = datetime.fromisoformat(long_ago.replace("Z", "+00:00"))
        times = pa.array([time, None, time, time], pa.timestamp("us", tz="UTC"))
        listed = pa.table({"file_path": [*paths, None], "last_modified": times})
        pq.write_table(listed, "listed.parquet")
    call = ("maintain", "remove-orphan-files", "db.t", "--inventory", f"listed.{suffix}", "--json")
    expected = [{"orphan_file_location": str(strays[0])}]
    assert run(*call, "--plan").json == expected
    assert strays[0].exists()
    assert run(*call).json == expected
    assert [stray.exists() for stray in strays] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.parquet", None, "cannot be read"),
        ("damaged.parquet", "no Parquet", "cannot be read"),
        ("other.csv", "file_path,size\na,1\n", "must have the columns file_path (string)"),
        ("times.csv", "file_path,last_modified\na,soon\n", "last_modified string"),
    ],
)
def test_an_inventory_that_cannot_be_used_is_refused(
    run: Run, table: ice.Table, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        Path(name).write_text(text, encoding="utf-8")
    refused = run("maintain", "remove-orphan-files", "db.t", "--inventory", name)
    assert refused.code == 2
    assert message in refused.errors


def test_stores_that_are_the_same_are_named(run: Run, table: ice.Table) -> None:
    """A file of the folder has the path of a needed file of another store."""
    file = Path(table.location, "data", "both.parquet")
    file.touch()
    os.utime(file, (0, 0))
    entry = DataFile(
        file_path=f"s3://bucket{file}", record_count=1, file_size_in_bytes=8, partition=(None,)
    )
    commit_action(table.catalog, table.loaded, table.io, AppendFiles(data_files=(entry,)))
    call = ("maintain", "remove-orphan-files", "db.t", "--plan", "--json")
    assert run(*call).code == 2
    assert run(*call, "--prefix-mismatch-mode", "ignore").json == []
    assert run(*call, "--prefix-mismatch-mode", "delete").json == [
        {"orphan_file_location": str(file)}
    ]
    same = ("--equal-scheme", "s3=file", "--equal-authority", "bucket=")
    assert run(*call, *same).json == []


def test_files_of_a_partition_are_added(run: Run, table: ice.Table) -> None:
    catalog = ice.load_catalog("default", warehouse="w")
    catalog.create_namespace("db", if_not_exists=True)
    new = catalog.create_table("db.a", "id BIGINT, p STRING", partitioned_by=["p"])
    for p in ("x", "y"):
        Path("more", f"p={p}").mkdir(parents=True)
        orc.write_table(pa.table({"id": [1]}), f"more/p={p}/1.orc")
    call = ("maintain", "add-files", "db.a", f"{Path.cwd()}/more", "--file-format", "orc")
    assert run(*call, "--partition-filter", "p=x", "--json").json == {
        "added_files_count": 1,
        "changed_partition_count": 1,
    }
    assert new.refresh().scan().to_arrow()["p"].to_pylist() == ["x"]
    refused = run(*call, "--plan")
    assert refused.code == 2
    assert "would duplicate their rows" in refused.errors


def _words(reasons: dict[str, int]) -> list[str]:
    return " ".join(f"{count} {reason}" for reason, count in reasons.items()).split()
