"""Reading and setting table properties."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import iceberg_pyspark.spec.table_properties
from iceberg_pyspark.changes.new_table import new_table_metadata
from iceberg_pyspark.changes.property_changes import PropertyChanges
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.property_types import fraction, whole_number
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import (
    COMMIT_NUM_RETRIES,
    DATA_FORMAT,
    KNOWN_PROPERTIES,
    MANIFEST_COMPRESSION,
    MANIFEST_MERGE_ENABLED,
    METADATA_DELETE_AFTER_COMMIT,
    METADATA_PREVIOUS_VERSIONS_MAX,
    ORC_BLOOM_FPP,
    STATUS_CHECK_NUM_RETRIES,
    TARGET_FILE_SIZE,
    bool_property,
    check_commit_properties,
    check_set_properties,
    int_property,
    known_property,
)
from iceberg_pyspark.spec.types import LongType, NestedField

SCHEMA = Schema(fields=(NestedField(field_id=1, name="id", type=LongType()),))


def test_missing_properties_have_their_defaults() -> None:
    assert COMMIT_NUM_RETRIES.of({}) == 4
    assert MANIFEST_MERGE_ENABLED.of({}) is True
    assert MANIFEST_COMPRESSION.of({}) == "gzip"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("true", True), ("TRUE", True), ("false", False)],
        *[(text, False) for text in ("1", "yes", " true", "")],
    ],
)
def test_a_boolean_of_a_table_is_what_java_takes_it_for(text: str, value: bool) -> None:
    assert METADATA_DELETE_AFTER_COMMIT.of({METADATA_DELETE_AFTER_COMMIT.name: text}) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("7", 7), ("+7", 7), ("-7", -7), ("007", 7), ("\u0667", 7)],
        *[("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
        *[(text, None) for text in ("", " 7", "7 ", "1_000", "3x", "1.0", "0x1", "+", "--1")],
        *[(text, None) for text in ("2147483648", "9" * 5000, "\u0667x")],
    ],
)
def test_whole_numbers_are_read_as_java_reads_them(text: str, value: int | None) -> None:
    assert whole_number(text, 2**31 - 1) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("0.5", 0.5), (".5", 0.5), ("5e-1", 0.5), (" 0.5\t", 0.5), ("0.5f", 0.5), ("+.5D", 0.5)],
        *[(text, None) for text in ("", "0,5", "1_0.5", "x", "0.5x", "\u0660.5", ".")],
    ],
)
def test_fractions_are_read_as_java_reads_them(text: str, value: float | None) -> None:
    assert fraction(text) == value
    if value is not None:
        assert ORC_BLOOM_FPP.of({ORC_BLOOM_FPP.name: text}) == value


def test_numbers_that_java_takes_mean_the_same_here() -> None:
    assert STATUS_CHECK_NUM_RETRIES.of({STATUS_CHECK_NUM_RETRIES.name: "-1"}) == 0
    assert METADATA_PREVIOUS_VERSIONS_MAX.of({METADATA_PREVIOUS_VERSIONS_MAX.name: "0"}) == 1
    assert TARGET_FILE_SIZE.of({TARGET_FILE_SIZE.name: str(2**40)}) == 2**40
    assert DATA_FORMAT.of({DATA_FORMAT.name: "Avro"}) == "avro"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("commit.status-check.num-retries", "3x"),
        ("commit.retry.num-retries", " 3"),
        ("commit.retry.min-wait-ms", "1_000"),
        ("commit.retry.total-timeout-ms", "2147483648"),
        ("commit.manifest.target-size-bytes", "8MB"),
        ("write.metadata.previous-versions-max", ""),
        ("write.summary.partition-limit", "1.0"),
        ("write.manifest.compression-codec", "rar"),
    ],
)
def test_property_that_java_refuses_is_refused_before_a_commit(name: str, text: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"property '{name}'"):
        check_commit_properties({name: text})


def test_property_that_java_accepts_is_accepted() -> None:
    check_commit_properties(
        {
            "write.metadata.delete-after-commit.enabled": "1",
            "commit.manifest-merge.enabled": "maybe",
            "write.object-storage.enabled": "yes",
            "commit.retry.num-retries": "-1",
            "commit.manifest.target-size-bytes": "0",
            "commit.status-check.max-wait-ms": str(2**40),
            "write.format.default": "not needed",
        }
    )


WRONG = {
    "write.metadata.delete-after-commit.enabled": "1",
    "write.object-storage.enabled": " true",
    "gc.enabled": "",
    "commit.retry.num-retries": "-1",
    "commit.manifest.target-size-bytes": "0",
    "commit.retry.max-wait-ms": str(2**31),
    "write.target-file-size-bytes": "128MB",
    "read.split.open-file-cost": "4_000",
    "write.format.default": "csv",
    "write.delete.format.default": "puffin",
    "write.distribution-mode": "rang",
    "write.delete.mode": "mor",
    "write.update.isolation-level": "strict",
    "write.merge.distribution-mode": "sorted",
    "write.delete.granularity": "table",
    "write.metadata.compression-codec": "bzip2",
    "write.parquet.compression-codec": "zip",
    "write.delete.parquet.compression-codec": "zip",
    "write.orc.bloom.filter.fpp": "1.5",
    "write.parquet.bloom-filter-enabled.column.id": "on",
    "write.parquet.bloom-filter-fpp.column.a.b": "2",
    "write.metadata.metrics.default": "most",
    "write.metadata.metrics.column.id": "truncate(x)",
    "write.data.path": "",
    "history.expire.min-snapshots-to-keep": "0",
    "format-version": "two",
}


@pytest.mark.parametrize(("name", "text"), WRONG.items())
@pytest.mark.parametrize(
    "set_it",
    [
        check_set_properties,
        lambda properties: PropertyChanges().set(properties),
        lambda properties: new_table_metadata(
            SCHEMA, None, None, "/t", properties, table_uuid="u", now_ms=1
        ),
    ],
)
def test_a_wrong_value_cannot_be_set(
    name: str, text: str, set_it: Callable[[dict[str, str]], object]
) -> None:
    with pytest.raises(InvalidRequestError, match=f"property '{name}'"):
        set_it({name: text})


def test_a_right_value_can_be_set_and_so_can_what_is_not_known() -> None:
    check_set_properties(
        {
            "write.metadata.delete-after-commit.enabled": "True",
            "write.format.default": "ORC",
            "write.metadata.metrics.column.a.b": "Truncate(8)",
            "write.delete.orc.stripe-size-bytes": "1000",
            "write.data.path": "s3://b/p",
            "commit.status-check.max-wait-ms": str(2**40),
            "my.own": "anything",
        }
    )
    with pytest.raises(InvalidRequestError, match="not text"):
        check_set_properties({"my.own": 3})  # type: ignore[dict-item]


def test_a_wrong_property_of_others_can_be_put_right_or_removed() -> None:
    metadata = new_table_metadata(SCHEMA, None, None, "/t", {}, table_uuid="u", now_ms=1)
    metadata.properties["commit.retry.num-retries"] = "3x"  # type: ignore[index]
    assert PropertyChanges().set({"commit.retry.num-retries": "3"}).changes(metadata).updates
    assert PropertyChanges().remove("commit.retry.num-retries").changes(metadata).updates


def test_every_property_by_name_is_in_the_registry() -> None:
    """A property that a module reads by a literal name could be set without a check."""
    package = Path(iceberg_pyspark.spec.table_properties.__file__).parents[1]
    prefixes = ("write.", "read.split.", "commit.", "gc.", "history.")
    free = {
        # names and values of options, free text, and prefixes
        *("write.run", "write.orc.bloom.filter.columns", "write.location-provider.impl"),
        *("write.object-storage.path", "write.folder-storage.path"),
    }
    # To parse all files takes seconds.
    start = re.compile("[\"'}](" + "|".join(map(re.escape, prefixes)) + ")")
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    unknown = [
        f"{path.relative_to(package)}:{node.lineno}: {node.value}"
        for path, text in texts.items()
        if start.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(prefixes)
        and not node.value.endswith(".")
        and " " not in node.value
        and node.value not in free
        and known_property(node.value) is None
    ]
    assert unknown == []
    assert len(KNOWN_PROPERTIES) > 60


def test_options_are_read_strictly() -> None:
    assert int_property({"n": " 7 "}, "n", 0) == 7
    assert bool_property({"b": "FALSE"}, "b", True) is False
    reads: tuple[Callable[[], object], ...] = (
        lambda: int_property({"k": "1.5"}, "k", 0),
        lambda: int_property({"k": "1_5"}, "k", 0),
        lambda: bool_property({"k": "yes"}, "k", False),
    )
    for read in reads:
        with pytest.raises(InvalidRequestError, match="property 'k'"):
            read()
