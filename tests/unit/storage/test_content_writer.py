"""Written content entries are read back unchanged, and entries that break rules are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.errors import FileAlreadyExistsError, InvalidRequestError
from iceberg_pyspark.spec.content_entries import (
    ContentStatus,
    LeafEntry,
    ManifestVectorEntry,
    RootEntry,
)
from iceberg_pyspark.spec.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
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
from iceberg_pyspark.storage.content_rules import Content
from iceberg_pyspark.storage.content_writer import write_content_entries
from iceberg_pyspark.storage.deletion_vectors import encode_deletion_vector, write_deletion_vectors
from iceberg_pyspark.storage.local import LocalFileIO
from iceberg_pyspark.storage.manifest_reader import read_manifest_entries
from iceberg_pyspark.storage.memory import MemoryFileIO
from iceberg_pyspark.storage.root_manifests import read_root_manifest
from tests.support.manifests import NO_COLUMNS, a_file, added, deleted, existing
from tests.support.strategies import PRIMITIVE_TYPES, literals, nullable

TABLE = "s3://b/t"
ROOT = f"{TABLE}/metadata/root.parquet"
SNAPSHOT = Snapshot(
    snapshot_id=7, sequence_number=9, timestamp_ms=0, root_manifest=ROOT, table_location=TABLE
)
NO_FIELDS = StructType(())
NUMBERS = {"snapshot_id": 7, "sequence_number": 9, "file_sequence_number": 9}


def columns(*types: Type) -> Schema:
    return Schema(
        fields=tuple(
            NestedField(field_id=i, name=f"c{i}", type=type_) for i, type_ in enumerate(types, 1)
        )
    )


def partition(*types: tuple[int, Type]) -> StructType:
    return StructType(tuple(NestedField(field_id=i, name=f"p{i}", type=t) for i, t in types))


def write(
    io: MemoryFileIO,
    entries: Iterable[RootEntry],
    location: str = ROOT,
    *,
    content: Content = "root",
    schema: Schema = NO_COLUMNS,
    partition_types: Mapping[int, StructType] = {0: NO_FIELDS},
    **more: Any,
) -> int:
    return write_content_entries(
        io,
        location,
        entries,
        content=content,
        schema=schema,
        partition_types=partition_types,
        **{"table_location": TABLE, **more},
    ).length


def read(
    io: MemoryFileIO, partition_types: Mapping[int, StructType] = {0: NO_FIELDS}
) -> list[ManifestEntry]:
    """Return the files of the root's own entries and of its leaves, including deleted files."""
    return [
        e
        for m in read_root_manifest(io, ROOT, SNAPSHOT)
        for e in read_manifest_entries(io, m, partition_types[m.partition_spec_id])
    ]


def written_and_read(*entries: RootEntry, **how: Any) -> list[ManifestEntry]:
    io = MemoryFileIO()
    write(io, entries, **how)
    return read(io, how.get("partition_types", {0: NO_FIELDS}))


def parquet_fields(data: bytes) -> Iterator[tuple[int | None, str]]:
    """Yield id and path of every field of a Parquet file."""

    def below(fields: Iterable[pa.Field], path: str) -> Iterator[tuple[int | None, str]]:
        for field in fields:
            text = (field.metadata or {}).get(b"PARQUET:field_id")
            yield None if text is None else int(text), f"{path}{field.name}"
            if pa.types.is_struct(field.type):
                yield from below(field.type, f"{path}{field.name}.")
            elif pa.types.is_list(field.type):
                yield from below([field.type.value_field], f"{path}{field.name}.")

    return below(pq.read_metadata(pa.BufferReader(data)).schema.to_arrow_schema(), "")


# --- files ----------------------------------------------------------------------------------------


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
    write(io, [added(a_file(path), **NUMBERS) for path in all_paths])
    assert pq.read_table(pa.BufferReader(io.read_bytes(ROOT)))["location"].to_pylist() == [
        *stored,
        *elsewhere,
    ]
    assert [e.data_file.file_path for e in read(io)] == all_paths


