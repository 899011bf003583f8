"""Writes of Spark, resolved from options, session and table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.errors import InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spark.write.resolved_write import ResolvedWrite, resolve_write, write_settings
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.table.commits.create_table import create_table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace(("db",))
    identifier = TableIdentifier(namespace=("db",), name="t")
    new = NewTable(schema=parse_schema("id INT"), properties={"write.target-file-size-bytes": "5"})
    table = Table(catalog, create_table(catalog, identifier, new))
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    return table


def resolved(table: Table, **options: str) -> ResolvedWrite:
    names = {k.replace("_", "-"): v for k, v in options.items()}
    settings = write_settings(names, {}, table.metadata.properties)
    return resolve_write("lake.db.t", table.catalog, table.loaded, settings)


def test_data_files_have_the_id_of_their_snapshot_in_their_names(table: Table) -> None:
    write = resolved(table)
    assert write.context().write_id == write.write_id == write.options.write_id
    assert resolved(table).write_id != write.write_id


def test_repetitions_of_a_transaction_have_one_id_and_different_files(table: Table) -> None:
    one, two = (resolved(table, txn_app_id="nightly", txn_version="7") for _ in range(2))
    assert one.options == two.options
    assert one.options.snapshot_properties["txn-version"] == "7"
    assert len({one.context().write_id, two.context().write_id, one.write_id}) == 3


def test_options_of_the_write_are_in_the_context_of_its_tasks(table: Table) -> None:
    context = resolved(table, write_format="orc", compression_codec="zstd").context()
    assert (context.file_format, context.target_file_size_in_bytes) == ("orc", 5)
    assert context.properties["write.orc.compression-codec"] == "zstd"
    with pytest.raises(InvalidRequestError, match="has no partition spec 3"):
        resolved(table, output_spec_id="3").context()


def test_a_branch_is_found_before_the_first_row(table: Table) -> None:
    assert resolved(table).base == table.metadata.current_snapshot
    with pytest.raises(NoSuchSnapshotError, match="has no branch or tag 'b'; there are: main"):
        resolved(table, branch="b")
    table.manage_snapshots().create_tag("b").commit()
    with pytest.raises(InvalidRequestError, match="'b' is a tag; commits go to branches"):
        resolved(table, branch="b")


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
        ({"shred-variants": "maybe"}, "shred-variants"),
        ({"variant-inference-buffer-size": "0"}, "variant-inference-buffer-size"),
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
    "shred-variants": "true",
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
    assert settings.properties["write.parquet.shred-variants"] == "true"
    assert settings.properties["write.parquet.variant-inference-buffer-size"] == "7"
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
