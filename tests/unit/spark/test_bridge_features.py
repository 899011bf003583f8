"""Which missing internals disable which features, and which modules may use Spark's internals."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import iceberg_pyspark
from iceberg_pyspark.spark.bridge.features import (
    ANNOTATED_COLUMNS,
    CHANGE_JOBS,
    FEATURES,
    NATIVE_SCAN,
    NATIVE_WRITE,
    ORC_SCAN,
    ORC_ZONES,
    ROW_CHANGES,
    SIZED_ROWS,
    SMALL_BATCHES,
    STORE_WRITE,
    VARIANT_FIELDS,
    WRITE_LAYOUT,
    missing_features,
)
from iceberg_pyspark.spark.bridge.java_modules import BUILDS_ON, CORE, classes_of, source_of

PACKAGE = Path(iceberg_pyspark.__file__).parent
BRIDGE = PACKAGE / "spark/bridge"
PRIVATE = {"_gateway", "_jvm", "_jsc", "_jrdd", "_jdf", "_jc", "_jsparkSession", "_jreader"}
"""The attributes in which pyspark's objects hold py4j objects."""

EVERY_INTERNAL = {name: None for f in FEATURES for name in f.internals}


def test_nothing_is_missing_where_all_compiles_and_is_there() -> None:
    assert missing_features({}, EVERY_INTERNAL) == {}


def test_a_module_takes_only_its_own_features_along() -> None:
    assert missing_features({"parquet_scan": "no class X"}, EVERY_INTERNAL) == {
        NATIVE_SCAN: "java/parquet_scan does not compile: no class X",
        SMALL_BATCHES: "java/parquet_scan does not compile: no class X",
        VARIANT_FIELDS: "java/parquet_scan does not compile: no class X",
        ANNOTATED_COLUMNS: "java/parquet_scan does not compile: no class X",
        ORC_SCAN: "java/parquet_scan does not compile: no class X",
        ORC_ZONES: "java/parquet_scan does not compile: no class X",
    }
    missing = missing_features({"layout": "no class Y"}, EVERY_INTERNAL)
    assert set(missing) == {WRITE_LAYOUT, NATIVE_WRITE, STORE_WRITE, CHANGE_JOBS, ROW_CHANGES}


def test_missing_features_have_every_reason() -> None:
    lacking = {**EVERY_INTERNAL, "parquet_writer": "it takes 3 arguments", "sized_rows": "two"}
    why = "java/parquet_write does not compile: no class X; parquet_writer: it takes 3 arguments"
    assert missing_features({"parquet_write": "no class X"}, lacking) == {
        NATIVE_WRITE: why,
        STORE_WRITE: why,
        CHANGE_JOBS: why,
        SIZED_ROWS: "sized_rows: two",
    }


def test_internal_without_a_probe_is_missing() -> None:
    internals = {name: why for name, why in EVERY_INTERNAL.items() if name != "sized_rows"}
    assert missing_features({}, internals) == {SIZED_ROWS: "sized_rows: nothing looks for it"}


def test_every_folder_is_a_module_behind_those_it_builds_on() -> None:
    assert {p.name for p in (BRIDGE / "java").iterdir()} == set(BUILDS_ON)
    before: list[str] = []
    for module, others in BUILDS_ON.items():
        assert set(others) <= set(before)
        before.append(module)
    classes = [name for module in BUILDS_ON for name in classes_of(module)]
    assert len(classes) == len(set(classes))
    assert {module for f in FEATURES for module in f.modules} == set(BUILDS_ON) - {CORE}


def test_reflection_is_in_the_two_classes_of_internals() -> None:
    reflective = re.compile(r"java\.lang\.reflect|setAccessible|getDeclared|\$default\$")
    class_names = {
        p.stem for p in BRIDGE.glob("java/**/*.java") if reflective.search(p.read_text())
    }
    assert class_names == {"IcebergPyInternals", "IcebergPyFileInternals"}
    assert reflective.search(source_of(CORE))


def test_py4j_is_met_in_the_bridge_alone() -> None:
    places = []
    for file in PACKAGE.rglob("*.py"):
        if BRIDGE in file.parents:
            continue
        text = file.read_text(encoding="utf-8")
        if not any(name in text for name in PRIVATE):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
                places.append(f"{file.relative_to(PACKAGE)}:{node.lineno}: {node.attr}")
    assert places == []
