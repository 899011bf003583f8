"""Options of the data source: parsed by name, and refused if unknown or malformed."""

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.read_options import (
    parse_read_options,
    parse_table_options,
    parse_write_options,
)
from iceberg_pyspark.spark.write.resolved_write import resolve_settings


def test_read_option_names_ignore_case() -> None:
    parsed = parse_read_options({"Snapshot-Id": "42", "COLUMNS": "a, `b,c`, s.x"})
    assert parsed.selector.snapshot_id == 42
    assert parsed.columns == ("a", "`b,c`", "s.x")


def test_unknown_read_option_is_refused_and_the_known_ones_are_listed() -> None:
    with pytest.raises(InvalidRequestError, match=r"unknown read option 'snapshotid'.*snapshot-id"):
        parse_read_options({"snapshotId": "42"})


def test_options_of_inserts_into_a_view_disturb_no_read() -> None:
    options = {"overwrite-mode": "dynamic", "snapshot-property.run": "7", "partitioned-by": "a"}
    assert parse_read_options(options) == parse_read_options({})


def test_options_of_reads_of_a_view_disturb_no_insert() -> None:
    options = {"split-size": "1", "case-sensitive": "true", "vectorization-enabled": "true"}
    assert parse_write_options(options) == parse_write_options({})


@pytest.mark.parametrize(
    "name", ["filter", "columns", "snapshot-id", "tag", "timestampAsOf", "start-timestamp"]
)
def test_a_view_of_a_part_of_the_table_takes_no_inserts(name: str) -> None:
    with pytest.raises(
        InvalidRequestError, match=f"option '{name.lower()}' selects rows or columns to read"
    ):
        parse_write_options({name: "1"})


def test_storage_and_catalog_keys_pass_through() -> None:
    parse_read_options({"catalog.uri": "sqlite:///x.db", "s3.endpoint": "http://127.0.0.1:1"})
    table = parse_table_options(
        {"path": "db.t", "catalog": "lake", "catalog.uri": "u", "s3.endpoint": "e"}
    )
    assert (table.table, table.catalog) == ("db.t", "lake")
    assert dict(table.catalog_properties) == {"uri": "u"}
    assert dict(table.storage_properties) == {"s3.endpoint": "e"}


def test_secrets_are_not_in_the_repr() -> None:
    table = parse_table_options(
        {"path": "t", "s3.secret-access-key": "hush", "catalog.token": "hush"}
    )
    assert "hush" not in repr(table)


def test_missing_table_names_the_ways_that_work() -> None:
    with pytest.raises(InvalidRequestError, match="CREATE TEMPORARY VIEW"):
        parse_table_options({})


def test_several_paths_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="takes one table"):
        parse_table_options({"paths": '["a","b"]'})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot-id": "x"}, "whole number"),
        ({"split-size": "0"}, "at least 1"),
        ({"case-sensitive": "maybe"}, "true or false"),
        ({"read.parquet.verify-checksum": "yes"}, "true or false"),
        ({"columns": "a,,b"}, "empty item"),
        ({"columns": "a,`b"}, "a backtick is not closed"),
        ({"snapshot-id": "1", "branch": "b"}, "one snapshot"),
        ({"as-of-timestamp": "1", "timestampAsOf": "2020-01-01"}, "both given"),
        ({"timestampAsOf": "yesterday"}, "not a point in time"),
        ({"Start-Snapshot-Id": "x"}, "option start-snapshot-id is a whole number, got 'x'"),
        ({"start-timestamp": "2026-01-01"}, "option start-timestamp is a whole number"),
        ({"start-snapshot-id": "1", "snapshot-id": "1"}, "snapshot-id for one snapshot"),
    ],
)
def test_malformed_read_values_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_read_options(options)


def test_partitioned_by_keeps_commas_inside_transforms() -> None:
    parsed = parse_write_options({"partitioned-by": "days(ts), bucket(16, id)"})
    assert parsed.partitioned_by == ("days(ts)", "bucket(16, id)")


def test_write_options_become_table_properties_of_this_write() -> None:
    parsed = parse_write_options(
        {
            "target-file-size-bytes": "1048576",
            "compression-codec": "snappy",
            "snapshot-property.run": "7",
            "table-property.owner": "me",
            "format-version": "3",
        }
    )
    assert resolve_settings(parsed, {}, {"write.format.default": "orc", "x": "y"}).properties == {
        "x": "y",
        "write.format.default": "orc",
        "write.target-file-size-bytes": "1048576",
        "write.orc.compression-codec": "snappy",
    }
    assert dict(parsed.snapshot_properties) == {"run": "7"}
    assert dict(parsed.table_properties) == {"owner": "me", "format-version": "3"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overwrite-mode": "partial"}, "static or dynamic"),
        ({"overwrite-mode": "filter"}, "overwrite-filter"),
        ({"overwrite-mode": "dynamic", "overwrite-filter": "a = 1"}, "no other overwrite-mode"),
        ({"merge-schema": "true"}, "unknown write option"),
    ],
)
def test_malformed_write_values_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        parse_write_options(options)


def test_an_overwrite_filter_alone_means_overwrite_by_filter() -> None:
    assert parse_write_options({"overwrite-filter": "a = 1"}).overwrite_mode == "filter"
