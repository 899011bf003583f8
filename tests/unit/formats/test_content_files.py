"""Entries of files are read as they were written, with their partitions and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.spec.manifests import DataFile, EntryStatus, FileContent, ManifestEntry
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    Type,
    UnknownType,
    VariantType,
)
from iceberg_pyspark.spec.values import value_to_bytes
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.content_entries import (
    NO_FIELDS,
    NUMBERS,
    ROOT,
    TABLE,
    columns,
    parquet_fields,
    partition,
    read_entries,
    write_entries,
    written_and_read,
)
from tests.support.manifests import a_file, added
from tests.support.strategies import PRIMITIVE_TYPES, literals, nullable


def paths() -> st.SearchStrategy[str]:
    texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.text(":/.a%", max_size=6)
    places = st.sampled_from([TABLE, f"{TABLE}/data", "s3://b/tt", "file:/x", f"{TABLE}/a:b"])
    return st.builds(lambda place, text: f"{place}/{text}", places, texts)


def int_maps(ids: Iterable[int]) -> st.SearchStrategy[dict[int, int] | None]:
    return st.none() | st.dictionaries(st.sampled_from(list(ids)), st.integers(0, 2**63 - 1))


@st.composite
def bounds(draw: DrawFn, schema: Schema) -> dict[int, bytes] | None:
    literal_by_id = draw(
        st.none()
        | st.fixed_dictionaries({}, optional={f.field_id: literals(f.type) for f in schema.fields})
    )
    if literal_by_id is None:
        return None
    return {i: value_to_bytes(schema.field_by_id[i].type, v) for i, v in literal_by_id.items()}


@st.composite
def files(
    draw: DrawFn, schema: Schema, partition_types: Mapping[int, StructType], content: FileContent
) -> DataFile:
    spec_id = draw(st.sampled_from(list(partition_types)))
    ids = list(schema.field_by_id)
    floats = [f.field_id for f in schema.fields if isinstance(f.type, FloatType | DoubleType)]
    is_vector = content is FileContent.POSITION_DELETES
    is_data = content is FileContent.DATA
    numbers = st.integers(0, 2**63 - 1)
    return DataFile(
        content=content,
        file_path=draw(paths()),
        file_format="puffin" if is_vector else draw(st.sampled_from(["parquet", "avro", "orc"])),
        spec_id=spec_id,
        partition=tuple(draw(nullable(f.type)) for f in partition_types[spec_id].fields),
        record_count=draw(numbers),
        file_size_in_bytes=draw(numbers),
        value_counts=draw(int_maps(ids)),
        null_value_counts=draw(int_maps(ids)),
        nan_value_counts=draw(int_maps(floats)) if floats else None,
        lower_bounds=draw(bounds(schema)),
        upper_bounds=draw(bounds(schema)),
        key_metadata=draw(st.none() | st.binary(max_size=4)),
        split_offsets=draw(st.none() | st.lists(numbers, max_size=3).map(tuple)),
        equality_ids=(1, 2) if content is FileContent.EQUALITY_DELETES else None,
        sort_order_id=draw(st.none() | st.integers(0, 3)) if is_data else None,
        first_row_id=draw(st.none() | numbers) if is_data else None,
        referenced_data_file=draw(paths()) if is_vector else None,
        content_offset=draw(numbers) if is_vector else None,
        content_size_in_bytes=draw(numbers) if is_vector else None,
    )


@st.composite
def file_entries(
    draw: DrawFn,
    schema: Schema,
    partition_types: Mapping[int, StructType],
    contents: Sequence[FileContent] = tuple(FileContent),
) -> list[ManifestEntry]:
    numbers = st.integers(0, 2**63 - 1)
    return [
        ManifestEntry(
            status=draw(st.sampled_from(EntryStatus)),
            snapshot_id=draw(numbers),
            sequence_number=draw(numbers),
            file_sequence_number=draw(numbers),
            data_file=draw(files(schema, partition_types, content)),
        )
        for content in draw(st.lists(st.sampled_from(contents), max_size=5))
    ]


def comparable(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return entries whose values equal themselves, with empty metrics as None."""
    return [
        replace(
            e,
            data_file=replace(
                e.data_file,
                partition=partition_key(e.data_file.partition),
                column_sizes=None,
                value_counts=e.data_file.value_counts or None,
                null_value_counts=e.data_file.null_value_counts or None,
                nan_value_counts=e.data_file.nan_value_counts or None,
                lower_bounds=e.data_file.lower_bounds or None,
                upper_bounds=e.data_file.upper_bounds or None,
            ),
        )
        for e in entries
    ]


