"""A write as it is resolved before its first row: branch, ids, context."""

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
