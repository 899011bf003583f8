"""Tables that PyIceberg wrote to a SQLite catalog, read by PyIceberg, Java and this package."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from tests.support.oracle import Oracle
from tests.support.parameters import cases
from tests.support.readings import (
    assert_filters_alike,
    assert_read_alike,
    java_planned_files,
    our_rows,
    our_scan,
)
from tests.support.rows import arrow_rows

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "s", StringType()),
    NestedField(3, "d", DoubleType()),
    NestedField(4, "dec", DecimalType(20, 3)),
    NestedField(5, "dt", DateType()),
    NestedField(6, "ts", TimestampType()),
    NestedField(7, "tstz", TimestamptzType()),
    NestedField(8, "bin", BinaryType()),
    NestedField(9, "fx", FixedType(2)),
    NestedField(10, "st", StructType(NestedField(11, "a", LongType()))),
    NestedField(12, "li", ListType(13, StringType(), element_required=False)),
    NestedField(14, "ma", MapType(15, StringType(), 16, LongType(), value_required=False)),
)
SPECS: dict[str, list[tuple[int, Transform, str]]] = {  # type: ignore[type-arg]
    "unpartitioned": [],
    "identity": [(2, IdentityTransform(), "s")],
    "transforms": [
        (1, BucketTransform(4), "id_bucket"),
        (2, TruncateTransform(2), "s_trunc"),
        (6, DayTransform(), "ts_day"),
        (7, HourTransform(), "tstz_hour"),
        (5, YearTransform(), "dt_year"),
        (4, IdentityTransform(), "dec"),
    ],
}


@pytest.fixture(scope="module")
def catalog(oracle: Oracle) -> Iterator[SqlCatalog]:
    oracle.sql("CREATE NAMESPACE java_sql.py")
    opened = SqlCatalog(
        "java_sql",
        uri=f"sqlite:///{oracle.sql_file}",
        warehouse=str(oracle.sql_warehouse),
    )
    yield opened
    opened.engine.dispose()


def rows(table: Table, *ids: int) -> pa.Table:
    """Return rows that depend on their ids; in every fourth row, optional columns are null."""
    return pa.table(
        {
            "id": ids,
            "s": [None if i % 4 == 3 else f"s{i}/é" for i in ids],
            "d": [None if i % 4 == 3 else float("nan") if i % 4 == 1 else i / 2 for i in ids],
            "dec": [None if i % 4 == 3 else Decimal(f"-{i}.125") for i in ids],
            "dt": [None if i % 4 == 3 else dt.date(1969, 12, 30) + dt.timedelta(i) for i in ids],
            "ts": [
                None if i % 4 == 3 else dt.datetime(1969, 12, 31, 23) + dt.timedelta(hours=i * 5)
                for i in ids
            ],
            "tstz": [
                None if i % 4 == 3 else dt.datetime(2026, 1, 1, i % 24, tzinfo=dt.timezone.utc)
                for i in ids
            ],
            "bin": [None if i % 4 == 3 else bytes([0, i]) for i in ids],
            "fx": [None if i % 4 == 3 else bytes([i, 0]) for i in ids],
            "st": [None if i % 4 == 3 else {"a": i} for i in ids],
            "li": [None if i % 4 == 3 else ["x", None][: i % 3] for i in ids],
            "ma": [None if i % 4 == 3 else [("k", i), ("n", None)] for i in ids],
        },
        schema=table.schema().as_arrow(),
    )


def create_table(catalog: SqlCatalog, name: str, spec: str, version: int) -> Table:
    fields = [
        PartitionField(source_id=source, field_id=1000 + i, transform=transform, name=field)
        for i, (source, transform, field) in enumerate(SPECS[spec])
    ]
    return catalog.create_table(
        f"py.{name}",
        SCHEMA,
        partition_spec=PartitionSpec(*fields),
        properties={"format-version": str(version)},
    )


@pytest.mark.parametrize("spec", SPECS)
@cases("version", fast=[2], nightly=[1])
def test_append_overwrite_and_delete(
    oracle: Oracle, catalog: SqlCatalog, spec: str, version: int
) -> None:
    table = create_table(catalog, f"{spec}_{version}", spec, version)
    name = f"java_sql.py.{spec}_{version}"
    table.append(rows(table, 0, 1, 2, 3, 4, 5))
    table.append(rows(table, 6, 7))
    assert our_rows(oracle, name) == arrow_rows(table.scan().to_arrow())
    table.delete("id == 2 or s == 's5/é'")
    table.overwrite(rows(table, 100), overwrite_filter="id == 4")
    with table.update_schema() as change:
        change.rename_column("d", "renamed")
        change.add_column("added", LongType())
    expected = arrow_rows(table.scan().to_arrow())
    assert len(expected) == 6
    assert assert_read_alike(oracle, name, through_spark=version == 2) == expected
    filters = (
        "id = 100",
        "s = 's1/é'",
        "ts < TIMESTAMP_NTZ '1970-01-01 00:00:00'",
        "dec < -3",
        "st.a >= 100",
        "dt IS NULL",
        "added IS NULL AND id > 3",
    )
    assert_filters_alike(oracle, name, filters, "id, st")
    for text in filters:
        kept_files = our_scan(oracle, name, filter=text).describe().statistics.data_files_kept
        assert kept_files == java_planned_files(oracle, name, text), text


@pytest.mark.nightly
def test_schema_and_partition_evolution(oracle: Oracle, catalog: SqlCatalog) -> None:
    table = create_table(catalog, "evolved", "identity", 2)
    table.append(rows(table, 0, 1, 2, 3))
    with table.update_spec() as spec:
        spec.remove_field("s")
        spec.add_field("dt", MonthTransform(), "m")
    with table.update_schema() as schema:
        schema.delete_column("bin")
        schema.move_first("s")
        schema.add_column(("st", "b"), StringType())
    with table.update_schema() as schema:
        schema.add_column("bin", StringType())
    own = pa.schema(
        [
            pa.field("bin", pa.string()),
            pa.field("id", pa.int64(), nullable=False),
            pa.field("dt", pa.date32()),
        ]
    )
    table.append(pa.table({"bin": ["x"], "id": [50], "dt": [None]}, schema=own))
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "first").commit()
    name = "java_sql.py.evolved"
    assert len(assert_read_alike(oracle, name, through_spark=True)) == 5
    tag = oracle.sql(f"SELECT * FROM {name} VERSION AS OF 'first'")
    assert len(assert_read_alike(oracle, name, tag, tag="first")) == 4
