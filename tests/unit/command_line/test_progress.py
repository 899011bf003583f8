"""Progress of maintenance: the reports of procedures, and their display."""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.text import Text

import iceberg_pyspark as ice
from iceberg_pyspark.command_line.maintain import maintain_app
from iceberg_pyspark.command_line.progress_display import shown_progress
from tests.support.deleted_rows import delete_keys, list_positions
from tests.support.frames import append_rows, create_path_table
from tests.unit.command_line.conftest import Run

Step = tuple[str, int, int | None]


def said_by(steps: list[Step]) -> dict[str, list[tuple[int, int | None]]]:
    result: dict[str, list[tuple[int, int | None]]] = {}
    for subject, done, total in steps:
        result.setdefault(subject, []).append((done, total))
    return result


def test_procedures_tell_each_step(run: Run, table: ice.Table) -> None:
    orphan = Path(table.location) / "data" / "left-over.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    steps: list[Step] = []
    maintenance = table.maintenance(progress=lambda *step: steps.append(step))
    maintenance.rewrite_data_files(options={"rewrite-all": True}, dry_run=True)
    assert steps == []
    maintenance.rewrite_manifests()
    assert said_by(steps)["manifests read"] == [(0, 2), (1, 2), (2, 2)]
    steps.clear()
    done = maintenance.expire_snapshots(older_than=1 << 52)
    message = said_by(steps)
    assert message["manifests that expire"][-1] == (2, 2)
    deleted = done.deleted_manifest_files_count + done.deleted_manifest_lists_count
    assert deleted == 4
    assert message["files deleted"][0] == (0, deleted)
    assert message["files deleted"][-1] == (deleted, deleted)
    steps.clear()
    maintenance.remove_orphan_files()
    message = said_by(steps)
    assert message["orphan files deleted"] == [(0, 1), (1, 1)]
    assert message["files listed"][-1][0] >= 1
    for counts in message.values():
        assert [done for done, _ in counts] == sorted(done for done, _ in counts)


def test_rewrite_reports_the_files_of_each_group(table: ice.Table) -> None:
    steps: list[Step] = []
    maintenance = table.maintenance(progress=lambda *step: steps.append(step))
    options = {"rewrite-all": True, "max-file-group-size-bytes": 1}
    done = maintenance.rewrite_data_files(options=options)
    count = done.rewritten_data_files_count
    assert count > 1
    phases = said_by(steps)
    assert phases["data files rewritten"] == [(n, count) for n in range(count + 1)]
    assert phases["data files read"] == [(n, count) for n in range(1, count + 1)]
    new = done.added_data_files_count
    assert phases["new data files written"] == [*((n, None) for n in range(1, new + 1)), (new, new)]


@pytest.mark.parametrize(
    ("sort_order", "options", "new_count"),
    [
        (None, {}, 1),
        ("id DESC", {}, 1),
        # several new files, each of some ranges of the sort
        ("id DESC", {"target-file-size-bytes": 1500}, None),
    ],
)
def test_rewrite_reports_files_within_one_group(
    tmp_path: Path, sort_order: str | None, options: dict[str, object], new_count: int | None
) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT")
    for number in range(5):
        append_rows(table, [{"id": 5 * i + number} for i in range(100)])
    steps: list[Step] = []
    done = (
        table.refresh()
        .maintenance(progress=lambda *step: steps.append(step))
        .rewrite_data_files(sort_order=sort_order, options={"rewrite-all": True, **options})
    )
    assert done.file_group_count == 1
    phases = said_by(steps)
    assert phases["data files read"] == [(n, 5) for n in range(1, 6)]
    assert phases["data files rewritten"] == [(0, 5), (5, 5)]
    # the files are read before their group is written
    assert steps.index(("data files read", 4, 5)) < steps.index(("data files rewritten", 5, 5))
    new = done.added_data_files_count
    assert new == new_count or (new_count is None and new > 1)
    assert phases["new data files written"][-1] == (new, new)


