"""Entries that break the rules of root manifests and leaves are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.formats.roots.content_rules import Content
from iceberg_pyspark.spec.content_entries import ContentStatus, LeafEntry, RootEntry
from iceberg_pyspark.spec.manifests import FileContent
from iceberg_pyspark.spec.types import (
    FixedType,
    IntegerType,
    LongType,
    StringType,
    Type,
    UnknownType,
)
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from tests.support.content_entries import (
    NO_FIELDS,
    NUMBERS,
    ROOT,
    TABLE,
    a_vector,
    leaf,
    leaf_entry,
    partition,
    some_keys,
    vector_entry,
    write_entries,
    written_and_read,
)
from tests.support.manifests import a_file, added, deleted, existing

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
        ("root", [vector_entry()], "which is not a live entry"),
        ("root", [leaf_entry(ContentStatus.DELETED), vector_entry()], "which is not a live entry"),
        ("root", [leaf_entry(dead_positions=b"x")], "has dead entries, and no deletion vector"),
        ("root", [leaf_entry(), leaf_entry()], "is twice among the live entries"),
    ],
)
def test_entries_that_break_the_rules_are_refused(
    content: Content, entries: list[RootEntry], message: str
) -> None:
    io = MemoryFileIO()
    with pytest.raises(InvalidRequestError, match=message) as refused:
        write_entries(io, entries, content=content)
    assert "s3://b/t" in str(refused.value)
    assert not io.exists(ROOT)


def test_a_leaf_has_files_of_one_spec() -> None:
    files = [a_file(f"{TABLE}/{i}", spec_id=i) for i in (0, 1)]
    with pytest.raises(InvalidRequestError, match="of one partition spec, not of 0, 1"):
        write_entries(
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
def test_partition_value_of_another_type_is_refused(type_: Type, value: Any) -> None:
    file = a_file(f"{TABLE}/a", partition=(value,))
    with pytest.raises(InvalidRequestError, match="partition field 'p1000' of type"):
        written_and_read(added(file, **NUMBERS), partition_types={0: partition((1000, type_))})