def test_without_a_location_of_the_table_paths_are_stored_as_they_are() -> None:
    io = MemoryFileIO()
    write(io, [added(a_file(f"{TABLE}/a"), **NUMBERS)], table_location=None)
    assert pq.read_table(pa.BufferReader(io.read_bytes(ROOT)))["location"].to_pylist() == [
        f"{TABLE}/a"
    ]


# --- statistics -----------------------------------------------------------------------------------


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
def test_bounds_that_are_none_of_the_type_are_left_out(type_: PrimitiveType, bound: bytes) -> None:
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
    write(io, [added(file, **NUMBERS)], schema=schema)
    (entry,) = read(io)
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


def test_columns_of_one_name_are_told_apart() -> None:
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
    write(
        io,
        [added(one, **NUMBERS), added(other, **NUMBERS)],
        schema=schema,
        partition_types=partition_types,
    )
    names = [name for _, name in parquet_fields(io.read_bytes(ROOT))]
    assert len(set(names)) == len(names)
    first, second = (e.data_file for e in read(io, partition_types))
    assert (first.partition, second.partition) == (("x",), (5,))
    assert first.lower_bounds == {2: bytes(8), 3: b"t"}
    assert (first.value_counts, second.value_counts) == ({2: 1}, {3: 2})


# --- manifests and their vectors ------------------------------------------------------------------


def leaf(path: str = f"{TABLE}/metadata/leaf.parquet", **values: Any) -> ManifestFile:
    return ManifestFile(
        **{
            "manifest_path": path,
            "manifest_length": 321,
            "partition_spec_id": 0,
            "sequence_number": 8,
            "min_sequence_number": 3,
            "added_snapshot_id": 6,
            "added_files_count": 1,
            "existing_files_count": 2,
            "deleted_files_count": 3,
            "added_rows_count": 10,
            "existing_rows_count": 20,
            "deleted_rows_count": 30,
            "table_location": TABLE,
            **values,
        }
    )


def leaf_entry(status: ContentStatus = ContentStatus.EXISTING, **values: Any) -> LeafEntry:
    return LeafEntry(status=status, manifest=leaf(**values))


def vector_entry(status: ContentStatus = ContentStatus.ADDED, **values: Any) -> ManifestVectorEntry:
    return ManifestVectorEntry(
        **{
            "status": status,
            "snapshot_id": 7,
            "sequence_number": 9,
            "spec_id": 0,
            "leaf": f"{TABLE}/metadata/leaf.parquet",
            "cardinality": 2,
            "inline": encode_deletion_vector([0, 3]),
            **values,
        }
    )


def manifests(*entries: RootEntry, io: MemoryFileIO | None = None) -> list[ManifestFile]:
    io = MemoryFileIO() if io is None else io
    write(io, entries)
    return read_root_manifest(io, ROOT, SNAPSHOT)


def test_manifests_are_read_as_they_were_written() -> None:
    data = leaf(first_row_id=40, key_metadata=b"k")
    older = leaf("s3://elsewhere/m.avro", partition_spec_id=2)
    deletes = leaf(f"{TABLE}/metadata/d.parquet", content=ManifestContent.DELETES)
    removed = leaf(f"{TABLE}/metadata/gone.parquet")
    actual = manifests(
        LeafEntry(status=ContentStatus.EXISTING, manifest=data),
        LeafEntry(status=ContentStatus.EXISTING, manifest=older),
        LeafEntry(status=ContentStatus.ADDED, manifest=deletes, referenced_file=data.manifest_path),
        LeafEntry(status=ContentStatus.DELETED, manifest=removed),
    )
    assert actual == [data, older, deletes]


