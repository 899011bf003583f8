"""`import iceberg_pyspark.auto`: sessions that ask for Iceberg have it, whoever makes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_sessions import ROOT, run_python

APPLICATION = ROOT / "tests" / "spark" / "auto_application.py"
ROW = [[1]]


def run(order: str, folder: Path) -> dict[str, Any]:
    shown = run_python(APPLICATION, order, str(folder))
    results: dict[str, Any] = json.loads(shown.splitlines()[-1])
    return results


def test_sessions_that_ask_have_iceberg_and_no_others(tmp_path: Path) -> None:
    assert run("early", tmp_path) == {
        "imports pyspark": False,
        "installs unasked": False,
        "conf.set": ROW,
        "newSession": ROW,
        "cloneSession": ROW,
        "getOrCreate": ROW,
    }


@pytest.mark.nightly
def test_a_session_that_exists_has_iceberg(tmp_path: Path) -> None:
    assert run("late", tmp_path) == {"existing": ROW, "of the context": ROW}


@pytest.mark.nightly
def test_error_in_a_session_without_iceberg_names_install(tmp_path: Path) -> None:
    errors = run("never", tmp_path)
    assert "'lake'" in errors["error"] or "`lake`" in errors["error"]
    assert "call iceberg_pyspark.install(spark)" in errors["error"]
    assert "elsewhere.Catalog" in errors["other"]
    assert "iceberg_pyspark" not in errors["other"]
