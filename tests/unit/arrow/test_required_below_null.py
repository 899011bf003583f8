"""Required fields of structs that are null: their values do not exist, so they are written.

Arrow readers and casts leave nulls in such fields, which Arrow's writers refuse.
"""

from __future__ import annotations

import io as streams
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark.arrow.arrow_schemas import to_arrow_field, to_arrow_schema
from iceberg_pyspark.arrow.write.imported_files import written_partition
from iceberg_pyspark.arrow.write.write_context import WriteContext
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.manifests import FileFormat
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import BucketTransform, IdentityTransform
from iceberg_pyspark.spec.types import (
    FixedType,
    IntegerType,
    ListType,
    MapType,
    StringType,
    StructType,
    Type,
    UUIDType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.scan_tasks import context_of, optional, read_rows, required, schema_of, task_of

INNER = StructType(
    (
        required(20, "x", IntegerType()),
        optional(21, "y", StringType()),
        required(22, "u", UUIDType()),
    )
)
# Arrow casts types with uuids value by value, and views the others
PLAIN = StructType((required(20, "x", IntegerType()), optional(21, "y", StringType())))
TYPES: dict[str, Type] = {
    "struct": PLAIN,
    "struct of other types": StructType(
        (required(10, "x", IntegerType()), optional(11, "f", FixedType(2)))
    ),
    "twice": StructType((required(10, "d", INNER),)),
    "optional in required": StructType((optional(10, "d", INNER), required(11, "z", FixedType(2)))),
    "three times": StructType((optional(10, "d", StructType((optional(11, "e", PLAIN),))),)),
    "in list": ListType(element_id=10, element_type=INNER),
    "in map": MapType(key_id=10, key_type=StringType(), value_id=11, value_type=INNER),
    "list below": StructType(
        (required(10, "l", ListType(element_id=11, element_type=PLAIN, element_required=True)),)
    ),
    "map below": StructType(
        (
            required(
                10,
                "m",
                MapType(
                    key_id=11,
                    key_type=PLAIN,
                    value_id=12,
                    value_type=IntegerType(),
                    value_required=True,
                ),
            ),
        )
    ),
}
FORMATS: tuple[FileFormat, ...] = ("parquet", "orc", "avro")


def some(type_: Type, number: int) -> Any:
    """Return a value without nulls."""
    match type_:
        case StructType(fields=fields):
            return {f.name: some(f.type, number + i) for i, f in enumerate(fields)}
        case ListType():
            return [some(type_.element_type, number + i) for i in range(number % 3)]
        case MapType():
            return [(some(type_.key_type, number), some(type_.value_type, number))]
        case StringType():
            return f"text {number}"
        case UUIDType():
            return bytes([number]) * 16
        case FixedType(length=length):
            return bytes([number]) * length
        case _:
            return number


def rows_of(type_: Type) -> list[Any]:
    """Return values with nulls wherever a nullable struct, list or map may have one."""
    full = [some(type_, n) for n in range(1, 5)]
    match type_:
        case ListType():
            return [full[1], None, [full[1][0], None], [None], [], full[2]]
        case MapType():
            return [full[0], None, [("a", None), ("b", full[1][0][1])], [], full[2]]
        case StructType(fields=fields):
            less = {f.name: None if f.optional else some(f.type, 7) for f in fields}
            rows = [full[0], None, None, less, full[1], None, full[2]]
            for f in fields:
                if isinstance(f.type, StructType):
                    rows += [{**less, f.name: v} for v in rows_of(f.type) if v or f.optional]
            return rows
    raise NotImplementedError(type_)


def nulls_below(array: pa.Array) -> pa.Array:
    """Return the array with a null in every field of a null struct, required or not."""
    if isinstance(array, pa.StructArray):
        children = [nulls_below(array.field(i)) for i in range(array.type.num_fields)]
        valid = array.is_valid()
        children = [pa.compute.if_else(valid, c, pa.scalar(None, c.type)) for c in children]
        return pa.StructArray.from_arrays(
            children, fields=list(array.type), mask=pa.compute.invert(valid)
        )
    if isinstance(array, pa.MapArray):
        return pa.MapArray.from_arrays(
            array.offsets,
            nulls_below(array.keys),
            nulls_below(array.items),
            type=array.type,
            mask=array.is_null(),
        )
    if isinstance(array, pa.ListArray):
        return pa.ListArray.from_arrays(
            array.offsets, nulls_below(array.values), type=array.type, mask=array.is_null()
        )
    return array


def written(
    rows: pa.Table, schema: Schema, file_format: FileFormat, spec: PartitionSpec
) -> list[dict[str, Any]]:
    """Write the rows and return what is read again."""
    store = MemoryFileIO()
    context = WriteContext(
        table="db.t",
        table_location="mem/t",
        schema=schema,
        spec=spec,
        write_id="w",
        file_format=file_format,
    )
    files = write_data_files(context, rows.to_batches(), store, partition_id=0, task_id=0)
    return [
        row
        for f in files
        for row in read_rows(
            context_of(schema, specs=(spec,)),
            task_of(
                store,
                f.file_path,
                file_format=file_format,
                partition=f.partition,
                spec_id=spec.spec_id,
                record_count=f.record_count,
            ),
            store,
        )
    ]


WHOLE = PartitionSpec(spec_id=0)
SPLIT = PartitionSpec(
    spec_id=0,
    fields=(
        PartitionField(source_ids=(1,), field_id=1000, name="b", transform=BucketTransform(2)),
    ),
)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("name", TYPES)
def test_a_null_struct_with_required_fields_is_written(name: str, file_format: FileFormat) -> None:
    type_ = TYPES[name]
    schema = schema_of(required(1, "id", IntegerType()), optional(2, "c", type_))
    values = rows_of(type_)
    field = to_arrow_field(schema.fields[1])
    column = nulls_below(pa.array(values, field.type))
    table = pa.table(
        [pa.array(range(len(values)), pa.int32()), column], schema=to_arrow_schema(schema)
    )
    expected = table.to_pylist()
    assert [r["c"] for r in expected] == values
    for spec in (WHOLE, SPLIT):
        read = written(table, schema, file_format, spec)
        assert sorted(read, key=lambda r: r["id"]) == expected
    # in the middle of a longer array, in several chunks, and after a conversion
    assert written(table.slice(1, 4), schema, file_format, WHOLE) == expected[1:5]
    parts = pa.concat_tables([table.slice(2), table.slice(0, 2)])
    assert written(parts, schema, file_format, WHOLE) == [*expected[2:], *expected[:2]]
    other = table.set_column(0, "id", table["id"].cast(pa.int8())).select(["c", "id"])
    assert written(other, schema, file_format, WHOLE) == expected


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_null_in_a_required_field_of_a_struct_that_exists_is_refused(
    file_format: FileFormat,
) -> None:
    schema = schema_of(optional(2, "c", TYPES["list below"]))
    field = to_arrow_field(schema.fields[0])
    for value, path in (
        ({"l": None}, "c.l"),
        ({"l": [None]}, "c.l.element"),
        ({"l": [{"x": None, "y": "y"}]}, "c.l.element.x"),
    ):
        nullable = pa.array([None, value], nullable_everywhere(field.type))
        with pytest.raises(InvalidRequestError, match=rf"column '{path}' of table 'db.t' is req"):
            written(pa.table({"c": nullable}), schema, file_format, WHOLE)


def nullable_everywhere(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, nullable_everywhere(f.type)) for f in type_])
    if pa.types.is_list(type_):
        return pa.list_(nullable_everywhere(type_.value_type))
    return type_


def test_the_partition_of_a_file_of_others_may_lie_in_a_null_struct() -> None:
    type_ = StructType((required(3, "x", IntegerType()), optional(4, "u", UUIDType())))
    schema = schema_of(required(1, "id", IntegerType()), optional(2, "c", type_))
    spec = PartitionSpec(
        spec_id=0,
        fields=(
            PartitionField(source_ids=(3,), field_id=1000, name="x", transform=IdentityTransform()),
        ),
    )
    rows = pa.Table.from_pylist(
        [{"id": 1, "c": None}] * 2, schema=to_arrow_schema(schema, field_ids=True)
    )
    stream = streams.BytesIO()
    pq.write_table(rows, stream)
    context = WriteContext(
        table="db.t", table_location="mem/t", schema=schema, spec=spec, write_id="w"
    )
    assert written_partition(context, pq.ParquetFile(stream)) == (None,)
