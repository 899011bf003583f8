"""Key metadata and the entries of `encryption-keys`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.encryption import (
    FileKey,
    encryption_key,
    file_key,
    fresh_key,
    key_encryption_keys,
    manifest_list_key,
)

# version 1, a key of 16 bytes, a prefix of 16 bytes, and 1017 as an Avro long
ENCODED = bytes.fromhex(
    "01203031323334353637383961626364656602203130313131323133313431353136313702f20f"
)
DAY_MS = 24 * 60 * 60 * 1000


def test_the_form_is_that_of_the_avro_record() -> None:
    key = file_key(ENCODED, "f")
    assert key == FileKey(b"0123456789abcdef", b"1011121314151617", 1017)
    assert key.encoded() == ENCODED


@given(
    st.sampled_from([16, 24, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    st.binary(max_size=200),
    st.none() | st.integers(0, 2**63 - 1),
)
def test_what_is_encoded_is_decoded(key: bytes, aad: bytes, length: int | None) -> None:
    assert file_key(FileKey(key, aad, length).encoded(), "f") == FileKey(key, aad, length)


@given(st.binary(max_size=60))
def test_damaged_key_metadata_is_refused(data: bytes) -> None:
    try:
        file_key(data, "f.parquet")
    except InvalidMetadataError as e:
        assert str(e).startswith("f.parquet: the key metadata is damaged")  # noqa: PT017


@pytest.mark.parametrize("cut", range(len(ENCODED)))
def test_key_metadata_that_is_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(InvalidMetadataError):
        file_key(ENCODED[:cut], "f")


def test_no_key_is_shown() -> None:
    assert "01234" not in repr(file_key(ENCODED, "f"))


def test_the_keys_of_a_table() -> None:
    old = encryption_key("old", b"o", "table", created_ms=0)
    young = encryption_key("young", b"y", "table", created_ms=100 * DAY_MS)
    other = encryption_key("other", b"x", "other table", created_ms=900 * DAY_MS)
    own = encryption_key("own", b"sealed", "young")
    keys = (old, other, young, own)
    assert fresh_key(keys, "table", 800 * DAY_MS) is young
    assert fresh_key(keys, "table", 700 * DAY_MS) is old
    assert fresh_key(keys, "table", 900 * DAY_MS) is None
    assert key_encryption_keys(keys) == ((b"o", "table"), (b"x", "other table"), (b"y", "table"))
    found = manifest_list_key(keys, "own")
    assert found is not None
    assert (found.wrapped_key, found.sealed_key_metadata) == (b"y", b"sealed")
    assert (found.table_key_id, found.timestamp) == ("table", str(100 * DAY_MS))
    assert manifest_list_key(keys, "none") is None
    assert manifest_list_key((own,), "own") is None
