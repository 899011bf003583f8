"""Files of Hive tables imported by Java and by this package become the same tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.oracle import Oracle
from tests.support.spark_sessions import run_python

pytestmark = pytest.mark.nightly

PROGRAM = Path(__file__).parent / "hive_tables.py"


def test_tables_of_hive_are_taken_over_as_by_java(oracle: Oracle, tmp_path: Path) -> None:
    """Run in a separate process, because the metastore is fixed when a session starts."""
    answer = json.loads(run_python(PROGRAM, str(tmp_path / "hive")).splitlines()[-1])
    assert len(answer) == 6
    for name, actual in answer.items():
        assert len(actual["source"]) == 2, name
        assert set(actual["counts"].values()) == {2}, (name, actual["counts"])
        for how, rows in actual["rows"].items():
            assert rows == actual["source"], (name, how)
