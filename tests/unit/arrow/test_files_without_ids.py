"""Columns of files that have no field ids."""

import pyarrow as pa
import pytest

from iceberg_pyspark.errors import (
    InvalidMetadataError,
)
from iceberg_pyspark.expressions.predicates import BoundColumn, BoundLiteral
from iceberg_pyspark.spec.name_mapping import MappedField, NameMapping
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import (
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import (
    context_of,
    optional,
    read_rows,
    required,
    schema_of,
    spec_with_partition,
    task_of,
    write_rows,
    write_table,
)

FILE = "/db/t/data/f.parquet"
ID = required(1, "id", LongType())
MAP = pa.map_(pa.string(), pa.int64())


def mapped(field_id: int | None, *names: str, fields: tuple[MappedField, ...] = ()) -> MappedField:
    return MappedField(field_id=field_id, names=names, fields=fields)


def test_files_without_ids_use_the_name_mapping_at_every_depth() -> None:
    """docs/conformance.md 67."""
    io = MemoryFileIO()
    table = pa.table(
        {
            "old": [1],
            "a.b": ["literal"],
            "l": pa.array([[{"x": 1, "hidden": 2}]]),
            "m": pa.array(
                [[("k", {"x": 3})]], pa.map_(pa.string(), pa.struct([("x", pa.int64())]))
            ),
            "ignored": [9],
        }
    )
    write_table(io, FILE, table)
    struct = StructType((optional(11, "x", LongType()), optional(12, "hidden", LongType())))
    schema = schema_of(
        ID,
        optional(2, "named", StringType()),
        optional(3, "list", ListType(element_id=5, element_type=struct)),
        optional(
            4,
            "map",
            MapType(
                key_id=6,
                key_type=StringType(),
                value_id=7,
                value_type=StructType((optional(13, "y", LongType()),)),
            ),
        ),
        optional(8, "nowhere", LongType()),
    )
    mapping = NameMapping(
        fields=(
            mapped(1, "id", "old"),
            mapped(2, "a.b"),
            mapped(3, "l", fields=(mapped(5, "element", fields=(mapped(11, "x"),)),)),
            mapped(
                4,
                "m",
                fields=(
                    mapped(6, "key"),
                    mapped(7, "value", fields=(mapped(13, "x"),)),
                ),
            ),
            mapped(None, "ignored"),
            mapped(8),
        )
    )
    assert read_rows(context_of(schema, name_mapping=mapping), task_of(io, FILE), io) == [
        {
            "id": 1,
            "named": "literal",
            "list": [{"x": 1, "hidden": None}],
            "map": [("k", {"y": 3})],
            "nowhere": None,
        }
    ]


def test_a_file_with_ids_ignores_the_name_mapping() -> None:
    """docs/conformance.md 67."""
    io = MemoryFileIO()
    write_rows(io, FILE, schema_of(optional(9, "id", LongType())), [{"id": 5}])
    context = context_of(
        schema_of(optional(1, "id", LongType())),
        name_mapping=NameMapping(fields=(mapped(1, "id"),)),
    )
    assert read_rows(context, task_of(io, FILE), io) == [{"id": None}]


def test_a_file_without_ids_in_a_table_without_mapping_is_read_by_position() -> None:
    io = MemoryFileIO()
    write_table(
        io, FILE, pa.table({"id": ["x"], "b": [2], "l": [[3]], "m": pa.array([[("k", 4)]], MAP)})
    )
    names = [
        optional(2, "id", LongType()),
        optional(1, "b", StringType()),
        optional(3, "renamed", ListType(element_id=6, element_type=LongType())),
        optional(
            4,
            "m",
            MapType(key_id=7, key_type=StringType(), value_id=8, value_type=LongType()),
        ),
        optional(5, "later", LongType()),
    ]
    assert read_rows(context_of(schema_of(*names)), task_of(io, FILE), io) == [
        {"id": 2, "b": "x", "renamed": [3], "m": [("k", 4)], "later": None}
    ]
    column = BoundColumn(field_id=2, name="id", type=LongType(), required=False)
    greater = BoundLiteral("gt", column, 2)
    filtered = context_of(schema_of(*names), predicate=greater)
    assert read_rows(filtered, task_of(io, FILE), io) == []
    assert read_rows(context_of(schema_of()), task_of(io, FILE), io) == [{}]


def test_a_partition_column_takes_no_place_among_columns_without_ids() -> None:
    io = MemoryFileIO()
    write_table(io, FILE, pa.table({"a": [1], "b": [2]}))
    schema = schema_of(*(optional(i, f"c{i}", LongType()) for i in (1, 2, 3)))
    context = context_of(schema, specs=[spec_with_partition(IdentityTransform(), source_id=2)])
    task = task_of(io, FILE, spec_id=3, partition=(7,))
    assert read_rows(context, task, io) == [{"c1": 1, "c2": 7, "c3": None}]


def test_a_struct_of_a_file_without_ids_and_without_mapping_is_refused() -> None:
    io = MemoryFileIO()
    write_table(io, FILE, pa.table({"a": [1], "s": [[{"x": 1}]]}))
    struct = ListType(element_id=3, element_type=StructType((optional(4, "x", LongType()),)))
    with pytest.raises(InvalidMetadataError, match=r"column 's'.*schema\.name-mapping\.default"):
        read_rows(context_of(schema_of(optional(2, "s", struct))), task_of(io, FILE), io)
    number = schema_of(optional(1, "a", LongType()))
    assert read_rows(context_of(number), task_of(io, FILE), io) == [{"a": 1}]
