"""Settings of a write through Spark, and their precedence."""

from __future__ import annotations

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.write.resolved_write import write_settings

WAP = {"write.wap.enabled": "true"}


def test_an_option_goes_before_the_session_and_the_session_before_the_table() -> None:
    table = {"write.distribution-mode": "none", "write.spark.fanout.enabled": "true", "x": "y"}
    session = {
        "spark.sql.iceberg.distribution-mode": "hash",
        "spark.sql.iceberg.fanout-enabled": "false",
        "spark.sql.iceberg.snapshot-property.a": "session",
        "spark.sql.iceberg.snapshot-property.B": "session",
    }
    options = {"Distribution-Mode": "range", "snapshot-property.a": "option"}
    settings = write_settings(options, session, table)
    assert settings.properties == {
        "write.distribution-mode": "range",
        "write.spark.fanout.enabled": "false",
        "x": "y",
    }
    assert settings.options.snapshot_properties == {"a": "option", "B": "session"}


def test_a_branch_is_named_once() -> None:
    assert write_settings({}, {}, {}).branch == "main"
    assert write_settings({"branch": "b"}, {}, {}).branch == "b"
    assert write_settings({"branch": "b"}, {}, {}, branch="b").branch == "b"
    # An empty name is a nonexistent branch, never main.
    assert write_settings({"branch": ""}, {}, {}).branch == ""
    with pytest.raises(InvalidRequestError, match="keep one"):
        write_settings({"branch": "b"}, {}, {}, branch="c")


def test_write_audit_publish_is_for_tables_that_allow_it() -> None:
    session = {"spark.wap.id": "1"}
    assert write_settings({}, session, WAP).wap_id == "1"
    assert write_settings({}, session, {}).wap_id is None
    on_branch = write_settings({}, {"spark.wap.branch": "audit"}, WAP)
    assert (on_branch.branch, on_branch.creates_branch) == ("audit", True)
    with pytest.raises(InvalidRequestError, match="both set"):
        write_settings({}, {**session, "spark.wap.branch": "audit"}, WAP)
    with pytest.raises(InvalidRequestError, match="unset one"):
        write_settings({"branch": "b"}, {"spark.wap.branch": "audit"}, WAP)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target-file-size": "1"}, "unknown write option 'target-file-size'; known: "),
        ({"isolation-level": "none"}, "serializable or snapshot"),
        ({"overwrite-mode": "replace"}, "static or dynamic"),
        ({"txn-app-id": "a"}, "together"),
        ({"txn-version": "1"}, "together"),
        ({"txn-app-id": "a", "txn-version": "x"}, "is a whole number"),
        (
            {"txn-app-id": "a", "txn-version": "-1"},
            "0 and at most 9223372036854775807, got '-1'",
        ),
        ({"txn-app-id": "a", "txn-version": "9223372036854775808"}, "is a whole number"),
        ({"merge-schema": "maybe"}, "true or false"),
        ({"write-format": "csv"}, "'csv' is none of parquet, orc, avro"),
        ({"shred-variants": "true"}, "variants are not shredded"),
        ({"output-sort-order-id": "a"}, "is a whole number"),
        ({"validate-from-snapshot-id": "a"}, "is a whole number"),
    ],
)
def test_wrong_write_option_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        write_settings(options, {}, {})


# the write options of the reference implementation, each with a value that has an effect
JAVAS = {
    "branch": "b",
    "write-format": "orc",
    "delete-format": "avro",
    "target-file-size-bytes": "1",
    "target-delete-file-size-bytes": "1",
    "check-nullability": "false",
    "check-ordering": "false",
    "snapshot-property.a": "b",
    "fanout-enabled": "false",
    "output-spec-id": "1",
    "output-sort-order-id": "1",
    "overwrite-mode": "dynamic",
    "distribution-mode": "hash",
    "use-table-distribution-and-ordering": "false",
    "merge-schema": "true",
    "mergeSchema": "true",
    "validate-from-snapshot-id": "5",
    "isolation-level": "snapshot",
    "compression-codec": "zstd",
    "compression-level": "3",
    "compression-strategy": "speed",
    "advisory-partition-size": "5",
    "delete-granularity": "file",
    "shred-variants": "false",
    "variant-inference-buffer-size": "7",
    "use-merge-append-for-streaming": "true",
}


def test_every_option_of_javas_writes_is_known() -> None:
    for name, value in JAVAS.items():
        write_settings({name: value}, {}, {})
    settings = write_settings(JAVAS, {}, {})
    parsed = settings.options
    assert settings.properties["write.orc.compression-codec"] == "zstd"
    assert settings.properties["write.orc.compression-strategy"] == "speed"
    assert (parsed.spec_id, parsed.sort_order_id, parsed.validates_from) == (1, 1, 5)


@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        ({}, {}, "parquet"),
        ({"write.format.default": "avro"}, {}, "avro"),
        ({"write.format.default": "avro"}, {"write-format": "ORC"}, "orc"),
    ],
)
def test_compression_is_that_of_the_files_format(
    table: dict[str, str], options: dict[str, str], expected: str
) -> None:
    settings = write_settings({**options, "compression-codec": "zstd"}, {}, table)
    codec_keys = {k for k in settings.properties if k.endswith("compression-codec")}
    assert codec_keys == {f"write.{expected}.compression-codec"}


def test_the_rest() -> None:
    options = {
        "mergeSchema": "true",
        "isolation-level": "Snapshot",
        "txn-app-id": "app",
        "txn-version": "3",
        "output-spec-id": "0",
        "check-ordering": "false",
        "use-table-distribution-and-ordering": "false",
    }
    settings = write_settings(options, {}, {}).options
    assert settings.merges_schema
    assert settings.isolation == "snapshot"
    assert settings.transaction == ("app", 3)
    assert settings.spec_id == 0
    assert not settings.uses_distribution
