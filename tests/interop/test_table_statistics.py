"""Distinct counts of Java and of this package are equal for a table, and each reads the other's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.puffin.puffin import read_puffin_blob, read_puffin_footer
from iceberg_pyspark.formats.puffin.theta_sketches import THETA_SKETCH, ThetaSketch
from iceberg_pyspark.spark.procedures.executor_sketches import sketches_by_executors
from tests.support.native_lake import native_lake
from tests.support.oracle import Oracle
from tests.support.plan_statistics import known_columns
from tests.support.readings import our_table

pytestmark = pytest.mark.nightly

ROWS = """
    select id, if(id % 4 = 0, null, cast(id % 10 as int)) i, id % 2 = 0 b,
           cast(id % 9 as float) / 3 f, if(id % 5 = 0, double('nan'), -id * 0d) d,
           date_add(date'1969-12-30', cast(id % 5 as int)) dt,
           timestampadd(SECOND, cast(id % 6 as int), timestamp'1969-12-31 23:59:58') tz,
           timestampadd(DAY, cast(id % 6 as int), timestamp_ntz'2024-01-01 00:00:00') ts,
           if(id % 7 = 0, '', repeat('é', cast(id % 50 as int))) s,
           cast(cast(id % 11 as string) as binary) bin,
           cast((id - 128) * 0.01 as decimal(9, 2)) d9,
           cast(cast(id as decimal(20, 0)) * 100000000000000000 as decimal(38, 3)) d38,
           named_struct('a', id % 3) st, array(id) l, cast(null as bigint) n
    from range(400)
