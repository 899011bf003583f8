"""Local files as the JVM names them: other locales, and another default file system."""

from __future__ import annotations

import logging

import pytest

from iceberg_pyspark.spark.bridge.features import JvmLocalFiles
from iceberg_pyspark.spark.storage import jvm_access as native_storage
from iceberg_pyspark.spark.storage.jvm_access import NativeStorage

POSIX = JvmLocalFiles(encoding="ANSI_X3.4-1968")
LATIN = JvmLocalFiles(encoding="ISO-8859-1")
ON_HDFS = JvmLocalFiles(default_file_system="hdfs://name:8020")


@pytest.mark.parametrize(
    ("files", "location", "for_the_jvm"),
    [
        (JvmLocalFiles(), "/a/ä", "/a/ä"),
        (POSIX, "/a/b", "/a/b"),
        (POSIX, "/a/ä", None),
        (POSIX, "file:/a/ä", None),
        (LATIN, "/a/ä", "/a/ä"),
        (LATIN, "/a/中", None),
        (JvmLocalFiles(encoding="x-of-tomorrow"), "/a/b", "/a/b"),
        (JvmLocalFiles(encoding="x-of-tomorrow"), "/a/ä", None),
        (ON_HDFS, "/a/b%20c", "file:///a/b%20c"),
        (ON_HDFS, "file:/a/b", "file:/a/b"),
        (ON_HDFS, "file:///a/b", "file:///a/b"),
    ],
)
def test_the_jvm_gets_names_that_it_can_open(
    files: JvmLocalFiles, location: str, for_the_jvm: str | None
) -> None:
    storage = NativeStorage(lambda _: None, {}, local_files=lambda: files)
    assert storage.location(location) == for_the_jvm


@pytest.mark.parametrize(
    ("files", "location", "line"),
    [
        (POSIX, "/a/ä", "start Spark with LC_ALL=C.UTF-8"),
        (ON_HDFS, "/a/b", "and not of Spark's default file system hdfs://name:8020"),
    ],
)
def test_one_line_says_why_a_location_is_special(
    files: JvmLocalFiles,
    location: str,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(native_storage, "_warnings", set())
    storage = NativeStorage(lambda _: None, {}, local_files=lambda: files)
    with caplog.at_level(logging.WARNING):
        storage.location(location)
        storage.location(location)
        storage.location("file:/a/b")
    (record,) = caplog.records
    assert line in record.getMessage()
