"""`iceberg-py verify`: one line per finding, and the exit code."""

from __future__ import annotations

from pathlib import Path

import iceberg_pyspark as ice
from tests.unit.command_line.conftest import Run


def test_a_sound_table_has_nothing_wrong(run: Run, table: ice.Table) -> None:
    answer = run("verify", "db.t", "--check-files")
    assert answer.code == 0
    (line,) = answer.lines
    assert "nothing wrong in 2 snapshots and 2 manifests; data files were checked" in line
    document = run("verify", "db.t", "--json").json
    assert (document["ok"], document["findings"], document["snapshots"]) == (True, [], 2)


def test_a_finding_is_a_line_and_the_command_fails(run: Run, table: ice.Table) -> None:
    (task, *_) = table.refresh().scan(filter="id = 1").plan_files()
    Path(task.file_path).unlink()
    assert run("verify", "db.t").code == 0
    answer = run("verify", "db.t", "--check-files")
    assert answer.code == 9
    finding, summary = answer.lines
    assert finding.startswith("file-exists: snapshot ")
    assert task.file_path in finding
    assert "1 finding in 2 snapshots" in summary
    document = run("verify", "db.t", "--check-files", "--json")
    assert document.code == 9
    assert document.json["ok"] is False
    (actual,) = document.json["findings"]
    assert (actual["rule"], actual["file"]) == ("file-exists", task.file_path)


def test_missing_table_exits_with_3(run: Run, table: ice.Table) -> None:
    assert run("verify", "db.none").code == 3