def test_an_entry_of_a_manifest_has_its_format_its_entries_and_one_age() -> None:
    io = MemoryFileIO()
    deletes = leaf(f"{TABLE}/metadata/d.AVRO.avro", content=ManifestContent.DELETES)
    entry = LeafEntry(
        status=ContentStatus.ADDED, manifest=deletes, referenced_file=f"{TABLE}/metadata/m.parquet"
    )
    write(io, [entry, leaf_entry()])
    row, other = pq.read_table(pa.BufferReader(io.read_bytes(ROOT))).to_pylist()
    version = {"status": 1, "snapshot_id": 6, "sequence_number": 8, "file_sequence_number": 8}
    assert row["version_info"] == version
    assert (row["content_type"], row["file_format"], row["record_count"]) == (4, "avro", 6)
    assert (row["location"], row["referenced_file"]) == (
        "metadata/d.AVRO.avro",
        "metadata/m.parquet",
    )
    assert (other["content_type"], other["file_format"]) == (3, "parquet")
    assert other["manifest_stats"]["min_sequence_number"] == 3


def test_the_ids_of_rows_are_those_of_data_manifests() -> None:
    (actual,) = manifests(leaf_entry(content=ManifestContent.DELETES, first_row_id=5))
    assert actual.first_row_id is None


def test_an_inline_vector_takes_entries_out_of_its_manifest() -> None:
    removed = vector_entry(ContentStatus.DELETED, cardinality=1, inline=encode_deletion_vector([0]))
    (actual,) = manifests(leaf_entry(), removed, vector_entry())
    assert actual == leaf(dead_positions=encode_deletion_vector([0, 3]))


def test_a_vector_in_a_file_takes_entries_out_of_its_manifest() -> None:
    io = MemoryFileIO()
    path = f"{TABLE}/metadata/mdv.puffin"
    blob = write_deletion_vectors(io, path, {"leaf": [1, 70_000]})["leaf"]
    entry = vector_entry(
        inline=None,
        location=path,
        offset=blob.content_offset,
        size_in_bytes=blob.content_size_in_bytes,
        file_size_in_bytes=io.size(path),
    )
    (actual,) = manifests(leaf_entry(), entry, io=io)
    assert actual.dead_positions == encode_deletion_vector([1, 70_000])
    _, row = pq.read_table(pa.BufferReader(io.read_bytes(ROOT))).to_pylist()
    assert (row["location"], row["file_size_in_bytes"]) == ("metadata/mdv.puffin", io.size(path))
    assert (row["content_type"], row["file_format"], row["record_count"]) == (5, "puffin", 2)
    assert row["referenced_file"] == "metadata/leaf.parquet"


def test_a_leaf_of_data_inherits_what_its_root_says_of_it() -> None:
    io = MemoryFileIO()
    path = f"{TABLE}/metadata/leaf.parquet"
    types = {4: partition((1000, StringType()))}
    own = [
        added(a_file(f"{TABLE}/data/{i}", spec_id=4, partition=(str(i),), record_count=10))
        for i in range(3)
    ]
    length = write(io, own, path, content="data", partition_types=types)
    assert length == io.size(path)
    write(
        io,
        [
            LeafEntry(
                status=ContentStatus.ADDED,
                manifest=leaf(
                    manifest_length=length,
                    partition_spec_id=4,
                    added_files_count=3,
                    existing_files_count=0,
                    deleted_files_count=0,
                    first_row_id=100,
                ),
            ),
            vector_entry(cardinality=1, inline=encode_deletion_vector([1])),
        ],
    )
    assert read(io, types) == [
        replace(
            own[i],
            snapshot_id=6,
            sequence_number=8,
            file_sequence_number=8,
            data_file=replace(own[i].data_file, first_row_id=100 + 10 * i),
        )
        for i in (0, 2)
    ]


def a_vector(path: str = f"{TABLE}/data/v.puffin", **values: Any) -> DataFile:
    return a_file(
        path,
        **{
            "content": FileContent.POSITION_DELETES,
            "file_format": "puffin",
            "referenced_data_file": f"{TABLE}/data/a.parquet",
            "content_offset": 4,
            "content_size_in_bytes": 40,
            **values,
        },
    )


