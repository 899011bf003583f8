"""Table states by handle: their number is bounded, and a dropped state is read again."""

from dataclasses import replace
from pathlib import Path

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.changes.new_table import NewTable
from iceberg_pyspark.spark.table_states import TableState, TableStates
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import LongType, NestedField
from iceberg_pyspark.table.commits.create_table import create_table
from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector
from iceberg_pyspark.table.table import Table


def test_a_state_that_was_dropped_is_read_again_from_its_handle(tmp_path: Path) -> None:
    catalog = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace(("db",))
    identifier = TableIdentifier(namespace=("db",), name="t")
    schema = Schema(fields=(NestedField(field_id=1, name="id", type=LongType()),))
    loaded_table = create_table(catalog, identifier, NewTable(schema=schema))
    states = TableStates(lambda name: {"s/lake": catalog}[name], max_states=2)
    first = TableState(
        catalog="s/lake",
        loaded_table=loaded_table,
        selector=SnapshotSelector(tag="monday"),
        metadata_table="files",
    )
    handle = states.cache(first)
    assert states.cache(first) == handle
    table = Table(catalog, loaded_table)
    table.update_properties().set({"a": "b"}).commit()
    newer = TableState(
        catalog="s/lake", loaded_table=catalog.load_table(identifier), selector=SnapshotSelector()
    )
    others = [
        states.cache(newer),
        states.cache(replace(newer, selector=SnapshotSelector(branch="x"))),
    ]
    again = states.state(handle)
    assert again is not first
    assert again.loaded_table.metadata == loaded_table.metadata
    assert (again.selector, again.metadata_table) == (first.selector, "files")
    assert states.state(handle) is again
    assert len({handle, *others}) == 3
    assert states.state(others[0]).loaded_table.metadata.properties["a"] == "b"
