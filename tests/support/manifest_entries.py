"""Entries of manifests with any values, as a writer hands them over."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from iceberg_pyspark.spec.manifests import DataFile, ManifestEntry
from iceberg_pyspark.spec.types import StructType
from tests.support.manifests import added, deleted, existing
from tests.support.strategies import nullable


def int_maps() -> st.SearchStrategy[dict[int, int] | None]:
    return st.none() | st.dictionaries(st.integers(1, 4), st.integers(0, 2**40), max_size=3)


def byte_maps() -> st.SearchStrategy[dict[int, bytes] | None]:
    return st.none() | st.dictionaries(st.integers(1, 4), st.binary(max_size=8), max_size=3)


@st.composite
def data_files(draw: DrawFn, type_: StructType, version: int) -> DataFile:
    file = DataFile(
        file_path=draw(st.text(st.characters(codec="utf-8"), max_size=8)),
        file_format=draw(st.sampled_from(["parquet", "avro", "orc"])),
        partition=tuple(draw(nullable(f.type)) for f in type_.fields),
        record_count=draw(st.integers(0, 100)),
        file_size_in_bytes=draw(st.integers(0, 2**50)),
        column_sizes=draw(int_maps()),
        value_counts=draw(int_maps()),
        null_value_counts=draw(int_maps()),
        nan_value_counts=draw(int_maps()),
        lower_bounds=draw(byte_maps()),
        upper_bounds=draw(byte_maps()),
        key_metadata=draw(st.none() | st.binary(max_size=4)),
        split_offsets=draw(st.none() | st.lists(st.integers(0, 2**40), max_size=3).map(tuple)),
        sort_order_id=draw(st.none() | st.integers(0, 3)),
    )
    if version >= 2:
        file = replace(file, equality_ids=draw(st.none() | st.just((1, 2))))
    return file


@st.composite
def written_entries(draw: DrawFn, type_: StructType, version: int) -> list[ManifestEntry]:
    files = draw(st.lists(data_files(type_, version), max_size=6))
    kinds = st.sampled_from([added, existing, deleted])
    return [draw(kinds)(f) for f in files]