def some_keys(path: str = f"{TABLE}/data/e.parquet") -> DataFile:
    return a_file(path, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))


def test_a_leaf_of_deletes_inherits_what_its_root_says_of_it() -> None:
    io = MemoryFileIO()
    own = [added(a_vector()), existing(a_vector(), 5), added(some_keys()), deleted(some_keys(), 4)]
    write(io, own, f"{TABLE}/metadata/leaf.parquet", content="delete")
    write(
        io,
        [
            leaf_entry(
                content=ManifestContent.DELETES, existing_files_count=1, deleted_files_count=0
            )
        ],
    )
    inherited: dict[str, Any] = {"snapshot_id": 6, "sequence_number": 8, "file_sequence_number": 8}
    assert read(io) == [
        replace(own[0], **inherited),
        own[1],
        replace(own[2], **inherited),
        own[3],
    ]


# --- the file -------------------------------------------------------------------------------------


def all_kinds() -> list[RootEntry]:
    full = a_file(
        f"{TABLE}/data/a.parquet",
        spec_id=1,
        partition=(1,),
        split_offsets=(4,),
        sort_order_id=0,
        first_row_id=3,
        key_metadata=b"k",
        value_counts={1: 1},
        null_value_counts={1: 0},
        nan_value_counts={1: 0},
        lower_bounds={1: bytes(8)},
        upper_bounds={1: bytes(8)},
    )
    return [
        added(full, **NUMBERS),
        existing(a_vector()),
        deleted(some_keys()),
        leaf_entry(),
        vector_entry(),
    ]


def test_every_column_has_its_field_id_and_the_name_of_the_proposal() -> None:
    io = MemoryFileIO()
    write(
        io,
        all_kinds(),
        schema=columns(DoubleType()),
        partition_types={0: NO_FIELDS, 1: partition((1000, LongType()))},
    )
    actual = list(parquet_fields(io.read_bytes(ROOT)))
    assert dict(actual) == {
        134: "content_type",
        100: "location",
        101: "file_format",
        5: "version_info",
        0: "version_info.status",
        1: "version_info.snapshot_id",
        3: "version_info.sequence_number",
        4: "version_info.file_sequence_number",
        147: "deletion_vector",
        144: "deletion_vector.offset",
        145: "deletion_vector.size_in_bytes",
        146: "deletion_vector.inline_content",
        148: "partition_spec_id",
        140: "sort_order_id",
        103: "record_count",
        104: "file_size_in_bytes",
        521: "manifest_stats",
        504: "manifest_stats.added_files_count",
        505: "manifest_stats.existing_files_count",
        506: "manifest_stats.deleted_files_count",
        512: "manifest_stats.added_rows_count",
        513: "manifest_stats.existing_rows_count",
        514: "manifest_stats.deleted_rows_count",
        516: "manifest_stats.min_sequence_number",
        143: "referenced_file",
        131: "key_metadata",
        132: "split_offsets",
        133: "split_offsets.element",
        135: "equality_ids",
        136: "equality_ids.element",
        142: "first_row_id",
        102: "partition",
        1000: "partition.p1000",
        149: "content_stats",
        10_200: "content_stats.c1",
        10_201: "content_stats.c1.lower_bound",
        10_202: "content_stats.c1.upper_bound",
        10_204: "content_stats.c1.value_count",
        10_205: "content_stats.c1.null_value_count",
        10_206: "content_stats.c1.nan_value_count",
    }
    assert len(dict(actual)) == len(actual)


