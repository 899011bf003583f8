"""jobs/ingest.py: it appends files to a table; its output and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.table.table import Table
from iceberg_pyspark.table.table_catalog import load_catalog
from jobs import ingest as job
from jobs.ingest import main
from tests.support.spark_sessions import SPARK_HOME, spark_environment


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def ingest(warehouse: Path, source: Path, *more: str, format: str = "csv") -> int:
    """Run the job in this process, so that it uses the Spark session of the tests."""
    return main(
        [
            *("--from", format, str(source), "--to", "lake.db.events"),
            *("--option", "catalog=lake", "--option", "catalog.type=sql"),
            *("--option", f"catalog.warehouse={warehouse}"),
            *more,
        ]
    )


def table(warehouse: Path) -> Table:
    return load_catalog("lake", type="sql", warehouse=str(warehouse)).load_table("db.events")


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.csv"
    file.write_text("id,kind\n1,a\n2,b\n3,a\n", encoding="utf-8")
    return file


def test_csv_creates_a_partitioned_table_and_reports_the_commit(
    spark: SparkSession, warehouse: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ingest(warehouse, events, "--partitioned-by", "kind") == 0
    output = capsys.readouterr().out
    assert "✓ csv" in output
    assert re.search(r"^table +lake\.db\.events\b", output, re.MULTILINE)
    assert re.search(r"^rows in all +3\b", output, re.MULTILINE)
    assert re.search(r"^files in all +2\b", output, re.MULTILINE)
    assert sorted(table(warehouse).scan().to_arrow().to_pylist(), key=lambda r: r["id"]) == [
        {"id": 1, "kind": "a"},
        {"id": 2, "kind": "b"},
        {"id": 3, "kind": "a"},
    ]


def test_json_overwrites_the_partitions_it_writes_to(
    spark: SparkSession, warehouse: Path, events: Path, tmp_path: Path
) -> None:
    ingest(warehouse, events, "--partitioned-by", "kind")
    newer = tmp_path / "newer.json"
    newer.write_text('{"id": 9, "kind": "a"}\n', encoding="utf-8")
    mode = ("--mode", "overwrite-partitions", "--schema", "id int, kind string")
    assert ingest(warehouse, newer, *mode, format="json") == 0
    assert sorted(table(warehouse).scan().to_arrow()["id"].to_pylist()) == [2, 9]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--option", "merge-schema=true"], "unknown write option"),
        (["--schema", "id string, kind string"], "cannot"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_2_and_leaves_the_table(
    spark: SparkSession,
    warehouse: Path,
    events: Path,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    message: str,
) -> None:
    assert ingest(warehouse, events) == 0
    before = table(warehouse).current_snapshot
    capsys.readouterr()
    assert ingest(warehouse, events, *more) == 2
    assert message in capsys.readouterr().err
    assert table(warehouse).current_snapshot == before


def test_missing_input_is_2(
    spark: SparkSession, warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ingest(warehouse, tmp_path / "nothing.csv") == 2
    assert "nothing.csv" in capsys.readouterr().err


def test_an_unknown_branch_is_3_and_leaves_the_table(
    spark: SparkSession, warehouse: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ingest(warehouse, events) == 0
    before = table(warehouse).current_snapshot
    assert ingest(warehouse, events, "--option", "branch=audit") == 3
    assert "has no branch or tag 'audit'" in capsys.readouterr().err
    assert table(warehouse).current_snapshot == before


def test_parquet_goes_into_a_folder_and_replaces_what_is_there(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.range(5).write.parquet(str(tmp_path / "in"))
    arguments = ["--from", "parquet", str(tmp_path / "in"), "--to", str(tmp_path / "table")]
    assert main(arguments) == 0
    assert main([*arguments, "--mode", "overwrite"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^rows removed +5\b", output, re.MULTILINE)
    assert re.search(r"^rows in all +5\b", output, re.MULTILINE)


def test_a_stream_ingests_each_file_once(
    spark: SparkSession, warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    folder.mkdir()

    def put(*ids: int) -> None:
        text = "".join(json.dumps({"id": i, "kind": "ab"[i % 2]}) + "\n" for i in ids)
        (folder / f"{ids[0]}.json").write_text(text, encoding="utf-8")

    def run(*more: str) -> str:
        options = ("--stream", str(checkpoint), "--partitioned-by", "kind", *more)
        code = ingest(warehouse, folder, *options, format="json")
        output = capsys.readouterr()
        return output.out if code == 0 else output.err

    put(1, 2)
    put(3)
    output = run("--read-option", "maxFilesPerTrigger=1")
    assert re.search(r"^rows added +3\b", output, re.MULTILINE)
    assert re.search(r"^rows in all +3\b", output, re.MULTILINE)
    assert [len(re.findall(f"^  batch {n}  ", output, re.MULTILINE)) for n in range(2)] == [1, 1]
    # nothing new is no batch and no snapshot
    snapshots = table(warehouse).snapshots
    assert re.search(r"^batches +0\b", run(), re.MULTILINE)
    assert table(warehouse).snapshots == snapshots
    put(4, 5)
    assert re.search(r"^rows added +2\b", run(), re.MULTILINE)
    rows = table(warehouse).scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": i, "kind": "ab"[i % 2]} for i in range(1, 6)]
    # a value that does not fit is no null
    (folder / "6.json").write_text('{"id": "x", "kind": "a"}', encoding="utf-8")
    error = run("--schema", "id bigint, kind string")
    assert "Encountered error while reading file" in error
    assert "/in/6.json" in error
    assert len(error.splitlines()) == 1
    assert len(table(warehouse).scan().to_arrow()) == 5


@pytest.mark.nightly
def test_spark_submit_passes_the_exit_code_on(tmp_path: Path) -> None:
    arguments = ["--from", "json", str(tmp_path / "nothing"), "--to", str(tmp_path / "table")]
    done = subprocess.run(
        [SPARK_HOME / "bin/spark-submit", "--master", "local[1]", job.__file__, *arguments],
        env=spark_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    # spark-submit prints what the job prints on both outputs as its standard output
    assert "error: [PATH_NOT_FOUND]" in done.stdout
    assert "Traceback" not in done.stdout


def test_bad_arguments_are_2_and_name_the_argument(
    warehouse: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = (
        ("orc", (), "parquet, csv or json, got 'orc'"),
        ("csv", ("--every", "5"), "--every is for a stream"),
        ("csv", ("--stream", "c", "--mode", "overwrite"), "leave out --mode overwrite"),
    )
    for format, more, message in cases:
        with pytest.raises(SystemExit) as raised:
            ingest(warehouse, events, *more, format=format)
        assert raised.value.code == 2
        assert message in capsys.readouterr().err
