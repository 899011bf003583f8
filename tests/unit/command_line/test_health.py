"""`iceberg-py health`: its figures, and the printed commands, which must run unchanged."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

import iceberg_pyspark as ice
from tests.unit.command_line.conftest import Run


def test_the_health_of_a_table_is_printed(run: Run, table: ice.Table) -> None:
    answer = run("health", "db.t")
    assert answer.code == 0
    lines = answer.lines
    assert "Data files" in lines
    assert any(line.startswith("files ") and line.endswith("KiB)") for line in lines)
    assert "day_month=1970-01" in answer.text
    document = run("health", "db.t", "--json", "--top", "1").json
    assert document["file_sizes"]["files"] == 3
    assert len(document["partitions"]["largest"]) == 1
    assert run("health", "db.none").code == 3
    assert run("health", "db.t", "--top", "0").code == 2


def test_every_command_runs_as_it_is_printed(run: Run, table: ice.Table) -> None:
    """This holds also for a table at a path, and for a name with special characters of a shell."""
    assert run("create", "table", "db.`it's; $x`", "--schema", "id INT").code == 0
    for name in ("db.t", "db.`it's; $x`", str(Path(table.location).resolve())):
        gains = run("health", name, "--json").json["procedures"]
        assert len(gains) == 6
        for gain in gains:
            program, *arguments = shlex.split(gain["command"])
            assert program == "iceberg-py"
            if name.startswith("/"):
                # A table of another catalog is read-only by its folder.
                arguments.append("--plan")
            done = run(*arguments, warehouse=None)
            assert done.code == 0, (arguments, done.errors)


def test_suggestion_is_shown_until_it_is_carried_out(run: Run, table: ice.Table) -> None:
    run("properties", "set", "table", "db.t", "history.expire.max-snapshot-age-ms", "1")
    for _ in range(4):
        table.refresh().append(table.scan().to_arrow())
    orphan = Path(table.location) / "data" / "left-over.parquet"
    orphan.write_bytes(b"x")
    os.utime(orphan, (1_000_000_000, 1_000_000_000))
    request = ("health", "db.t", "--list-storage", "--json")
    worthwhile = [g for g in run(*request).json["procedures"] if g["is_worthwhile"]]
    assert {g["procedure"] for g in worthwhile} == {
        "rewrite_data_files",
        "rewrite_manifests",
        "expire_snapshots",
        "remove_orphan_files",
    }
    printed = run("health", "db.t", "--list-storage").lines
    for gain in worthwhile:
        assert gain["command"] in printed
        assert gain["call"] in printed
        assert run(*shlex.split(gain["command"])[1:], warehouse=None).code == 0
    left_over = [g["procedure"] for g in run(*request).json["procedures"] if g["is_worthwhile"]]
    # The rewrites created snapshots; the last of them may have expired the others already.
    assert left_over in ([], ["expire_snapshots"])


def test_a_command_names_the_catalog_and_no_secret(
    run: Run, table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = (
        "--property",
        "s3.secret-access-key=hush-hush",
        "--property",
        "io.x=a b",
        "--property",
        "x=y",
    )
    (command, *_) = {
        g["command"] for g in run("health", "db.t", *secret, "--json").json["procedures"]
    }
    assert "hush-hush" not in command
    assert "'--property=io.x=a b'" in command
    # the value of a key that is not known may be a secret
    assert "x=y" not in command
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", "w")
    created = run("create", "table", "lake.db.t", "--schema", "id INT", warehouse=None)
    assert created.code == 0
    document = run("health", "lake.db.t", "--json", warehouse=None).json
    (gain, *_) = document["procedures"]
    assert "--catalog=lake" in gain["command"]
    assert run(*shlex.split(gain["command"])[1:], warehouse=None).code == 0
    assert gain["call"].startswith("CALL lake.system.")