def test_what_an_entry_is_not_is_null() -> None:
    io = MemoryFileIO()
    write(
        io,
        all_kinds(),
        schema=columns(DoubleType()),
        partition_types={0: NO_FIELDS, 1: partition((1000, LongType()))},
    )
    rows = pq.read_table(pa.BufferReader(io.read_bytes(ROOT))).to_pylist()
    present = [{name for name, value in row.items() if value is not None} for row in rows]
    always = {"content_type", "file_format", "version_info", "partition_spec_id", "record_count"}
    file = {*always, "location", "file_size_in_bytes"}
    assert present == [
        {
            *file,
            "partition",
            "sort_order_id",
            "split_offsets",
            "first_row_id",
            "key_metadata",
            "content_stats",
        },
        {*file, "deletion_vector", "referenced_file"},
        {*file, "equality_ids"},
        {*file, "manifest_stats"},
        {*always, "deletion_vector", "referenced_file"},
    ]
    assert rows[4]["deletion_vector"] == {
        "offset": None,
        "size_in_bytes": None,
        "inline_content": encode_deletion_vector([0, 3]),
    }


def test_columns_that_no_entry_has_a_value_of_are_left_out() -> None:
    io = MemoryFileIO()
    write(io, [added(a_file(f"{TABLE}/a"))], content="data")
    assert [name for _, name in parquet_fields(io.read_bytes(ROOT))] == [
        "content_type",
        "location",
        "file_format",
        "version_info",
        "version_info.status",
        "partition_spec_id",
        "record_count",
        "file_size_in_bytes",
    ]


def test_partition_fields_of_the_files_specs_are_there_without_any_value() -> None:
    types = {0: partition((1000, LongType())), 1: partition((1001, StringType()))}
    io = MemoryFileIO()
    write(io, [added(a_file(f"{TABLE}/a", partition=(None,)), **NUMBERS)], partition_types=types)
    actual = dict(parquet_fields(io.read_bytes(ROOT)))
    assert 1000 in actual
    assert 1001 not in actual
    assert [e.data_file.partition for e in read(io, types)] == [(None,)]


def test_a_root_may_have_no_entries() -> None:
    assert manifests() == []


def test_key_values_tell_version_and_content_and_what_is_given() -> None:
    io = MemoryFileIO()
    write(io, [], content="delete", metadata={"snapshot-id": "7", "content": "x"})
    footer = pq.read_metadata(pa.BufferReader(io.read_bytes(ROOT)))
    assert footer.metadata == {
        b"format-version": b"4",
        b"content": b"delete",
        b"snapshot-id": b"7",
    }


def test_the_file_has_no_statistics_of_its_own() -> None:
    io = MemoryFileIO()
    write(io, all_kinds()[1:])
    group = pq.read_metadata(pa.BufferReader(io.read_bytes(ROOT))).row_group(0)
    actual = [group.column(i) for i in range(group.num_columns)]
    assert not any(c.is_stats_set or c.has_column_index or c.has_offset_index for c in actual)


def test_a_local_file_has_the_length_that_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "metadata" / "r.parquet"
    length = write_content_entries(
        LocalFileIO(),
        path.as_uri(),
        all_kinds()[1:],
        content="root",
        schema=NO_COLUMNS,
        partition_types={0: NO_FIELDS},
        table_location=TABLE,
    ).length
    assert length == path.stat().st_size
    assert pq.read_metadata(path).num_rows == 4


def test_no_file_is_written_over() -> None:
    io = MemoryFileIO()
    length = write(io, [])
    data = io.read_bytes(ROOT)
    assert length == len(data)
    with pytest.raises(FileAlreadyExistsError):
        write(io, all_kinds()[1:])
    assert io.read_bytes(ROOT) == data


# --- what is refused ------------------------------------------------------------------------------

DATA, VECTOR, KEYS = a_file(f"{TABLE}/a"), a_vector(), some_keys()
POSITIONS = a_file(f"{TABLE}/p.parquet", content=FileContent.POSITION_DELETES)


