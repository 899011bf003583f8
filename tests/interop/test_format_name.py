"""Our format beside the connector's: if the connector's jar is present, `iceberg` is its format."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as installed:
        oracle.sql("create namespace java_hadoop.format_names")
        yield installed


def test_both_formats_write_one_table(lake: Oracle) -> None:
    frame = lake.spark.range(3).selectExpr("id", "id % 2 part")
    frame.write.format("iceberg-py").partitionBy("part").save("lake.format_names.both")
    frame.write.format("iceberg").mode("append").save("java_hadoop.format_names.both")
    frame.write.format("iceberg-py").mode("append").save("lake.format_names.both")
    rows = lake.table_rows("java_hadoop.format_names.both")
    assert len(rows) == 9
    java = lake.spark.read.format("iceberg").load("java_hadoop.format_names.both")
    assert java.select("_spec_id").distinct().count() == 1, "the connector's hidden columns"
    ours = lake.spark.read.format("iceberg-py").load("lake.format_names.both")
    assert ours.count() == 9