@given(data=st.data())
def test_entries_of_files_are_read_as_they_were_written(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), min_size=1, max_size=4))
    partition_types = {0: NO_FIELDS}
    for spec_id in (1, 2):
        fields = data.draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), max_size=3))
        partition_types[spec_id] = partition(
            *((1000 + 10 * spec_id + i, type_) for i, type_ in enumerate(fields))
        )
    # a partition field that two specs share
    partition_types[3] = StructType((*partition_types[1].fields, *partition_types[2].fields))
    schema = columns(*types)
    entries = data.draw(file_entries(schema, partition_types))
    expected: dict[Any, list[ManifestEntry]] = {}
    for entry in comparable(entries):
        file = entry.data_file
        kind = (file.content is FileContent.DATA, file.spec_id)
        expected.setdefault(kind, []).append(entry)
    actual: dict[Any, list[ManifestEntry]] = {}
    for entry in comparable(
        written_and_read(*entries, schema=schema, partition_types=partition_types)
    ):
        file = entry.data_file
        kind = (file.content is FileContent.DATA, file.spec_id)
        actual.setdefault(kind, []).append(entry)
    assert actual == expected


def test_every_primitive_type_has_a_place_in_partitions_and_bounds() -> None:
    schema = columns(*PRIMITIVE_TYPES)
    partition_types = {0: partition(*((1000 + i, t) for i, t in enumerate(PRIMITIVE_TYPES)))}

    @given(entries=file_entries(schema, partition_types, [FileContent.DATA]))
    def check(entries: list[ManifestEntry]) -> None:
        result = written_and_read(*entries, schema=schema, partition_types=partition_types)
        assert comparable(result) == comparable(entries)

    check()


def test_sizes_of_columns_are_not_written() -> None:
    file = a_file(f"{TABLE}/a", column_sizes={1: 5}, value_counts={1: 2})
    (entry,) = written_and_read(added(file, **NUMBERS), schema=columns(LongType()))
    assert entry.data_file.column_sizes is None
    assert entry.data_file.value_counts == {1: 2}


def test_paths_below_the_table_are_stored_relative_and_all_others_as_they_are() -> None:
    io = MemoryFileIO()
    names = ["data/a b%20é.parquet", "a:b", "/a", "../x", "", "1a:b"]
    stored = ["data/a b%20é.parquet", f"{TABLE}/a:b", "/a", "../x", "", "1a:b"]
    elsewhere = ["s3://b/tt/a", "file:/t/a", TABLE]
    all_paths = [*(f"{TABLE}/{name}" for name in names), *elsewhere]
    write_entries(io, [added(a_file(path), **NUMBERS) for path in all_paths])
    assert pq.read_table(pa.BufferReader(io.read_bytes(ROOT)))["location"].to_pylist() == [
        *stored,
        *elsewhere,
    ]
    assert [e.data_file.file_path for e in read_entries(io)] == all_paths


def test_without_a_location_of_the_table_paths_are_stored_as_they_are() -> None:
    io = MemoryFileIO()
    write_entries(io, [added(a_file(f"{TABLE}/a"), **NUMBERS)], table_location=None)
    assert pq.read_table(pa.BufferReader(io.read_bytes(ROOT)))["location"].to_pylist() == [
        f"{TABLE}/a"
    ]


def bounds_read(type_: PrimitiveType, *lower: bytes) -> list[bytes | None]:
    """Write files with these lower bounds of column 1; return the bounds as read back."""
    entries = [added(a_file(f"{TABLE}/a", lower_bounds={1: b}), **NUMBERS) for b in lower]
    result = written_and_read(*entries, schema=columns(type_))
    return [(e.data_file.lower_bounds or {}).get(1) for e in result]


@pytest.mark.parametrize(
    ("was", "value", "is_now", "promoted"),
    [
        (IntegerType(), -5, LongType(), -5),
        (FloatType(), 1.5, DoubleType(), 1.5),
        (DecimalType(9, 2), Decimal("-1.28"), DecimalType(38, 2), Decimal("-1.28")),
        (DateType(), 2, TimestampType(), 2 * 86_400_000_000),
    ],
)
def test_bounds_of_promoted_columns_are_of_the_new_type(
    was: Type, value: Any, is_now: PrimitiveType, promoted: Any
) -> None:
    old, new = value_to_bytes(was, value), value_to_bytes(is_now, promoted)
    assert bounds_read(is_now, old, new) == [new, new]