@pytest.mark.parametrize(
    ("content", "entries", "message"),
    [
        ("root", [existing(POSITIONS)], "p.parquet is a file of position deletes"),
        ("delete", [existing(POSITIONS)], "p.parquet is a file of position deletes"),
        ("root", [existing(a_vector(content_offset=None))], "lacks its data file or its place"),
        ("root", [existing(a_vector(referenced_data_file=None))], "lacks its data file"),
        ("data", [added(VECTOR)], "does not belong in a leaf of data"),
        ("data", [added(KEYS)], "does not belong in a leaf of data"),
        ("delete", [added(DATA)], "does not belong in a leaf of delete"),
        ("data", [leaf_entry()], "does not belong in a leaf, only in a root"),
        ("delete", [vector_entry()], "does not belong in a leaf, only in a root"),
        ("data", [existing(DATA, snapshot_id=None)], "is EXISTING in a leaf of data and must"),
        ("data", [replace(existing(DATA), sequence_number=None)], "must bring its snapshot id"),
        ("data", [existing(DATA, file_sequence_number=None)], "must bring its snapshot id"),
        ("data", [deleted(DATA, snapshot_id=None)], "is DELETED in a leaf of data and must"),
        (
            "delete",
            [replace(deleted(VECTOR), sequence_number=None)],
            "is DELETED in a leaf of delete",
        ),
        ("root", [added(DATA)], "is ADDED in a root manifest and must bring its snapshot id"),
        ("root", [added(DATA, **{**NUMBERS, "snapshot_id": None})], "must bring its snapshot id"),
        ("root", [added(DATA, **{**NUMBERS, "sequence_number": -1})], "must bring its snapshot"),
        ("root", [existing(DATA, file_sequence_number=None)], "must bring its snapshot id"),
        ("root", [existing(a_file("/other/a"))], "/other/a has no scheme"),
        ("root", [existing(a_file(f"{TABLE}/a", spec_id=5))], "of partition spec 5, whose type"),
        ("root", [existing(a_file(f"{TABLE}/a", partition=(1,)))], "has 1 partition values and"),
        ("root", [leaf_entry(is_root=True)], "is a root manifest, which cannot be an entry"),
        ("root", [leaf_entry(added_snapshot_id=None)], "must bring its snapshot id and sequence"),
        ("root", [leaf_entry(sequence_number=-1)], "must bring its snapshot id and sequence"),
        ("root", [leaf_entry(min_sequence_number=-1)], "must bring its least sequence number"),
        ("root", [leaf_entry(deleted_rows_count=None)], "counts and has no deleted_rows_count"),
        ("root", [leaf_entry(ContentStatus.REPLACED)], "is REPLACED, a status that"),
        (
            "root",
            [LeafEntry(status=ContentStatus.ADDED, manifest=leaf(), referenced_file=TABLE)],
            "cannot have a referenced file",
        ),
        ("root", [leaf_entry(), vector_entry(location="x")], "is inline and has a place"),
        ("root", [leaf_entry(), vector_entry(size_in_bytes=3)], "is inline and has a place"),
        ("root", [leaf_entry(), vector_entry(inline=None)], "is neither inline nor has it"),
        (
            "root",
            [leaf_entry(), vector_entry(inline=None, location="s3://b/x", offset=4)],
            "is neither inline nor has it",
        ),
        ("root", [leaf_entry(), vector_entry(ContentStatus.MODIFIED)], "MODIFIED, a status"),
        ("root", [leaf_entry(), vector_entry(sequence_number=-1)], "must bring its sequence"),
        ("root", [leaf_entry(), vector_entry(), vector_entry()], "has two live deletion vectors"),
        ("root", [vector_entry()], "which is no live entry"),
        ("root", [leaf_entry(ContentStatus.DELETED), vector_entry()], "which is no live entry"),
        ("root", [leaf_entry(dead_positions=b"x")], "has dead entries, and no deletion vector"),
        ("root", [leaf_entry(), leaf_entry()], "is twice among the live entries"),
    ],
)
def test_entries_that_break_the_rules_are_refused(
    content: Content, entries: list[RootEntry], message: str
) -> None:
    io = MemoryFileIO()
    with pytest.raises(InvalidRequestError, match=message) as refused:
        write(io, entries, content=content)
    assert "s3://b/t" in str(refused.value)
    assert not io.exists(ROOT)


