"""Spark's output, logs, pages and errors contain no secrets."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.redaction import SPARK_KEYS_REGEX, SPARK_TEXT_REGEX
from tests.support.secret_forms import (
    CATALOG_KEYS,
    OTHER_KEYS,
    STORE_KEYS,
    URI_FORMS,
    filled,
    found_in,
    new_secret,
)
from tests.support.spark_sessions import run_process

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.spark.secrets_application import main
main(Path(sys.argv[2]), sys.argv[3])
"""


def setting_of_documentation() -> str:
    """Return the setting that docs/ recommends for secrets passed at application start."""
    page = ROOT / "docs" / "guide" / "secrets.md"
    result = re.search(r"--conf 'spark\.redaction\.regex=([^']+)'", page.read_text("utf-8"))
    assert result is not None
    return result[1]


@pytest.mark.nightly
def test_no_secret_is_shown_anywhere(tmp_path: Path) -> None:
    script = tmp_path / "application.py"
    script.write_text(PROGRAM, encoding="utf-8")
    arguments = [str(script), str(ROOT), str(tmp_path), setting_of_documentation()]
    printed = run_process([sys.executable, *arguments], 400, errors=True)
    messages = json.loads((tmp_path / "shown.json").read_text("utf-8"))
    secrets = {
        f"{place} {key}": value.removeprefix("postgresql://me:").removesuffix("@h/db")
        for place, of_place in messages["secrets"].items()
        for key, value in of_place.items()
    }
    shown = {**messages["shown"], "stdout and stderr": printed}

    assert {
        name: actual for name, text in shown.items() if (actual := found_in(text, secrets))
    } == {}

    # The searched texts do contain the settings of the secrets.
    events = shown["event log"]
    assert "spark.sql.catalog.lake.s3.sse.key" in events
    assert "spark.sql.catalog.atstart.adls.connection-string" in events
    assert any("spark.sql.catalog.atstart.uri" in t for n, t in shown.items() if "environment" in n)
    assert "IcebergPyParquetScan" in shown["lake read explained extended"]
    assert "spark.sql.catalog.lake.token" in shown["SET"]
    assert "nonsense" in shown["error unknown option"]
    for name in ("oauth2", "bearer", "basic", "sigv4"):
        assert "no access with Authorization" in shown[f"error {name} refused"]
    assert "current-snapshot-id" in shown["table files"]
    assert len(shown) > 100
    for name in ("reader", "tasks", "writer"):
        assert "iceberg_pyspark" in shown[f"shipped {name}"]


SETTINGS = ("spark.sql.redaction.options.regex", "spark.sql.redaction.string.regex")


def test_settings_of_the_session_are_added_to_and_put_back(spark: SparkSession) -> None:
    before = [spark.conf.get(name) for name in SETTINGS]
    session = install(spark)
    try:
        assert str(spark.conf.get(SETTINGS[0])).startswith(f"{before[0]}|")
        again = [spark.conf.get(name) for name in SETTINGS]
        assert [install(spark).spark.conf.get(name) for name in SETTINGS] == again
    finally:
        session.uninstall()
    assert [spark.conf.get(name) for name in SETTINGS] == before
    spark.conf.set(SETTINGS[1], "mine")
    try:
        session = install(spark)
        assert str(spark.conf.get(SETTINGS[1])).startswith("mine|")
        session.uninstall()
        assert spark.conf.get(SETTINGS[1]) == "mine"
    finally:
        spark.conf.unset(SETTINGS[1])


def test_java_finds_what_python_finds(spark: SparkSession) -> None:
    """Java's regular expressions redact the forms that plans and settings have."""
    pattern: Any = spark._jvm.java.util.regex.Pattern  # type: ignore[union-attr]
    keys, texts = pattern.compile(SPARK_KEYS_REGEX), pattern.compile(SPARK_TEXT_REGEX)
    for key in (*CATALOG_KEYS, *STORE_KEYS, *OTHER_KEYS):
        assert keys.matcher(f"spark.sql.catalog.lake.{key}").find(), key
        for form in ("[{}={}, a=b]", "({},Some({}))", "Map({} -> {})", "OPTIONS ('{}' '{}')"):
            secret = new_secret()
            text = texts.matcher(form.format(key, secret)).replaceAll("***")
            assert secret not in text
            assert key in text
    for form in URI_FORMS:
        uri, secret = filled(form)
        assert keys.matcher(uri).find(), form
        assert secret not in texts.matcher(f"Location: [{uri}], a: b").replaceAll("***")
    for plain in (
        "s3://bucket/t/data/token=abc/f.parquet",
        "jdbc:oracle:thin:@//h:1521/x",
        "'Project ['token, 'id], Filter (token#1 = 5), struct<token:string>, EqualTo(secret,5)",
        "abfss://container@acc.dfs.core.windows.net/t",
    ):
        assert texts.matcher(plain).replaceAll("***") == plain
