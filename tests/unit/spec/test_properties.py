"""Reading table properties."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.properties import (
    COMMIT_NUM_RETRIES,
    MANIFEST_COMPRESSION,
    MANIFEST_MERGE_ENABLED,
    bool_property,
    check_commit_properties,
    int_property,
)


def test_defaults_stand_in_for_what_is_not_set() -> None:
    assert COMMIT_NUM_RETRIES.of({}) == 4
    assert MANIFEST_MERGE_ENABLED.of({}) is True
    assert MANIFEST_COMPRESSION.of({}) == "gzip"


def test_values_are_read_as_java_reads_them() -> None:
    assert int_property({"n": " 7 "}, "n", 0) == 7
    assert bool_property({"b": "FALSE"}, "b", True) is False
    assert MANIFEST_COMPRESSION.of({"write.manifest.compression-codec": "zstd"}) == "zstd"


@pytest.mark.parametrize(
    "read",
    [
        lambda: int_property({"k": "1.5"}, "k", 0),
        lambda: bool_property({"k": "yes"}, "k", False),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_property(
    read: Callable[[], object],
) -> None:
    with pytest.raises(InvalidRequestError, match="property 'k'"):
        read()


def test_commit_properties_are_checked_before_they_are_kept() -> None:
    check_commit_properties({"commit.retry.num-retries": "0"})
    for name, value in (
        ("commit.retry.num-retries", "-1"),
        ("commit.manifest.target-size-bytes", "0"),
        ("commit.manifest-merge.enabled", "maybe"),
    ):
        with pytest.raises(InvalidRequestError, match=name):
            check_commit_properties({name: value})