def test_a_group_that_fails_counts_as_done(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT")
    for number in range(3):
        append_rows(table, [{"id": number}])
    steps: list[Step] = []
    [lost, *_] = [t.file_path for t in table.refresh().scan().plan_files()]
    Path(lost).write_bytes(b"no Parquet")
    done = table.maintenance(progress=lambda *step: steps.append(step)).rewrite_data_files(
        options={"rewrite-all": True, "partial-progress.enabled": True}
    )
    assert done.failed_data_files_count == 3
    phases = said_by(steps)
    assert phases["data files read"][-1] == phases["data files rewritten"][-1] == (3, 3)
    assert "new data files written" not in phases


def test_a_terminal_has_a_bar_and_is_left_clean() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    with shown_progress(console) as progress:
        progress("manifests read", 1, None)
        progress("lists", 0, None)
        progress("lists", 5, 5)
        progress("lists", 0, None)
        progress("[red]files\x1b[2J deleted", 3, 1000)
    shown = text.getvalue()
    assert "[red]files\\x1b[2J deleted" in shown
    assert "3/1,000" in shown
    assert "\x1b[2J" not in shown
    # The progress bar's line is erased at the end.
    assert shown.endswith("\x1b[2K")


def test_progress_without_a_terminal_is_logged_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    caplog.set_level(logging.INFO)
    with shown_progress(Console(file=io.StringIO()), clock=lambda: now) as progress:
        for done in range(100):
            now += 0.5
            progress("files deleted", done, 100)
        progress("files deleted", 100, 100)
        progress("files listed", 7, None)
        progress("files listed", 8, 8)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "files deleted: 19/100",
        "files deleted: 39/100",
        "files deleted: 59/100",
        "files deleted: 79/100",
        "files deleted: 99/100",
        "files deleted: 100/100",
        "files listed: 8/8",
    ]


def test_the_answer_is_alone_on_standard_output(run: Run, table: ice.Table) -> None:
    answer = run("--log-level", "info", "maintain", "rewrite-manifests", "db.t", "--json")
    assert answer.json["rewritten_manifests_count"] == 2


COMMANDS: Mapping[str, tuple[Sequence[str], str]] = {
    "add-files": (["{prefix}/incoming"], "files examined"),
    "compute-partition-stats": ([], "manifests read"),
    "compute-table-stats": ([], "data files read"),
    "expire-snapshots": (["--older-than", "2099-01-01"], "files deleted"),
    "remove-orphan-files": ([], "files listed"),
    "rewrite-data-files": (["--option", "rewrite-all=true"], "data files rewritten"),
    "rewrite-equality-deletes": ([], "data files and their deletes"),
    "rewrite-manifests": ([], "manifests read"),
    "rewrite-position-delete-files": (["--option", "rewrite-all=true"], "groups of delete files"),
    "rewrite-table-path": (["{prefix}", "s3://b/copy"], "manifests written"),
}
"""For each command of `maintain`: further arguments, and a phase of its progress."""


def test_every_command_of_maintain_is_tried() -> None:
    commands = [c for c in maintain_app.registered_commands if c.callback is not None]
    names = {c.name or c.callback.__name__.replace("_", "-") for c in commands if c.callback}
    assert names == set(COMMANDS)


@contextmanager
def unconfigured_logging() -> Iterator[None]:
    """Remove pytest's handlers, so that the command line configures logging as in a shell."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_terminal_each_command_logs_its_counts(run: Run, command: str) -> None:
    catalog = ice.load_catalog("default", warehouse="w")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        schema="id BIGINT",
        partitioned_by=["id"] if command == "compute-partition-stats" else [],
        properties={"format-version": "2"},
    )
    for number in range(2):
        table.append(pa.table({"id": [2 * number, 2 * number + 1]}))
    orphan = Path(table.location) / "data" / "left-over.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    if command == "rewrite-equality-deletes":
        delete_keys(table, "id", [3])
    if command == "rewrite-position-delete-files":
        [path, *_] = [t.file_path for t in table.refresh().scan().plan_files()]
        for position in range(2):
            columns = {"file_path": [path], "pos": pa.array([position], pa.int64())}
            list_positions(table, pa.table(columns), {})
    arguments, phase = COMMANDS[command]
    prefix = table.location.rpartition("/")[0]
    incoming = Path(prefix, "incoming")
    incoming.mkdir()
    pq.write_table(pa.table({"id": [9]}), incoming / "f.parquet")
    texts = [text.format(prefix=prefix) for text in arguments]
    with unconfigured_logging():
        answer = run("--log-level", "info", "maintain", command, "db.t", *texts)
    assert answer.code == 0, answer.errors
    assert re.search(rf": {phase}: ([1-9]\d*)/\1$", answer.errors, re.MULTILINE)
    assert phase not in answer.text


def test_on_a_terminal_a_command_shows_bars(
    run: Run, table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    answer = run("maintain", "rewrite-data-files", "db.t", "--option", "rewrite-all=true", "--json")
    shown = Text.from_ansi(answer.errors).plain
    assert re.search(r"data files rewritten .* 3/3 ", shown)
    assert answer.json["rewritten_data_files_count"] == 3
