"""A search for secrets in all that Spark, its logs, pages and errors show (faults.md 47)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.secret_forms import found_in
from tests.support.spark_sessions import run_python

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.support.secrets_application import main
main(Path(sys.argv[2]), sys.argv[3])
"""


def setting_of_readme() -> str:
    """What README has for secrets that are given when an application starts."""
    found = re.search(
        r"--conf 'spark\.redaction\.regex=([^']+)'", (ROOT / "README.md").read_text("utf-8")
    )
    assert found is not None
    return found[1]


@pytest.mark.cluster
def test_no_secret_is_shown_anywhere(tmp_path: Path) -> None:
    script = tmp_path / "application.py"
    script.write_text(PROGRAM, encoding="utf-8")
    run_python(script, str(ROOT), str(tmp_path), setting_of_readme())
    told = json.loads((tmp_path / "shown.json").read_text("utf-8"))
    secrets = {
        f"{place} {key}": value.removeprefix("postgresql://me:").removesuffix("@h/db")
        for place, of_place in told["secrets"].items()
        for key, value in of_place.items()
    }
    shown = told["shown"]

    assert {name: found for name, text in shown.items() if (found := found_in(text, secrets))} == {}

    # the search looked where they would be
    log, events = shown["python log"], shown["event log"]
    assert "sadls.connection-string" in log
    assert "Received command" in log or "Answer received" in log
    assert "spark.sql.catalog.lake.s3.sse.key" in events
    assert "spark.sql.catalog.atstart.adls.connection-string" in events
    assert any("spark.sql.catalog.atstart.uri" in t for n, t in shown.items() if "environment" in n)
    assert "IcebergPyFileIndex" in shown["lake read explained extended"]
    assert "spark.sql.catalog.lake.token" in shown["SET"]
    assert "nonsense" in shown["error unknown option"]
    assert len(shown) > 100