"""


@pytest.fixture(scope="module")
def lake(oracle: Oracle) -> Iterator[Oracle]:
    with native_lake(oracle) as native_oracle:
        oracle.sql("CREATE NAMESPACE IF NOT EXISTS java_hadoop.counted")
        yield native_oracle


def make(lake: Oracle, name: str, rows: str = ROWS) -> str:
    table = f"java_hadoop.counted.{name}"
    lake.sql(
        f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ('format-version' = '3', "
        f"'write.delete.mode' = 'merge-on-read') AS {rows}"
    )
    return table


def count(lake: Oracle, catalog: str, name: str, more: str = "") -> tuple[object, list[str]]:
    call = f"CALL {catalog}.system.compute_table_stats(table => 'counted.{name}'{more})"
    done = lake.sql(call)
    return done.schema, [row[0] for row in done.collect()]


def counts_in_metadata(lake: Oracle, table: str) -> dict[int, tuple[str, int, int, dict[str, str]]]:
    [file] = our_table(lake, table).metadata.statistics
    return {
        b.fields[0]: (b.type, b.snapshot_id, b.sequence_number, dict(b.properties))
        for b in file.blob_metadata
    }


def sketches(lake: Oracle, table: str) -> dict[int, ThetaSketch]:
    result = our_table(lake, table)
    [file] = result.metadata.statistics
    footer = read_puffin_footer(result.io, file.statistics_path)
    assert (footer.file_size, footer.footer_size) == (
        file.file_size_in_bytes,
        file.file_footer_size_in_bytes,
    )
    return {
        b.fields[0]: ThetaSketch.from_bytes(
            read_puffin_blob(result.io, file.statistics_path, b), file.statistics_path
        )
        for b in footer.blobs
        if b.type == THETA_SKETCH
    }


def test_the_same_sketches(lake: Oracle) -> None:
    """If a sketch can hold all values, both sketches contain the same hashes."""
    table = make(lake, "same")
    lake.sql(f"DELETE FROM {table} WHERE id % 40 = 3")
    schema, [file] = count(lake, "java_hadoop", "same")
    java, java_sketches = counts_in_metadata(lake, table), sketches(lake, table)
    our_schema, [our_file] = count(lake, "lake", "same")
    assert our_schema == schema
    assert our_file.rpartition("/")[0] == file.removeprefix("file:").rpartition("/")[0]
    assert counts_in_metadata(lake, table) == java
    assert len(java) == 13
    # Ours are kept when they are computed again; Java computes them again.
    assert count(lake, "lake", "same") == (schema, [our_file])
    ours = sketches(lake, table)
    for field_id, sketch in ours.items():
        assert sketch.to_bytes() == java_sketches[field_id].to_bytes(), field_id
    # Executors compute the same sketches, however the rows are distributed.
    done = our_table(lake, table).maintenance()
    again = count(lake, "java_hadoop", "same")[1]
    assert our_file.rpartition("/")[2] not in again[0]
    done.compute_table_stats(sketch_scan=partial(sketches_by_executors, lake.spark.sparkContext))
    assert counts_in_metadata(lake, table) == java
    by_executors = sketches(lake, table)
    assert [by_executors[i].to_bytes() for i in ours] == [s.to_bytes() for s in ours.values()]
    # Only the selected columns are counted.
    for catalog in ("java_hadoop", "lake"):
        count(lake, catalog, "same", ", columns => array('id', 's')")
        assert len(counts_in_metadata(lake, table)) == 2


def test_older_snapshots_and_tables_without(lake: Oracle) -> None:
    table = make(lake, "older", "select id from range(10)")
    first = our_table(lake, table).metadata.current_snapshot_id
    lake.sql(f"INSERT INTO {table} SELECT id FROM range(20)")
    more = f", snapshot_id => {first}"
    assert len(count(lake, "lake", "older", more)[1]) == 1
    [(_, snapshot_id, _, properties)] = counts_in_metadata(lake, table).values()
    assert (snapshot_id, properties) == (first, {"ndv": "10"})
    lake.sql("CREATE TABLE java_hadoop.counted.empty (id BIGINT) USING iceberg")
    for catalog in ("java_hadoop", "lake"):
        assert count(lake, catalog, "empty")[1] == []
        with pytest.raises(Exception, match="no_such"):
            count(lake, catalog, "older", ", columns => array('no_such')")
        with pytest.raises(Exception, match=r"snapshot|Snapshot"):
            count(lake, catalog, "older", ", snapshot_id => 5")
    with pytest.raises(InvalidRequestError, match="no_such"):
        our_table(lake, table).maintenance().compute_table_stats(columns=["no_such"])


def test_java_takes_ours_for_its_plans(lake: Oracle) -> None:
    """With more values than a sketch holds, both estimate; Java's optimizer uses our numbers."""
    table = make(lake, "many", "select id, concat('v', id % 50000) v from range(100000)")
    count(lake, "java_hadoop", "many")
    java, theirs = sketches(lake, table), counts_in_metadata(lake, table)
    count(lake, "lake", "many")
    ours = counts_in_metadata(lake, table)
    for field_id, truth in ((1, 100_000), (2, 50_000)):
        (_, _, _, java_says), (_, _, _, we_say) = theirs[field_id], ours[field_id]
        assert int(java_says["ndv"]) == pytest.approx(truth, rel=0.06)
        assert int(we_say["ndv"]) == pytest.approx(truth, rel=0.06)
        # Both hash values in the same way, so the union of the sketches counts no value twice.
        java[field_id].unite(sketches(lake, table)[field_id])
        assert java[field_id].distinct_count == pytest.approx(truth, rel=0.06)
    for key in ("spark.sql.cbo.enabled", "spark.sql.iceberg.report-column-stats"):
        lake.spark.conf.set(key, "true")
    lake.sql(f"REFRESH TABLE {table}")
    columns = known_columns(lake.spark.table(table))
    native = known_columns(lake.spark.table("lake.counted.many"))
    explained = lake.sql(f"EXPLAIN COST SELECT * FROM {table} WHERE v = 'v7'").collect()[0][0]
    for key in ("spark.sql.cbo.enabled", "spark.sql.iceberg.report-column-stats"):
        lake.spark.conf.unset(key)
    assert {n: c.distinct for n, c in columns.items()} == {
        "id": int(ours[1][3]["ndv"]),
        "v": int(ours[2][3]["ndv"]),
    }
    assert {n: c.distinct for n, c in native.items()} == {n: c.distinct for n, c in columns.items()}
    # The estimate is two or three rows: 100,000 rows with about 50,000 values.
    assert re.findall(r"rowCount=(\d+)\)", explained)[0] in ("2", "3")