def test_a_root_without_entries_has_the_required_columns() -> None:
    io = MemoryFileIO()
    write(io, [])
    assert read(io) == []
    names = {name for _, name in parquet_fields(io.read_bytes(ROOT))}
    assert names >= {"content_type", "file_format", "partition_spec_id", "record_count"}


def test_columns_of_equal_names_in_two_tables_keep_their_own_field_ids() -> None:
    """Arrow's nested types are equal even if the field ids in them differ."""
    for field_id in (1, 2):
        io = MemoryFileIO()
        schema = Schema(fields=(NestedField(field_id=field_id, name="c", type=LongType()),))
        file = replace(a_file(f"{TABLE}/a"), value_counts={field_id: 5})
        write(io, [added(file, **NUMBERS)], schema=schema)
        stats_id = 10_000 + 200 * field_id
        ids = {i for i, _ in parquet_fields(io.read_bytes(ROOT)) if i is not None and i > 10_000}
        assert ids == {stats_id, stats_id + 4}


def test_only_locations_and_long_columns_of_text_are_compressed_by_zstd() -> None:
    def codecs(count: int) -> dict[str, str]:
        io = MemoryFileIO()
        write(io, [added(a_file(f"{TABLE}/{i}"), **NUMBERS) for i in range(count)])
        group = pq.read_metadata(pa.BufferReader(io.read_bytes(ROOT))).row_group(0)
        chunks = map(group.column, range(group.num_columns))
        return {c.path_in_schema: c.compression for c in chunks}

    short, long = codecs(2), codecs(1000)
    assert {path for path, codec in short.items() if codec == "ZSTD"} == {"location"}
    assert {path for path, codec in long.items() if codec == "ZSTD"} == {"location", "file_format"}


def test_a_leaf_has_files_of_one_spec() -> None:
    files = [a_file(f"{TABLE}/{i}", spec_id=i) for i in (0, 1)]
    with pytest.raises(InvalidRequestError, match="of one partition spec, not of 0, 1"):
        write(
            MemoryFileIO(),
            [added(f) for f in files],
            content="data",
            partition_types={0: NO_FIELDS, 1: NO_FIELDS},
        )


def test_a_partition_field_of_two_types_is_refused() -> None:
    """Before version 2, each spec numbered its partition fields itself."""
    types = {0: partition((1000, LongType())), 1: partition((1000, StringType()))}
    files = [a_file(f"{TABLE}/0", partition=(1,)), a_file(f"{TABLE}/1", spec_id=1, partition=("",))]
    with pytest.raises(InvalidRequestError, match="field 1000 is string in spec 1 and long"):
        written_and_read(*(added(f, **NUMBERS) for f in files), partition_types=types)
    (entry,) = written_and_read(added(files[1], **NUMBERS), partition_types=types)
    assert entry.data_file.partition == ("",)


def test_a_partition_value_of_unknown_type_is_refused() -> None:
    types = {0: partition((1000, UnknownType()))}
    file = a_file(f"{TABLE}/a", partition=(None,))
    (entry,) = written_and_read(added(file, **NUMBERS), partition_types=types)
    assert entry.data_file.partition == (None,)
    with pytest.raises(InvalidRequestError, match="'p1000' has values of unknown type"):
        written_and_read(added(replace(file, partition=(1,)), **NUMBERS), partition_types=types)


@pytest.mark.parametrize(
    ("type_", "value"), [(IntegerType(), 2**31), (StringType(), 5), (FixedType(2), b"abc")]
)
def test_a_partition_value_that_is_none_of_its_type_is_refused(type_: Type, value: Any) -> None:
    file = a_file(f"{TABLE}/a", partition=(value,))
    with pytest.raises(InvalidRequestError, match="partition field 'p1000' of type"):
        written_and_read(added(file, **NUMBERS), partition_types={0: partition((1000, type_))})