@pytest.mark.parametrize(
    ("type_", "bound"),
    [
        (IntegerType(), b""),
        (IntegerType(), bytes(8)),
        (LongType(), bytes(5)),
        (StringType(), b"\xff"),
        (DoubleType(), value_to_bytes(DoubleType(), float("nan"))),
        (FloatType(), value_to_bytes(FloatType(), float("nan"))),
        (DecimalType(2, 0), value_to_bytes(DecimalType(3, 0), Decimal(100))),
        (DecimalType(38, 0), b"\x01" * 17),
        (DecimalType(38, 0), b""),
        (DateType(), bytes(3)),
        (FixedType(2), b"abc"),
        (TimestampType(), b"\xff\xff\xff\x7f"),
    ],
    ids=str,
)
def test_bounds_of_another_type_are_left_out(type_: PrimitiveType, bound: bytes) -> None:
    zero = Decimal(0) if isinstance(type_, DecimalType) else 0
    good = {StringType(): b"a", FixedType(2): b"ab"}.get(type_) or value_to_bytes(type_, zero)
    assert bounds_read(type_, bound, good) == [None, good]


def test_truncated_bounds_of_fixed_length_still_bound_the_values() -> None:
    assert bounds_read(FixedType(3), b"a", b"abc") == [b"a\0\0", b"abc"]


def test_a_fixed_type_of_no_length_has_bounds() -> None:
    assert bounds_read(FixedType(0), b"") == [b""]


def test_only_columns_with_values_of_their_own_have_statistics() -> None:
    nested = StructType((NestedField(field_id=5, name="x", type=LongType()),))
    schema = columns(
        LongType(),
        nested,
        ListType(element_id=6, element_type=LongType()),
        UnknownType(),
    )
    schema = Schema(
        fields=(
            *schema.fields,
            NestedField(field_id=7, name="v", type=VariantType()),
            NestedField(field_id=8, name="g", type=GeometryType()),
            NestedField(field_id=999_950, name="beyond", type=LongType()),
        )
    )
    counts = dict.fromkeys([1, 2, 3, 4, 5, 6, 7, 8, 99, 999_950], 3)
    file = a_file(
        f"{TABLE}/a",
        value_counts=counts,
        nan_value_counts=counts,
        lower_bounds={i: bytes(8) for i in counts},
    )
    io = MemoryFileIO()
    write_entries(io, [added(file, **NUMBERS)], schema=schema)
    (entry,) = read_entries(io)
    assert entry.data_file.value_counts == {1: 3, 5: 3, 7: 3, 8: 3}
    assert entry.data_file.nan_value_counts == {}
    assert entry.data_file.lower_bounds == {1: bytes(8), 5: bytes(8)}
    actual = dict(parquet_fields(io.read_bytes(ROOT)))
    assert actual[11_000] == "content_stats.c2.x"
    assert [i for i in actual if i is not None and i >= 10_000] == [
        *(10_200, 10_201, 10_204),
        *(11_000, 11_001, 11_004),
        *(11_400, 11_404),
        *(11_600, 11_604),
    ]


def test_a_dropped_column_has_no_statistics() -> None:
    file = a_file(f"{TABLE}/a", value_counts={1: 3, 2: 4}, lower_bounds={2: bytes(8)})
    (entry,) = written_and_read(added(file, **NUMBERS), schema=columns(LongType()))
    assert entry.data_file.value_counts == {1: 3}
    assert not entry.data_file.lower_bounds


def test_columns_of_the_same_name_are_distinguished() -> None:
    nested = StructType((NestedField(field_id=2, name="b", type=LongType()),))
    schema = Schema(
        fields=(
            NestedField(field_id=1, name="a", type=nested),
            NestedField(field_id=3, name="a.b", type=StringType()),
        )
    )
    partition_types = {
        0: StructType((NestedField(field_id=1000, name="p", type=StringType()),)),
        1: StructType((NestedField(field_id=1001, name="p", type=IntegerType()),)),
    }
    one = a_file(
        f"{TABLE}/a", partition=("x",), lower_bounds={2: bytes(8), 3: b"t"}, value_counts={2: 1}
    )
    other = a_file(f"{TABLE}/b", spec_id=1, partition=(5,), value_counts={3: 2})
    io = MemoryFileIO()
    write_entries(
        io,
        [added(one, **NUMBERS), added(other, **NUMBERS)],
        schema=schema,
        partition_types=partition_types,
    )
    names = [name for _, name in parquet_fields(io.read_bytes(ROOT))]
    assert len(set(names)) == len(names)
    first, second = (e.data_file for e in read_entries(io, partition_types))
    assert (first.partition, second.partition) == (("x",), (5,))
    assert first.lower_bounds == {2: bytes(8), 3: b"t"}
    assert (first.value_counts, second.value_counts) == ({2: 1}, {3: 2})
