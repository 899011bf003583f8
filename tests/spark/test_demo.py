"""A small `make demo` succeeds and prints its main facts; the suggested commands work."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import demo
from tests.services import rest_fixture
from tests.services.iceberg_aws import s3_file_io_jars
from tests.support.spark_sessions import spark_environment

DEMO = demo.__file__


@pytest.mark.cluster
def test_the_demo_shows_skipped_files_and_two_snapshots(tmp_path: Path) -> None:
    shown = run_python(tmp_path, DEMO, "--scale", "0.01", "--folder", "demo folder")
    assert re.search(r"60,175 rows +1\.\d MB +demo folder/input/lineitem\.parquet", shown)
    assert "60,175 rows by months(l_shipdate) in 83 files" in shown
    assert re.search(r"reads 3 of 83 files, 0\.\d of \d\.\d MB", shown)
    assert "✓ the same from all files and columns" in shown
    assert "15,000 rows then, 16,000 rows now" in shown
    # Three queries, each with both times and their ratio.
    assert len(re.findall(r"│ \d+\.\d\d s +│ \d+\.\d\d s +│ \d+\.\dx +│", shown)) == 3
    # A merge wrote deletion vectors and a year was dropped with its files; all snapshots are
    # listed.
    assert re.search(r"│ overwrite +│ 235 +│ 160 +│ \+7 -0 +│ 16,075", shown)
    assert re.search(r"│ delete +│ 0 +│ 524 +│ \+0 -3 +│ 13,262", shown)
    assert "which mark 411 rows" in shown
    # The output has only the demo's own lines; Spark's lines are in the log.
    assert " WARN " not in shown
    assert " WARN " in (tmp_path / "demo folder/spark.log").read_text(encoding="utf-8")
    assert "--from parquet 'demo folder/input/orders.parquet' \\\n" in shown
    assert [line for line in shown.splitlines() if len(line) > 80 and "export" not in line] == []
    assert run_python(tmp_path, "-c", no_spark_block(shown)) == "1431\n"  # 1346 + 79 + 6 merged


LATER = pytest.mark.more("the test before has all chapters, and tests/spark/test_s3.py S3A")


@pytest.mark.cluster
@pytest.mark.parametrize("chapters", ["3", pytest.param("5", marks=LATER)])
def test_the_demo_skips_as_much_on_a_rest_catalog_and_s3(tmp_path: Path, chapters: str) -> None:
    s3_file_io_jars(rest_fixture.VERSION)  # skips the test if jars are missing
    arguments = ("--scale", "0.01", "--folder", "demo", "--catalog", "rest", "--chapters", chapters)
    shown = run_python(tmp_path, DEMO, *arguments)
    assert "60,175 rows by months(l_shipdate) in 83 files" in shown
    assert re.search(r"reads 3 of 83 files, 0\.\d of \d\.\d MB", shown)
    assert "✓ the same from all files and columns" in shown
    if chapters == "5":
        assert "15,000 rows then, 16,000 rows now" in shown
        assert len(re.findall(r"│ \d+\.\d\d s +│ \d+\.\d\d s +│ \d+\.\dx +│", shown)) == 3
    configuration = (tmp_path / "demo/.pyiceberg.yaml").read_text("utf-8")
    assert "type: rest" in configuration
    assert "warehouse: s3://" in configuration


def run_python(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        # The demo tells the user to `export PYICEBERG_HOME=`.
        env={**spark_environment(), "PYICEBERG_HOME": str(folder / "demo folder")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def no_spark_block(shown: str) -> str:
    """Return the code that the demo suggests for `python`, changed to print the last expression."""
    result = re.search(r"^import iceberg_pyspark as ice\n.*?(?=\n\n)", shown, re.M | re.S)
    assert result is not None
    *lines, last = result[0].splitlines()
    return "\n".join([*lines, f"print({last})"])


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(SystemExit, match="has files that are not of an Iceberg table"):
        demo.prepare_folder(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_what_an_earlier_demo_left_is_removed(tmp_path: Path) -> None:
    demo.prepare_folder(tmp_path / "demo")
    (tmp_path / "demo" / "catalog.db").touch()
    demo.prepare_folder(tmp_path / "demo")
    assert [f.name for f in (tmp_path / "demo").iterdir()] == [".pyiceberg.yaml"]
