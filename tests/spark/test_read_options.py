"""The rows that read options select on both paths, and the options that the data source refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from iceberg_pyspark import IcebergDataSource, Table
from iceberg_pyspark.errors import IcebergError, InvalidRequestError, NoSuchSnapshotError
from iceberg_pyspark.spark.data_source.reader import IcebergReader
from tests.support.data_source_steps import read_by_steps
from tests.support.frames import append_rows, create_path_table, path_table
from tests.support.read_paths import Read

SCHEMA = (
    "id BIGINT NOT NULL, name STRING, place STRUCT<x: INT, y: STRING>, tags ARRAY<STRING>, "
    "m MAP<STRING, INT>"
)
EVENTS: list[dict[str, Any]] = [
    {"id": 1, "name": "a", "place": {"x": 10, "y": None}, "tags": ["t"], "m": [("k", 1)]},
    {"id": 2, "name": "b", "place": None, "tags": [], "m": []},
    {"id": 3, "name": None, "place": {"x": None, "y": "why"}, "tags": None, "m": None},
]


LONG, INT, STRING = LongType(), IntegerType(), StringType()


def columns(*fields: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in fields])


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a table with three rows in three data files and two partitions."""
    path = tmp_path_factory.mktemp("options") / "events"
    table = create_path_table(path, SCHEMA, EVENTS[:2], partitioned_by=["truncate(2, id)"])
    append_rows(table, EVENTS[2:])
    return path


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Create snapshots of 1, 2 and 3 rows, a tag on the first, and a branch with its own row."""
    path = tmp_path_factory.mktemp("history") / "t"
    table = create_path_table(path, "id BIGINT", [{"id": 1}])
    first = table.snapshots[0].snapshot_id
    table.manage_snapshots().create_tag("first", first).create_branch("side", first).commit()
    append_rows(table, [{"id": 2}])
    append_rows(table, [{"id": 9}], branch="side")
    table.update_schema().add_column("note", "string").rename_column("id", "key").commit()
    append_rows(table, [{"key": 3, "note": "n"}])
    return table


def test_a_table_is_named_by_path_location_or_metadata_file(
    read: Read, events: Path, history: Table
) -> None:
    assert [row[0] for row in read(events).rows] == [1, 2, 3]
    assert [row[0] for row in read(f"file://{events}/").rows] == [1, 2, 3]
    older = history.metadata.metadata_log[1].metadata_file
    assert read(older).rows == [(1,)]


def test_columns_are_chosen_in_the_order_given(read: Read, events: Path) -> None:
    actual = read(events, {"columns": "m, place.y, ID"})
    shown = "struct<m:map<string,int>,place:struct<y:string>,id:bigint>"
    assert actual.schema.simpleString() == shown
    assert actual.rows[-1] == ((("k", 1),), (None,), 1)
    assert read(events, {"columns": "place.y, place.x"}).rows == [
        (None,),
        ((None, "why"),),
        ((10, None),),
    ]


def test_metadata_columns_are_read_when_asked_for(read: Read, events: Path) -> None:
    names = "id, _file, _pos, _spec_id, _partition, _deleted"
    actual = read(events, {"columns": names})
    files = list(path_table(events).scan().plan_files())
    # Partition 2 has one file from each append.
    assert sorted(f.partition for f in files) == [(0,), (2,), (2,)]
    assert {(row[1], row[4]) for row in actual.rows} == {(f.file_path, f.partition) for f in files}
    assert [(row[0], row[2], row[3], row[5]) for row in actual.rows] == [
        (i, 0, 0, False) for i in (1, 2, 3)
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("version", [1, 2, 3])
def test_row_lineage_is_null_before_version_3(read: Read, tmp_path: Path, version: int) -> None:
    properties = {"format-version": str(version)}
    table = create_path_table(
        tmp_path / "t", "id INT", [{"id": 7}, {"id": 8}], properties=properties
    )
    append_rows(table, [{"id": 9}])
    columns = {"columns": "id, _row_id, _last_updated_sequence_number"}
    expected: list[tuple[int | None, ...]] = [(7, 0, 1), (8, 1, 1), (9, 2, 2)]
    if version < 3:
        expected = [(i, None, None) for i in (7, 8, 9)]
    assert read(tmp_path / "t", columns).rows == expected


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        (columns(("place", columns(("y", STRING), ("x", INT))), ("id", LONG)), ((None, 10), 1)),
        (columns(("m", MapType(STRING, INT)), ("tags", ArrayType(STRING))), ((("k", 1),), ("t",))),
        (columns(("NAME", STRING), ("place", columns(("X", INT)))), ("a", (10,))),
        (StructType([StructField("id", LONG, nullable=False)]), (1,)),
    ],
)
def test_a_schema_chooses_columns_order_and_nested_fields(
    read: Read, events: Path, schema: StructType, first: tuple[Any, ...]
) -> None:
    actual = read(events, schema=schema)
    assert actual.schema.names == schema.names
    assert first in actual.rows
    assert len(actual.rows) == 3


@pytest.mark.parametrize(
    ("name", "type_", "message"),
    [
        ("id", INT, "column 'id' as int, the table has bigint; read it as it is and cast"),
        ("id", STRING, "column 'id' as string, the table has bigint"),
        ("place", columns(("x", LONG)), "column 'place.x' as bigint, the table has int"),
        ("place", columns(("z", INT)), "column 'place.z'; the table has: x, y"),
        ("tags", ArrayType(INT), "column 'tags.element' as int, the table has string"),
        ("tags", STRING, "column 'tags' as string, the table has array<string>"),
        ("tags", ArrayType(STRING, containsNull=False), "column 'tags.element' NOT NULL"),
        ("m", MapType(STRING, INT, valueContainsNull=False), "column 'm.value' NOT NULL"),
        ("nam", STRING, "asks for column 'nam'; the table has: id, name, place, tags, m"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    events: Path, name: str, type_: DataType, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(message)):
        read_by_steps(events, schema=columns((name, type_)))


def test_a_schema_may_not_forbid_the_nulls_of_the_table(events: Path) -> None:
    strict = StructType([StructField("name", STRING, nullable=False)])
    with pytest.raises(InvalidRequestError, match="column 'name' NOT NULL, the table allows nulls"):
        read_by_steps(events, schema=strict)
    inner = columns(("place", StructType([StructField("x", INT, nullable=False)])))
    with pytest.raises(InvalidRequestError, match=r"column 'place\.x' NOT NULL"):
        read_by_steps(events, schema=inner)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id >= 2 AND name IS NOT NULL", [2]),
        ("place.x = 10 OR id IN (3, 5)", [1, 3]),
        ("NAME = 'a'", [1]),
        ("name LIKE 'b%'", [2]),
        ("id < 0", []),
        ("true", [1, 2, 3]),
    ],
)
def test_a_filter_keeps_exactly_its_rows(
    read: Read, events: Path, text: str, ids: list[int]
) -> None:
    assert read(events, {"filter": text, "columns": "id"}).rows == [(i,) for i in ids]


def test_a_filter_skips_files(events: Path) -> None:
    split = {"split-size": 1, "file-open-cost": 0}
    assert read_by_steps(events, split).tasks == 3
    assert read_by_steps(events, {"filter": "id = 3", **split}).tasks == 1
    assert read_by_steps(events, {"filter": "id = 9", **split}).tasks == 0
    assert read_by_steps(events).tasks == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "id = = 1"}, "the filter 'id = = 1' cannot be parsed"),
        ({"filter": "id + 1 = 2"}, r"`id \+ 1 = 2` does not compare a column with a literal"),
        ({"filter": "idd = 1"}, "idd"),
        ({"filter": "name > 1"}, "name"),
        ({"filter": "ID = 1", "case-sensitive": "true"}, "ID"),
        ({"columns": "id, nme"}, "nme"),
        ({"columns": "ID", "case-sensitive": "true"}, "ID"),
        ({"snapshot-id": "x"}, "option snapshot-id is a whole number, got 'x'"),
        ({"snapshot-id": "12"}, "12"),
        ({"tag": "nope"}, "nope"),
        ({"branch": "nope"}, "nope"),
        ({"as-of-timestamp": "1"}, "no snapshot as of 1970-01-01T00:00:00"),
        ({"timestampAsOf": "yesterday"}, "'yesterday' is not a point in time"),
        ({"versionAsOf": "nope"}, "nope"),
        ({"snapshot-id": "1", "tag": "t"}, "snapshot_id and tag are both given"),
        ({"snapshotid": "1"}, "unknown read option 'snapshotid'; known: .*snapshot-id"),
        ({"catalog": "lake"}, "is a path, which belongs to no catalog"),
        ({"catalog.uri": "sqlite://"}, "is a path, which belongs to no catalog"),
    ],
)
def test_wrong_read_option_is_refused_by_name(
    events: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(IcebergError, match=message):
        read_by_steps(events, options)


def test_time_travel_by_every_option(read: Read, history: Table) -> None:
    first, second = history.snapshots[0], history.snapshots[1]
    old, newer = (("id",), [(1,)]), (("id",), [(1,), (2,)])
    now = (("key", "note"), [(1, None), (2, None), (3, "n")])
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"snapshot-id": first.snapshot_id}, old),
        ({"versionAsOf": first.snapshot_id}, old),
        ({"tag": "first"}, old),
        ({"versionAsOf": "first"}, old),
        ({"as-of-timestamp": second.timestamp_ms}, newer),
        ({"timestampAsOf": second.timestamp_ms // 1000 + 3600}, now),
        ({"branch": "main"}, now),
        # A branch is read with the table's current schema, not with the schema of its last
        # snapshot.
        ({"branch": "side"}, (("key", "note"), [(1, None), (9, None)])),
        ({"versionAsOf": "side"}, (("key", "note"), [(1, None), (9, None)])),
    ]
    for options, expected in cases:
        actual = read(history.location, options)
        assert (tuple(actual.schema.names), actual.rows) == expected, options


def test_appended_rows_by_every_option(read: Read, history: Table) -> None:
    first, second, _, last = history.snapshots
    both, newest = [(2, None), (3, "n")], [(3, "n")]
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"start-snapshot-id": first.snapshot_id}, both),
        ({"start-snapshot-id": first.snapshot_id, "end-snapshot-id": second.snapshot_id}, both[:1]),
        ({"Start-Snapshot-Id": first.snapshot_id, "filter": "key > 2"}, newest),
        ({"start-snapshot-id": first.snapshot_id, "branch": "side"}, [(9, None)]),
        ({"start-snapshot-id": last.snapshot_id}, []),
        ({"start-timestamp": second.timestamp_ms}, newest),
        ({"start-timestamp": first.timestamp_ms, "end-timestamp": last.timestamp_ms - 1}, both[:1]),
        ({"start-timestamp": 0, "end-timestamp": first.timestamp_ms}, [(1, None)]),
    ]
    for options, expected in cases:
        actual = read(history.location, options)
        assert (actual.schema.names, actual.rows) == (["key", "note"], expected), options
    with pytest.raises(NoSuchSnapshotError, match="an ancestor of"):
        read_by_steps(history.location, {"start-snapshot-id": history.refs["side"].snapshot_id})


def test_tag_as_branch_and_branch_as_tag_are_refused(history: Table) -> None:
    with pytest.raises(InvalidRequestError, match="is a tag; use the option tag"):
        read_by_steps(history.location, {"branch": "first"})
    with pytest.raises(InvalidRequestError, match="is a branch; use the option branch"):
        read_by_steps(history.location, {"tag": "side"})
    with pytest.raises(NoSuchSnapshotError):
        read_by_steps(history.location, {"snapshot-id": 1})


@pytest.mark.nightly
def test_a_projection_applies_to_the_snapshot_read(read: Read, history: Table) -> None:
    assert read(history.location, {"tag": "first", "columns": "id"}).rows == [(1,)]
    with pytest.raises(IcebergError, match="note"):
        read_by_steps(history.location, {"tag": "first", "columns": "note"})


def test_the_snapshot_is_pinned_by_the_first_step(tmp_path: Path) -> None:
    table = create_path_table(tmp_path / "t", "id BIGINT", [{"id": 1}])
    source = IcebergDataSource({"path": str(tmp_path / "t")})
    schema = source.schema()
    table.update_schema().add_column("more", "string").commit()
    append_rows(table, [{"id": 2, "more": "m"}])
    reader = source.reader(schema)
    assert isinstance(reader, IcebergReader)
    rows = [b.to_pylist() for p in reader.partitions() for b in reader.read(p)]
    assert rows == [[{"id": 1}]]


def test_no_filter_is_ever_pushed() -> None:
    """Spark 4.1 to 4.3 keeps pushed filters on the relation, which drops rows from its next use."""
    assert IcebergReader.pushFilters is DataSourceReader.pushFilters


def test_several_tables_or_none_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="no table is named"):
        IcebergDataSource({}).schema()
    with pytest.raises(InvalidRequestError, match="takes one table"):
        IcebergDataSource({"paths": '["/a","/b"]'}).schema()


def test_secrets_show_in_no_repr(events: Path) -> None:
    source = IcebergDataSource({"path": str(events), "s3.secret-access-key": "hush"})
    source.schema()
    assert "hush" not in repr(source._pinned_table)
