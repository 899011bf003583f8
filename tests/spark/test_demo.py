"""A small `make demo` succeeds and prints its main facts; the suggested commands work."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import demo
from tests.amounts import FULL_WORK
from tests.services import rest_fixture
from tests.services.iceberg_aws import s3_file_io_jars
from tests.support.spark_sessions import spark_environment

pytestmark = pytest.mark.nightly

CHAPTERS_OF_REST = 5 if FULL_WORK else 4
"""The fifth chapter is Spark SQL, which reads a bucket in test_s3.py too."""
# One JVM for both. The servers of the first one are gone when the second one starts over.
BOTH = f"""
import shutil, sys
from jobs import demo

arguments = ["--scale", "0.01", "--folder", "demo folder"]
status = demo.main([*arguments, "--catalog", "rest", "--chapters", "{CHAPTERS_OF_REST}"])
for name in (".pyiceberg.yaml", "spark.log"):
    shutil.copy("demo folder/" + name, "of rest " + name)
print("=" * 20, flush=True)
sys.exit(status or demo.main(arguments))
"""
SKIPPED = re.compile(r"reads (\d+ of \d+) files, (0\.\d of \d\.\d MB)")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Return a folder and what a demo prints there on a REST catalog and S3, and on a folder."""
    s3_file_io_jars(rest_fixture.VERSION)  # skips the test if jars are missing
    folder = tmp_path_factory.mktemp("demos")
    of_rest, _, of_folder = run_python(folder, "-c", BOTH).partition("=" * 20 + "\n")
    return folder, of_rest, of_folder


def test_the_demo_shows_skipped_files_and_two_snapshots(shown: tuple[Path, str, str]) -> None:
    folder, _, text = shown
    assert re.search(r"60,175 rows +1\.\d MB +demo folder/input/lineitem\.parquet", text)
    assert "60,175 rows by months(l_shipdate) in 83 files" in text
    assert re.search(r"reads 3 of 83 files, 0\.\d of \d\.\d MB", text)
    assert "✓ the same from all files and columns" in text
    assert "15,000 rows then, 16,000 rows now" in text
    # Three queries, each with both times and their ratio.
    assert len(re.findall(r"│ \d+\.\d\d s +│ \d+\.\d\d s +│ \d+\.\dx +│", text)) == 3
    # a stream has copied two appends in three batches
    batches = re.findall(r"│ (\d) +│ ([\d,]+) +│ [\d,]+ +│ \d+\.\d +│", text)
    assert [number for number, _ in batches] == ["0", "1", "2"]
    assert sum(int(rows.replace(",", "")) for _, rows in batches) <= 16_000
    assert "✓ the same again: nothing new" in text
    # A merge wrote deletion vectors and a year was dropped with its files; all snapshots are
    # listed.
    assert re.search(r"│ overwrite +│ 235 +│ 160 +│ \+7 -0 +│ 16,075", text)
    assert re.search(r"│ delete +│ 0 +│ 524 +│ \+0 -3 +│ 13,262", text)
    assert "which mark 411 rows" in text
    assert "--from parquet 'demo folder/input/orders.parquet' \\\n" in text
    assert [line for line in text.splitlines() if len(line) > 80 and "export" not in line] == []
    assert run_python(folder, "-c", no_spark_block(text)) == "1431\n"  # 1346 + 79 + 6 merged


def test_the_demo_skips_as_much_on_a_rest_catalog_and_s3(shown: tuple[Path, str, str]) -> None:
    folder, of_rest, of_folder = shown
    assert "type: rest" in (folder / "of rest .pyiceberg.yaml").read_text("utf-8")
    assert "warehouse: s3://" in (folder / "of rest .pyiceberg.yaml").read_text("utf-8")
    assert re.findall(r"^(\d)\. ", of_rest, re.M) == list("12345"[:CHAPTERS_OF_REST])
    skipped = [SKIPPED.findall(text) for text in (of_rest, of_folder)]
    assert skipped[0] == skipped[1] == [("3 of 83", skipped[0][0][1])]
    for line in ("✓ the same from all files and columns", "15,000 rows then, 16,000 rows now"):
        assert line in of_rest
    times = re.findall(r"│ \d+\.\d\d s +│ \d+\.\d\d s +│ \d+\.\dx +│", of_rest)
    assert len(times) == (3 if CHAPTERS_OF_REST == 5 else 0)
    # The output has only the demo's own lines; Spark's lines are in the log.
    assert " WARN " not in of_rest + of_folder
    assert " WARN " in (folder / "of rest spark.log").read_text("utf-8")


def run_python(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        # The demo tells the user to `export PYICEBERG_HOME=`.
        env={**spark_environment(), "PYICEBERG_HOME": str(folder / "demo folder")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=500,
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


def test_files_of_an_earlier_demo_are_removed(tmp_path: Path) -> None:
    demo.prepare_folder(tmp_path / "demo")
    (tmp_path / "demo" / "catalog.db").touch()
    demo.prepare_folder(tmp_path / "demo")
    assert [f.name for f in (tmp_path / "demo").iterdir()] == [".pyiceberg.yaml"]
