"""Progress of maintenance: the reports of procedures, and their display."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path

import pytest
from rich.console import Console

import iceberg_pyspark as ice
from iceberg_pyspark.command_line.progress import shown_progress
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


def test_a_rewrite_tells_the_files_of_each_group(table: ice.Table) -> None:
    steps: list[Step] = []
    maintenance = table.maintenance(progress=lambda *step: steps.append(step))
    options = {"rewrite-all": True, "max-file-group-size-bytes": 1}
    done = maintenance.rewrite_data_files(options=options)
    count = done.rewritten_data_files_count
    assert count > 1
    assert steps == [("data files rewritten", n, count) for n in range(count + 1)]


def test_a_terminal_has_a_bar_and_is_left_clean() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    with shown_progress(console) as progress:
        progress("manifests read", 1, None)
        progress("[red]files\x1b[2J deleted", 3, 1000)
    shown = text.getvalue()
    assert "[red]files\\x1b[2J deleted" in shown
    assert "3/1,000" in shown
    assert "\x1b[2J" not in shown
    # The progress bar's line is erased at the end.
    assert shown.endswith("\x1b[2K")


def test_elsewhere_there_are_lines_of_the_log_now_and_then(
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
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "files deleted: 19/100",
        "files deleted: 39/100",
        "files deleted: 59/100",
        "files deleted: 79/100",
        "files deleted: 99/100",
        "files deleted: 100/100",
    ]


def test_the_answer_is_alone_on_standard_output(run: Run, table: ice.Table) -> None:
    answer = run("--log-level", "info", "maintain", "rewrite-manifests", "db.t", "--json")
    assert answer.json["rewritten_manifests_count"] == 2
