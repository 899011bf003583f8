"""Missing statistics files, and files without usable blobs, do not change query results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from iceberg_pyspark.changes.changes import SetStatistics
from iceberg_pyspark.spark.session import IcebergSession
from iceberg_pyspark.spec.statistics import BlobMetadata, StatisticsFile
from tests.support.native_lake import sqlite_lake
from tests.support.plan_statistics import KnownColumn, known_columns

THETA = "apache-datasketches-theta-v1"


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergSession]:
    with sqlite_lake(spark, tmp_path_factory.mktemp("counted"), "counted") as lake:
        spark.conf.set("spark.sql.cbo.enabled", "true")
        yield lake
        spark.conf.unset("spark.sql.cbo.enabled")


def set_statistics(
    session: IcebergSession, name: str, blobs: Mapping[tuple[int, ...], tuple[str, dict[str, str]]]
) -> None:
    """Set a statistics file that does not exist on the table's current snapshot."""
    table = session.table(f"counted.db.{name}")
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    file = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=f"{table.metadata.location}/metadata/lost.stats",
        file_size_in_bytes=100,
        file_footer_size_in_bytes=50,
        blob_metadata=tuple(
            BlobMetadata(
                type=type_,
                snapshot_id=snapshot.snapshot_id,
                sequence_number=snapshot.sequence_number,
                fields=fields,
                properties=properties,
            )
            for fields, (type_, properties) in blobs.items()
        ),
    )
    table.catalog.commit_table(table.loaded.identifier, [], [SetStatistics(file)])


def test_missing_statistics_are_unknown(session: IcebergSession) -> None:
    session.spark.sql(
        "create table counted.db.odd using iceberg as select id, id % 3 g, id % 5 h, 'a' b "
        "from range(30)"
    )
    set_statistics(
        session,
        "odd",
        {
            (1,): (THETA, {"ndv": "30"}),
            (2,): (THETA, {"ndv": "many"}),
            (3,): ("a-blob-of-tomorrow", {"ndv": "5"}),
            (4,): (THETA, {"ndv": "1"}),
            (2, 3): (THETA, {"ndv": "15"}),
            (99,): (THETA, {"ndv": "7"}),
        },
    )
    frame = session.spark.table("counted.db.odd")
    assert known_columns(frame) == {
        "id": KnownColumn(distinct=30, nulls=0, least="0", greatest="29"),
        "b": KnownColumn(distinct=1, nulls=0, least=None, greatest=None),
    }
    assert frame.where("id > 10 and g = 1").count() == 6


@pytest.mark.nightly
@pytest.mark.parametrize("count", ["9" * 5000, str(2**63), "-1", "٣"])
def test_invalid_statistics_count_is_ignored(session: IcebergSession, count: str) -> None:
    session.spark.sql(
        "create or replace table counted.db.hostile using iceberg as select id, id % 3 g "
        "from range(30)"
    )
    set_statistics(session, "hostile", {(1,): (THETA, {"ndv": count}), (2,): (THETA, {"ndv": "3"})})
    frame = session.spark.table("counted.db.hostile")
    assert known_columns(frame).keys() == {"g"}
    assert frame.join(frame.select("g").distinct(), "g").where("id > 10").count() == 19


@pytest.mark.nightly
def test_a_column_whose_nulls_or_bounds_are_not_known_is_left_out(session: IcebergSession) -> None:
    session.spark.sql(
        "create table counted.db.bounds using iceberg tblproperties "
        "('write.metadata.metrics.column.id'='counts', 'write.metadata.metrics.column.g'='none') "
        "as select id, id % 3 g, id % 5 h from range(30)"
    )
    set_statistics(session, "bounds", {(i,): (THETA, {"ndv": "3"}) for i in (1, 2, 3)})
    frame = session.spark.table("counted.db.bounds")
    assert known_columns(frame).keys() == {"h"}
    assert frame.where("id = 7 and g = 1 and h = 2").count() == 1
