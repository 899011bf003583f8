"""The locations of new files."""

from __future__ import annotations

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.formats.locations import (
    data_file_name,
    location_provider,
    manifest_file_name,
    manifest_list_file_name,
)

TABLE = "s3://b/wh/db/t"
OBJECT_STORAGE = {"write.object-storage.enabled": "true"}
FLAT = {**OBJECT_STORAGE, "write.object-storage.partitioned-paths": "false"}


def hash_folders(name: str) -> str:
    """Compute hash folders with another murmur3, in Java's steps: set the top bit, then cut."""
    binary = bin((mmh3.hash(name, 0, signed=False)) | 0x80000000)[2:]
    bits = binary[len(binary) - 20 :]
    return f"{bits[0:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:20]}"


@pytest.mark.parametrize("location", [TABLE, f"{TABLE}/", f"{TABLE}//"])
def test_the_default_layout_is_folders_below_data_and_metadata(location: str) -> None:
    provider = location_provider(location, {})
    assert provider.new_data_location("f.parquet") == f"{TABLE}/data/f.parquet"
    assert (
        provider.new_data_location("f.parquet", "d=2024-01-01/n=a%2Fb")
        == f"{TABLE}/data/d=2024-01-01/n=a%2Fb/f.parquet"
    )
    assert provider.new_metadata_location("m.avro") == f"{TABLE}/metadata/m.avro"


def test_data_and_metadata_paths_can_be_set() -> None:
    provider = location_provider(
        TABLE, {"write.data.path": "s3://d/x/", "write.metadata.path": "s3://m/y/"}
    )
    assert provider.new_data_location("f", "p=1") == "s3://d/x/p=1/f"
    assert provider.new_metadata_location("m") == "s3://m/y/m"


# Java's tests state the hashes of a, b, c and d.
@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ],
)
def test_the_object_store_layout_hashes_the_name(name: str, folders: str) -> None:
    provider = location_provider(TABLE, OBJECT_STORAGE)
    assert provider.new_data_location(name) == f"{TABLE}/data/{folders}/{name}"
    assert folders == hash_folders(name)


@given(st.text(min_size=1), st.none() | st.text(min_size=1))
def test_hash_folders_agree_with_another_murmur(name: str, partition: str | None) -> None:
    try:
        name.encode(), (partition or "").encode()
    except UnicodeEncodeError:
        return
    whole = f"{partition}/{name}" if partition else name
    assert (
        location_provider(TABLE, OBJECT_STORAGE).new_data_location(name, partition)
        == f"{TABLE}/data/{hash_folders(whole)}/{whole}"
    )


def test_a_hash_with_leading_zeros_keeps_them() -> None:
    name = next(n for n in map(str, range(1000)) if hash_folders(n).startswith("0000/"))
    location = location_provider(TABLE, OBJECT_STORAGE).new_data_location(name)
    assert location == f"{TABLE}/data/{hash_folders(name)}/{name}"


def test_without_partitioned_paths_a_dash_joins_hash_and_name() -> None:
    provider = location_provider(TABLE, FLAT)
    expected = f"{TABLE}/data/{hash_folders('f.parquet')}-f.parquet"
    assert provider.new_data_location("f.parquet", "p=1") == expected
    assert provider.new_data_location("f.parquet") == expected


@pytest.mark.parametrize("properties", [OBJECT_STORAGE, FLAT])
def test_a_data_folder_outside_the_table_names_database_and_table(
    properties: dict[str, str],
) -> None:
    provider = location_provider(TABLE, {**properties, "write.data.path": "s3://shared/data"})
    assert provider.new_data_location("f") == f"s3://shared/data/{hash_folders('f')}/db/t/f"


def test_a_table_at_the_top_of_a_bucket_has_itself_for_context() -> None:
    provider = location_provider("s3://b/t", {**OBJECT_STORAGE, "write.data.path": "s3://shared"})
    assert provider.new_data_location("f") == f"s3://shared/{hash_folders('f')}/t/f"


@pytest.mark.parametrize("location", ["file:/wh/db/t", "file:///wh/db/t", "/wh/db/t"])
def test_local_tables_have_the_same_context(location: str) -> None:
    provider = location_provider(location, {**OBJECT_STORAGE, "write.data.path": "s3://shared"})
    assert provider.new_data_location("f") == f"s3://shared/{hash_folders('f')}/db/t/f"


@pytest.mark.parametrize("name", ["write.object-storage.path", "write.folder-storage.path"])
def test_deprecated_paths_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name}.*write.data.path"):
        location_provider(TABLE, {name: "s3://x"})


def test_a_class_of_ones_own_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"com\.example\.Mine"):
        location_provider(TABLE, {"write.location-provider.impl": "com.example.Mine"})


def test_file_names() -> None:
    assert (
        data_file_name(
            partition_id=7, task_id=123, operation_id="q-5", file_count=2, extension="parquet"
        )
        == "00007-123-q-5-00002.parquet"
    )
    assert (
        data_file_name(
            partition_id=123456,
            task_id=0,
            operation_id="q",
            file_count=1,
            extension="puffin",
            suffix="deletes",
        )
        == "123456-0-q-00001-deletes.puffin"
    )
    assert manifest_file_name("u", 3) == "u-m3.avro"
    assert manifest_list_file_name(9, 2, "u") == "snap-9-2-u.avro"
