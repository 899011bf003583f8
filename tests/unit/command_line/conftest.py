"""Run the command line in this process, with a new warehouse and without configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner

import iceberg_pyspark as ice
from iceberg_pyspark.command_line.application import app

COMMAND_OF = cache(get_command)


@dataclass(frozen=True)
class Answer:
    """A command's output and exit code."""

    code: int
    text: str
    errors: str

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.splitlines()]

    @property
    def json(self) -> Any:
        return json.loads(self.text)


Run = Callable[..., Answer]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command with `--warehouse` in an empty folder."""
    # Else each run builds all commands anew, which takes a tenth of a second.
    monkeypatch.setattr(testing, "_get_command", COMMAND_OF)
    for variable in ("HOME", "PYICEBERG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run_command(*arguments: str, warehouse: str | None = "w") -> Answer:
        options = () if warehouse is None else ("--warehouse", warehouse)
        done = CliRunner().invoke(app, [*options, *arguments], prog_name="iceberg-py")
        assert "Traceback" not in done.output
        return Answer(done.exit_code, done.stdout, done.stderr)

    return run_command


@pytest.fixture
def table(run: Run) -> ice.Table:
    """Create `db.t` in the warehouse, with two snapshots and three rows."""
    catalog = ice.load_catalog("default", warehouse="w")
    catalog.create_namespace("db", if_not_exists=True)
    new_table = catalog.create_table(
        "db.t",
        schema="id BIGINT NOT NULL COMMENT 'key', day DATE, v STRING",
        partitioned_by=["months(day)"],
        properties={"format-version": "3", "owner": "me"},
    )
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("v", pa.string())]
    )
    days = pa.array([0, 40, None], pa.date32())
    rows = pa.table([pa.array([1, 2, 3]), days, pa.array(["a", "b\x1b[2J", None])], schema)
    new_table.append(rows.slice(0, 2))
    new_table.append(rows.slice(2))
    return new_table
