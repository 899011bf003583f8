"""A session loads the classes that the wheel has for its Spark, and else compiles the sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from iceberg_pyspark.spark.bridge import java_classes
from iceberg_pyspark.spark.bridge.java_modules import (
    BUILDS_ON,
    LAYOUT,
    REQUIRED_CLASSES,
    source_of,
)
from tests.releases.release_jvm import ReleaseJvm
from tests.support.spark_sessions import SPARK_HOME

JARS = sorted((SPARK_HOME / "jars").glob("*.jar"))


class CompiledError(Exception):
    """The sources were compiled."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[ReleaseJvm]:
    result = ReleaseJvm(JARS)
    yield result
    result.stop()


@pytest.fixture(scope="module")
def build(jvm: ReleaseJvm) -> tuple[str, Mapping[str, bytes]]:
    """Return the digest of this Spark's build, and its classes."""
    with jvm.gateway(JARS) as gateway:
        return java_classes.classes_of_build(gateway)


@pytest.fixture
def file(
    build: tuple[str, Mapping[str, bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return the file of the wheel, with the classes of this Spark."""
    file = tmp_path / "compiled.zip"
    file.write_bytes(java_classes.packed_classes(dict([build])))
    monkeypatch.setattr(java_classes, "COMPILED", str(file))
    monkeypatch.setattr(java_classes, "user_folder", lambda _name: None)

    def compiled(*_: Any) -> Any:
        raise CompiledError

    monkeypatch.setattr(java_classes, "_compile", compiled)
    return file


def loaded(jvm: ReleaseJvm) -> set[str]:
    """Return the modules of a new session."""
    with jvm.gateway(JARS) as gateway:
        modules = java_classes.load_modules(gateway)
        assert modules.failures == {}
        marker = java_classes._marker
        return {m for m in BUILDS_ON if java_classes._has(modules.loader, marker(m))}


def test_the_classes_of_the_wheel_are_not_compiled(jvm: ReleaseJvm, file: Path) -> None:
    assert loaded(jvm) >= set(BUILDS_ON) - set(REQUIRED_CLASSES)


def test_other_builds_of_spark_and_changed_sources_are_compiled(
    jvm: ReleaseJvm, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(java_classes, "_release", lambda _jvm: "4.3.0-vendor")
        with pytest.raises(CompiledError):
            loaded(jvm)
    monkeypatch.setattr(java_classes, "source_of", lambda module: source_of(module) + "\n")
    with pytest.raises(CompiledError):
        loaded(jvm)


def test_modules_that_the_session_or_the_wheel_lacks(
    jvm: ReleaseJvm,
    file: Path,
    build: tuple[str, Mapping[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = {**REQUIRED_CLASSES, LAYOUT: "org.example.Absent"}
    monkeypatch.setattr(java_classes, "REQUIRED_CLASSES", absent)
    assert LAYOUT not in loaded(jvm)
    present = {**absent, LAYOUT: "org.apache.spark.SparkContext"}
    monkeypatch.setattr(java_classes, "REQUIRED_CLASSES", present)
    assert LAYOUT in loaded(jvm)
    digest, classes = build
    without_layout = {n: c for n, c in classes.items() if not n.startswith("IcebergPyLayout")}
    file.write_bytes(java_classes.packed_classes({digest: without_layout}))
    with pytest.raises(CompiledError):
        loaded(jvm)
