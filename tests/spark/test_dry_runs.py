"""A dry run of a procedure changes nothing, and counts what the procedure then does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from iceberg_pyspark.spark.procedures.calls import PROCEDURES
from tests.support.procedure_work import (
    UNKNOWN_BEFORE,
    WITH_DRY_RUN,
    Lake,
    call_text,
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


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lake_of_both(spark, tmp_path_factory.mktemp("dry")) as lake:
        yield lake


def test_every_procedure_of_files_has_a_dry_run() -> None:
    assert {*WITH_DRY_RUN} == {*PROCEDURES} - OF_REFS


@pytest.mark.parametrize("name", WITH_DRY_RUN)
def test_a_dry_run_changes_nothing_and_counts_what_the_run_does(lake: Lake, name: str) -> None:
    arguments = make_work(lake, name, name)
    before = lake.state()
    [*planned] = lake.session.sql(call_text(name, name, {**arguments, "dry_run": True})).collect()
    assert lake.state() == before
    [*actual] = lake.session.sql(call_text(name, name, arguments)).collect()
    after = lake.state()
    assert after != before
    unknown = UNKNOWN_BEFORE.get(name, set())
    counts = [{k: v for k, v in row.asDict().items() if k not in unknown} for row in actual]
    assert [
        {k: v for k, v in row.asDict().items() if k not in unknown} for row in planned
    ] == counts
    assert any(value for row in actual for value in row)


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
