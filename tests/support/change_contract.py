"""Tests that table changes must pass in every catalog, including concurrent changes.

Use this class together with `CatalogContract`, whose fixtures it needs: `class
TestX(CatalogContract, ChangeContract)`. tests/catalogs/test_java_behaviours.py lists which test of
Java's catalogs each test here stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, TableCatalog
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.changes.changes import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AssertCreate,
    SetCurrentSchema,
    SetDefaultSpec,
)
from iceberg_pyspark.changes.new_table import NewTable, new_table_updates, replace_table
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import (
    CommitError,
    IcebergError,
    InvalidRequestError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.types import IntegerType, LongType, NestedField, StringType
from iceberg_pyspark.sql_text.ddl import parse_partitioning, parse_sort_order
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.table.commits.clock import SYSTEM_CLOCK
from iceberg_pyspark.table.commits.commit import MetadataStep, commit_steps
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.create_table import (
    create_table,
    create_table_with,
    planned_table,
)
from iceberg_pyspark.table.commits.new_data import write_rows
from iceberg_pyspark.table.commits.pending_changes import CommittedAtEnd
from iceberg_pyspark.table.commits.written_files import WrittenFiles
from tests.support.catalog_contract import SCHEMA, beside, create, first_metadata, new_name

OTHER_SCHEMA = Schema(
    fields=(NestedField(field_id=1, name="other", type=LongType(), required=True),)
)
EVERY_TYPE: list[types.Type] = [
    types.BooleanType(),
    types.IntegerType(),
    types.LongType(),
    types.FloatType(),
    types.DoubleType(),
    types.DecimalType(38, 10),
    types.DateType(),
    types.TimeType(),
    types.TimestampType(),
    types.TimestamptzType(),
    types.TimestampNsType(),
    types.TimestamptzNsType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(7),
    types.BinaryType(),
    types.UnknownType(),
    types.VariantType(),
    types.GeometryType(),
    types.GeometryType("EPSG:3857"),
    types.GeographyType(),
    types.GeographyType("OGC:CRS84", "karney"),
]
FAR = 4_000_000_000_000
"""A timestamp in the future, in milliseconds."""


def rows(*ids: int) -> pa.Table:
    """Return rows of `SCHEMA` with these ids."""
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())]
    return pa.table({"id": ids, "v": [f"v{i}" for i in ids]}, schema=pa.schema(fields))


def ids_in(table: Table) -> list[int]:
    """Return the ids of all rows, sorted."""
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def opened(catalog: Catalog, identifier: TableIdentifier) -> Table:
    """Load the current state of the table."""
    return Table(catalog, catalog.load_table(identifier))


def create_with_rows(
    catalog: Catalog, identifier: TableIdentifier, new: NewTable, *ids: int
) -> Callable[[], Any]:
    """Plan a new table together with its rows; the returned function creates both in one commit."""
    planned = planned_table(catalog, identifier, new)
    io = open_storage(planned.metadata.location, planned.config)
    _, files = write_rows(identifier, planned.metadata, io, rows(*ids))
    step = SnapshotStep(
        AppendFiles(data_files=tuple(files)),
        io,
        table_uuid=planned.metadata.table_uuid,
        clock=SYSTEM_CLOCK,
    )
    return lambda: create_table_with(
        catalog, identifier, planned.metadata, [step], written_files=WrittenFiles(io, files)
    )


def replace_with(
    table: Table, schema: Schema, *partitioned_by: str, properties: dict[str, str] | None = None
) -> None:
    """Replace the table with a new schema, partitioning and properties."""
    spec = parse_partitioning(partitioned_by, schema)
    step = MetadataStep(
        lambda m: replace_table(m, schema, spec, location=None, properties=properties or {})
    )
    commit_steps(table._catalog, table.loaded, [step])


class ChangeContract:
    # A server decides itself what it reports about a missing metadata file.
    reads_metadata_files: ClassVar[bool] = True

    @pytest.fixture
    def table(self, catalog: Catalog, identifier: TableIdentifier) -> Table:
        # A change that meets another one needs no long wait.
        return Table(catalog, create(catalog, identifier, {"commit.retry.min-wait-ms": "1"}))

    # creation

    @pytest.mark.parametrize("version", ["1", "2", "3"])
    def test_a_table_has_all_that_it_was_created_with(
        self, catalog: Catalog, identifier: TableIdentifier, version: str
    ) -> None:
        new = NewTable(
            schema=SCHEMA,
            spec=parse_partitioning(["bucket(16, id)"], SCHEMA),
            sort_order=parse_sort_order(["bucket(16, id)", "id DESC"], SCHEMA),
            properties={"user": "someone", "format-version": version},
        )
        created = create_table(catalog, identifier, new)
        loaded = catalog.load_table(identifier).metadata
        assert loaded == created.metadata
        assert str(loaded.format_version) == version
        assert [(f.name, str(f.transform)) for f in loaded.default_spec.fields] == [
            ("id_bucket", "bucket[16]")
        ]
        assert [(str(f.transform), f.direction) for f in loaded.default_sort_order.fields] == [
            ("bucket[16]", "asc"),
            ("identity", "desc"),
        ]
        assert loaded.properties["user"] == "someone"
        assert "format-version" not in loaded.properties

    def test_a_column_keeps_its_default(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        column = NestedField(
            field_id=1, name="n", type=IntegerType(), initial_default=12, write_default=10
        )
        new = NewTable(schema=Schema(fields=(column,)), properties={"format-version": "3"})
        create_table(catalog, identifier, new)
        [loaded] = catalog.load_table(identifier).metadata.current_schema.fields
        assert (loaded.initial_default, loaded.write_default) == (12, 10)

    def test_columns_of_every_type_are_created_and_added(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        nested = types.ListType(element_id=101, element_type=types.VariantType())
        by_name = types.MapType(
            key_id=102, key_type=StringType(), value_id=103, value_type=types.VariantType()
        )
        inner = NestedField(field_id=104, name="n", type=types.VariantType())
        column_types = [*EVERY_TYPE, nested, by_name, types.StructType(fields=(inner,))]
        columns = [
            NestedField(field_id=n, name=f"c{n}", type=each)
            for n, each in enumerate(column_types, start=1)
        ]
        new = NewTable(schema=Schema(fields=tuple(columns)), properties={"format-version": "3"})
        created = create_table(catalog, identifier, new)
        loaded = catalog.load_table(identifier).metadata
        assert loaded == created.metadata
        assert [f.type for f in loaded.current_schema.fields[: len(EVERY_TYPE)]] == EVERY_TYPE
        assert [str(f.type).count("variant") for f in loaded.current_schema.fields[-3:]] == [1] * 3
        table = opened(catalog, identifier)
        table.update_schema().add_column("more", "variant").commit()
        added = catalog.load_table(identifier).metadata.current_schema.fields
        assert added == (
            *loaded.current_schema.fields,
            NestedField(field_id=loaded.last_column_id + 1, name="more", type=types.VariantType()),
        )

    def test_a_type_of_version_3_needs_version_3(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        column = NestedField(field_id=1, name="n", type=types.VariantType())
        new = NewTable(schema=Schema(fields=(column,)), properties={"format-version": "2"})
        with pytest.raises(InvalidRequestError, match="variant needs format version 3"):
            create_table(catalog, identifier, new)
        assert not catalog.table_exists(identifier)

    def test_a_table_can_be_created_with_several_schemas_and_specs(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        first = first_metadata(catalog.default_table_location(identifier))
        wider = Schema(
            fields=(*SCHEMA.fields, NestedField(field_id=3, name="new", type=LongType()))
        )
        updates = (
            *new_table_updates(first),
            AddSchema(wider, 3),
            SetCurrentSchema(LAST_ADDED),
            AddPartitionSpec(parse_partitioning(["bucket(4, new)"], wider)),
            SetDefaultSpec(LAST_ADDED),
        )
        done = catalog.commit_table(identifier, (AssertCreate(),), updates).result()
        assert catalog.load_table(identifier) == done
        assert [len(s.fields) for s in done.metadata.schemas] == [2, 3]
        assert done.metadata.current_schema.fields == wider.fields
        assert len(done.metadata.partition_specs) == 2
        assert [f.name for f in done.metadata.default_spec.fields] == ["new_bucket"]

    def test_a_table_with_rows_is_there_all_at_once(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        commit = create_with_rows(catalog, identifier, NewTable(schema=SCHEMA), 1, 2)
        assert not catalog.table_exists(identifier)
        commit()
        table = opened(catalog, identifier)
        assert ids_in(table) == [1, 2]
        assert table.metadata.metadata_log == ()
        assert [s.sequence_number for s in table.snapshots] == [1]

    def test_concurrently_created_table_is_kept(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        commit = create_with_rows(catalog, identifier, NewTable(schema=SCHEMA), 1, 2)
        theirs = create_table(catalog, identifier, NewTable(schema=OTHER_SCHEMA))
        with pytest.raises(TableAlreadyExistsError):
            commit()
        assert catalog.load_table(identifier).metadata == theirs.metadata

    # loading, listing, dropping

    def test_tables_are_listed_in_their_own_namespace(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        second = beside(identifier)
        elsewhere = TableIdentifier(namespace=(new_name("db"),), name=identifier.name)
        catalog.create_namespace(elsewhere.namespace)
        for each in (identifier, second, elsewhere):
            create(catalog, each)
        assert catalog.list_tables(elsewhere.namespace) == [elsewhere]
        assert set(catalog.list_tables(identifier.namespace)) == {identifier, second}
        catalog.drop_table(identifier)
        assert catalog.list_tables(identifier.namespace) == [second]
        assert catalog.list_tables(elsewhere.namespace) == [elsewhere]

    def test_a_metadata_table(self, table: Table) -> None:
        table.append(rows(1))
        files = table.metadata_table("files").to_arrow()
        assert files["record_count"].to_pylist() == [1]

    def test_a_table_whose_metadata_file_is_gone_is_an_error(
        self, catalog: Catalog, identifier: TableIdentifier
    ) -> None:
        if not self.reads_metadata_files:
            return
        # Metadata that a live table holds is not read again, but here no table holds it.
        location, config = _place(create(catalog, identifier))
        storage = open_storage(location, config)
        content = storage.read_bytes(location)
        storage.delete(location)
        with pytest.raises(IcebergError, match=identifier.name):
            catalog.load_table(identifier)
        storage.create_exclusive(location, content)
        assert catalog.load_table(identifier).metadata_location == location

    def test_purging_deletes_files_and_dropping_does_not(
        self, catalog: Catalog, table: Table
    ) -> None:
        table.append(rows(1))
        [task] = table.scan().plan_files()
        files = [task.file_path, table.loaded.metadata_location]
        remaining = Table(catalog, create(catalog, beside(table.identifier)))
        remaining.append(rows(1))
        [kept_task] = remaining.scan().plan_files()
        catalog.drop_table(remaining.identifier)
        assert remaining.io.exists(kept_task.file_path)
        TableCatalog(catalog).drop_table(str(table.identifier), purge=True)
        assert not catalog.table_exists(table.identifier)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(table.identifier)
        assert [f for f in files if table.io.exists(f)] == []

    # concurrent changes

    def test_changed_schema_spec_and_order_are_loaded(self, catalog: Catalog, table: Table) -> None:
        table.update_schema().add_column("new", "long").commit()
        table.update_spec().add_field("id", "bucket[16]", "shard").commit()
        table.replace_sort_order().asc("id", "bucket[16]").asc("id").commit()
        loaded = catalog.load_table(table.identifier).metadata
        assert [f.name for f in loaded.current_schema.fields] == ["id", "v", "new"]
        assert [f.name for f in loaded.default_spec.fields] == ["shard"]
        assert len(loaded.default_sort_order.fields) == 2

    def test_a_change_taken_back_is_the_schema_spec_and_order_there_was(
        self, catalog: Catalog, table: Table
    ) -> None:
        first = table.metadata
        table.update_schema().add_column("a", "string").add_column("b", "string").commit()
        table.update_schema().drop_column("a").drop_column("b").commit()
        table.update_spec().add_field("id").commit()
        table.update_spec().remove_field("id").commit()
        table.replace_sort_order().asc("id").commit()
        table.replace_sort_order().commit()
        loaded = catalog.load_table(table.identifier).metadata
        assert loaded.current_schema == first.current_schema
        assert loaded.default_spec == first.default_spec
        assert loaded.default_sort_order == first.default_sort_order

    def test_expiry_removes_refs_schemas_and_specs_of_expired_snapshots(
        self, catalog: Catalog, table: Table
    ) -> None:
        table.append(rows(1))
        table.manage_snapshots().create_tag("gone", max_ref_age_ms=1).commit()
        table.manage_snapshots().create_branch("kept").commit()
        table.overwrite(rows(2))
        table.update_schema().add_column("more", "int").commit()
        table.update_spec().add_field("id").commit()
        wider = rows(3).append_column("more", pa.array([3], pa.int32()))
        table.overwrite(wider)
        table.append(wider)
        done = table.maintenance().expire_snapshots(older_than=FAR, clean_expired_metadata=True)
        now = opened(catalog, table.identifier)
        assert (done.expired_snapshots_count, done.expired_refs) == (2, ("gone",))
        assert {ref.snapshot_id for ref in now.refs.values()} == {
            s.snapshot_id for s in now.snapshots
        }
        assert ids_in(now) == [3, 3]
        now.manage_snapshots().remove_branch("kept").commit()
        now.maintenance().expire_snapshots(older_than=FAR, clean_expired_metadata=True)
        now.refresh()
        assert [len(all_) for all_ in (now.snapshots, now.metadata.schemas)] == [1, 1]
        assert len(now.metadata.partition_specs) == 1
        assert ids_in(now) == [3, 3]

    @pytest.mark.parametrize("last", ["schema", "spec", "order"])
    def test_concurrent_changes_of_different_parts_are_all_kept(
        self, catalog: Catalog, table: Table, last: str
    ) -> None:
        # Each change starts from the first state of the table, which other changes have replaced by
        # the time the change commits.
        one, two, three = (opened(catalog, table.identifier) for _ in range(3))
        waiting: dict[str, CommittedAtEnd] = {
            "schema": one.update_schema().add_column("new", "long"),
            "spec": two.update_spec().add_field("id", "bucket[16]", "shard"),
            "order": three.replace_sort_order().desc("id"),
        }
        for name in sorted(waiting, key=lambda name: name == last):
            waiting[name].commit()
        loaded = catalog.load_table(table.identifier).metadata
        assert len(loaded.metadata_log) == 3
        assert [f.name for f in loaded.current_schema.fields] == ["id", "v", "new"]
        assert [f.name for f in loaded.default_spec.fields] == ["shard"]
        assert [f.direction for f in loaded.default_sort_order.fields] == ["desc"]

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (
                lambda t: t.update_schema().add_column("new", "long"),
                lambda t: t.update_schema().drop_column("v"),
            ),
            (
                lambda t: t.update_schema().add_column("new", "long"),
                lambda t: t.update_schema().add_column("another", "string"),
            ),
            (
                lambda t: t.update_spec().add_field("v", "bucket[16]"),
                lambda t: t.update_spec().add_field("id", "bucket[16]"),
            ),
            (
                lambda t: t.update_spec().add_field("id", "bucket[16]", "shard"),
                lambda t: t.update_spec().add_field("id", "truncate[100]", "shard"),
            ),
        ],
        ids=["schema", "column-id", "spec", "field-id"],
    )
    def test_a_change_of_what_another_changed_is_refused(
        self, catalog: Catalog, table: Table, ours: Any, theirs: Any
    ) -> None:
        waiting = ours(table)
        theirs(opened(catalog, table.identifier)).commit()
        before = catalog.load_table(table.identifier)
        with pytest.raises(CommitError):
            waiting.commit()
        assert catalog.load_table(table.identifier) == before

    def test_a_change_of_a_table_that_was_recreated_is_refused(
        self, catalog: Catalog, table: Table
    ) -> None:
        waiting = table.update_schema().add_column("new", "long")
        catalog.drop_table(table.identifier)
        created = create_table(catalog, table.identifier, NewTable(schema=OTHER_SCHEMA))
        with pytest.raises(IcebergError):
            waiting.commit()
        assert catalog.load_table(table.identifier).metadata == created.metadata

    @pytest.mark.parametrize("is_empty", [True, False])
    def test_concurrent_appends_are_all_kept(
        self, catalog: Catalog, table: Table, is_empty: bool
    ) -> None:
        if not is_empty:
            table.append(rows(0))
        with table.transaction() as waiting:
            waiting.append(rows(1))
            opened(catalog, table.identifier).append(rows(2))
        actual = opened(catalog, table.identifier)
        assert ids_in(actual) == ([1, 2] if is_empty else [0, 1, 2])
        assert len(actual.snapshots) == (2 if is_empty else 3)

    def test_a_transaction_is_one_change(self, catalog: Catalog, table: Table) -> None:
        with table.transaction() as transaction:
            transaction.update_schema().add_column("new", "long").commit()
            transaction.update_spec().add_field("id", "bucket[16]", "shard").commit()
            transaction.append(rows(1))
            assert opened(catalog, table.identifier).metadata == table.metadata
        actual = opened(catalog, table.identifier)
        assert ids_in(actual) == [1]
        assert len(actual.metadata.metadata_log) == 1
        [task] = actual.scan().plan_files()
        assert task.spec_id == actual.spec.spec_id != 0

    # replaced tables

    def test_a_replaced_table_keeps_its_uuid_and_history(
        self, catalog: Catalog, table: Table
    ) -> None:
        table.append(rows(1))
        before = table.metadata
        replace_with(table, OTHER_SCHEMA, "bucket(4, other)", properties={"user": "someone"})
        actual = opened(catalog, table.identifier)
        assert actual.metadata.table_uuid == before.table_uuid
        assert actual.metadata.snapshots == before.snapshots
        assert actual.metadata.snapshot_log == before.snapshot_log
        assert actual.current_snapshot is None
        assert [f.name for f in actual.schema.fields] == ["other"]
        # A new column never gets the id of an earlier column.
        assert actual.schema.fields[0].field_id == 3
        assert len(actual.spec.fields) == 1
        assert actual.properties["user"] == "someone"

    def test_of_two_replacements_the_last_holds(self, catalog: Catalog, table: Table) -> None:
        other = opened(catalog, table.identifier)
        replace_with(other, SCHEMA, "bucket(16, id)")
        first = catalog.load_table(table.identifier)
        second_schema = Schema(fields=(NestedField(field_id=1, name="b", type=LongType()),))
        replace_with(table, second_schema)
        second = catalog.load_table(table.identifier).metadata
        assert second.table_uuid == first.metadata.table_uuid
        assert second.default_spec.is_unpartitioned
        # The second replacement starts from the result of the first, so no field id is used twice.
        assert [f.field_id for f in second.current_schema.fields] == [3]

    # registered tables

    def test_registered_table_continues_its_history(self, catalog: Catalog, table: Table) -> None:
        for n in range(3):
            table.append(rows(n))
        table.delete("id = 0")
        if not getattr(self, "can_register", True):
            return
        before = table.loaded
        catalog.drop_table(table.identifier)
        target = beside(table.identifier)
        registered = Table(catalog, catalog.register_table(target, before.metadata_location))
        assert registered.metadata == before.metadata
        assert ids_in(registered) == [1, 2]
        registered.append(rows(7))
        newest: Snapshot | None = opened(catalog, target).current_snapshot
        assert newest is not None
        assert newest.parent_snapshot_id == before.metadata.current_snapshot_id
        assert ids_in(opened(catalog, target)) == [1, 2, 7]


def _place(table: LoadedTable) -> tuple[str, Mapping[str, str]]:
    return table.metadata_location, table.config
