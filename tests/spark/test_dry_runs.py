"""A dry run of a procedure changes nothing, and counts what the procedure then does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from unittest.mock import MagicMock

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark import install
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.procedures.adoption import MigratedTable, SnapshotTable
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from jobs import maintain as job
from tests.support.procedure_work import (
    UNKNOWN_BEFORE,
    WITH_DRY_RUN,
    Lake,
    call_text,
    job_arguments,
    lake_of_both,
    make_work,
)

OF_REFS = {
    "ancestors_of",
    "cherrypick_snapshot",
    "create_changelog_view",
    "fast_forward",
    "publish_changes",
    "rollback_to_snapshot",
    "rollback_to_timestamp",
    "set_current_snapshot",
}
"""Procedures that only read, or that move a branch in one commit which another call undoes."""
OF_EACH_KIND = ("migrate", "remove_orphan_files", "rewrite_data_files", "snapshot")
"""A procedure that removes, one that writes, and those that only Spark has."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lake_of_both(spark, tmp_path_factory.mktemp("dry")) as lake:
        yield lake


def test_every_procedure_of_files_has_a_dry_run() -> None:
    assert {*WITH_DRY_RUN} == {*PROCEDURES} - OF_REFS


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in OF_EACH_KIND else pytest.mark.nightly) for n in WITH_DRY_RUN],
)
def test_a_dry_run_changes_nothing_and_counts_what_the_run_does(
    lake: Lake,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`dry_run` of CALL and `--plan` of the job have the result of the run, and leave no file."""
    arguments = make_work(lake, name, name)
    before = lake.state()
    planned = lake.session.sql(call_text(name, name, {**arguments, "dry_run": True})).collect()
    assert lake.state() == before
    sessions = MagicMock()
    sessions.builder.appName.return_value.getOrCreate.return_value = lake.session
    monkeypatch.setattr(job, "SparkSession", sessions)
    job.app([*job_arguments(name, name, arguments), "--plan", "--json"], standalone_mode=False)
    document = json.loads(capsys.readouterr().out)
    assert lake.state() == before
    actual = lake.session.sql(call_text(name, name, arguments)).collect()
    assert lake.state() != before
    assert any(value for row in actual for value in row)
    unknown = UNKNOWN_BEFORE.get(name, set())
    of_runs = ([row.asDict() for row in rows] for rows in (planned, actual))
    [expected, counts] = (
        [{k: v for k, v in row.items() if k not in unknown} for row in rows] for rows in of_runs
    )
    assert expected == counts
    of_job = document if isinstance(document, list) else [document]
    assert [{column: row[column] for column in counts[0]} for row in of_job] == counts


def test_methods_of_the_session_adopt_tables_of_spark(lake: Lake) -> None:
    session = install(lake.session)
    source = make_work(lake, "snapshot", "by_method")["source_table"]
    make_work(lake, "migrate", "moved")
    before = lake.state()
    assert session.snapshot(source, "spark_catalog.db.by_method", dry_run=True) == SnapshotTable(
        imported_files_count=1
    )
    assert session.migrate("spark_catalog.db.moved", dry_run=True) == MigratedTable(
        migrated_files_count=1
    )
    assert lake.state() == before
    properties = {"x": "y"}
    session.snapshot(source, "spark_catalog.db.by_method", properties=properties)
    session.migrate("db.moved", backup_table_name="moved_before", properties=properties)
    for name in ("by_method", "moved"):
        assert lake.catalog.load_table(f"db.{name}").properties["x"] == "y"
        assert lake.session.table(f"spark_catalog.db.{name}").collect() == [(1,)]
    assert "moved_before" in lake.state()[1]
    with pytest.raises(InvalidRequestError, match="is a path"):
        session.snapshot(source, "/a/path")


def test_a_dry_run_refuses_what_the_run_refuses(lake: Lake) -> None:
    """The name is taken, the files are in the table already, the folder is not there."""
    arguments = {
        name: make_work(lake, name, f"refused_{name}") for name in ("add_files", "register_table")
    }
    lake.session.sql(call_text("add_files", "refused_add_files", arguments["add_files"]))
    taken = "refused_register_table_original"
    source = {"source_table": "spark_catalog.db.refused_source"}
    lake.session.sql("CREATE TABLE db.refused_source (id BIGINT) USING parquet")
    for name, table, given, message in (
        ("add_files", "refused_add_files", arguments["add_files"], "would duplicate their rows"),
        ("register_table", taken, arguments["register_table"], "is already in catalog"),
        ("register_table", "free", {"metadata_file": "/nowhere/v1.metadata.json"}, "/nowhere"),
        ("snapshot", taken, source, "already exists"),
        ("migrate", taken, {}, "is already an Iceberg table"),
    ):
        before = lake.state()
        for is_dry in (True, False):
            with pytest.raises(PySparkException, match=message):
                lake.session.sql(call_text(name, table, {**given, "dry_run": is_dry})).collect()
        assert lake.state() == before
