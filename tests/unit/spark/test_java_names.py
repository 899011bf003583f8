"""Names that both Python and the Java sources contain are equal in both."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from functools import cache
from typing import get_args

import pytest
from msgspec import structs
from pyspark.sql import Column

from iceberg_pyspark.spark.bridge import (
    call_arguments,
    java_modules,
    jvm,
    row_level_plans,
    scan_relations,
    spark_writes,
)
from iceberg_pyspark.spark.bridge import java_classes as jvm_sessions
from iceberg_pyspark.spark.bridge.protocol import write_messages as statements
from iceberg_pyspark.spark.native_read import columns as native_columns
from iceberg_pyspark.spark.native_read import (
    equality_joins,
    native_scan,
    relations,
)
from iceberg_pyspark.spark.options.option_values import _SESSION
from iceberg_pyspark.spark.row_level import change_frame, merge
from iceberg_pyspark.spark.write import distribution, native_writer
from iceberg_pyspark.spec import metadata_columns
from iceberg_pyspark.storage.store_properties import LOCATION_OPTIONS
from iceberg_pyspark.table.row_level import change_task

JAVA_ONLY = {"__ice_change"}
"""Columns that Java creates and reads itself."""


@cache
def java(name: str) -> str:
    """Return the source of a class without comments."""
    (path,) = (
        p
        for module in java_modules.BUILDS_ON
        for p in java_modules._files(module)
        if p.name == f"{name}.java"
    )
    text = path.read_text("utf-8")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def keys_read(*names: str) -> set[str]:
    """Return the keys that Java reads from maps of JSON."""
    return {key for n in names for key in re.findall(r'\.get\("(\w+)"\)', java(n))}


def texts(name: str) -> set[str]:
    return set(re.findall(r'"((?:[^"\\]|\\.)*)"', java(name)))


def names_of(*classes: type) -> set[str]:
    return {f.name for c in classes for f in (fields(c) if is_dataclass(c) else structs.fields(c))}


def constants(*modules: object) -> set[str]:
    return {v for m in modules for v in vars(m).values() if isinstance(v, str) and "__ice_" in v}


def test_columns_that_only_plans_have() -> None:
    python_columns = constants(
        native_columns, equality_joins, relations, native_scan, change_task, merge
    )
    java_columns = {
        text
        for module in java_modules.BUILDS_ON
        for name in java_modules.classes_of(module)
        for text in texts(name)
        if text.startswith("__ice_")
    }
    assert java_columns - JAVA_ONLY == {
        relations.ORDINAL,
        native_scan.POSITION,
        merge._FROM_SOURCE,
    }
    assert java_columns - JAVA_ONLY <= python_columns
    assert not JAVA_ONLY & python_columns


def test_settings_of_locations() -> None:
    names = {_SESSION + option for option in LOCATION_OPTIONS}
    assert texts("IcebergPyLocationSettings") == names


def test_the_table_of_files() -> None:
    source = java("IcebergPyPlannedFiles")
    read = re.findall(r'table\.(?:texts|longs|longLists)\("(\w+)"\)', source)
    assert read == [relations.LOCATION, relations.FILE_SIZE, relations.SPLIT_OFFSETS]


def test_a_relation_of_files() -> None:
    read = keys_read("IcebergPyParquetScans", "IcebergPyParquetFiles")
    assert read == names_of(call_arguments.ParquetRelation, call_arguments.SelectedColumn)


@pytest.mark.parametrize(
    ("described", "readers"),
    [
        (call_arguments.VectorPlaces, ["IcebergPyVectorProbe"]),
        (call_arguments.PositionPlaces, ["IcebergPyPositionsOfFile"]),
    ],
)
def test_places_of_deletes(described: type, readers: list[str]) -> None:
    """Java passes the values on, except the options, which it turns into a Hadoop configuration."""
    source = java("IcebergPyDeleteConditions")
    assert 'remove("options")' in source
    assert re.findall(r'\.put\("(\w+)"', source) == ["conf"]
    assert keys_read(*readers) == names_of(described) - {"options"} | {"conf"}


def test_columns_to_write() -> None:
    assert keys_read("IcebergPyParquetWrites") == names_of(call_arguments.WrittenColumn)


def test_the_option_with_field_ids() -> None:
    assert re.findall(r'OPTION = "(.+)"', java("IcebergPyFieldIds")) == [native_writer._FIELD_IDS]


def test_numbers_of_a_plan() -> None:
    metrics = re.findall(r'"(\w+)": ', inspect.getsource(native_scan._metrics))
    assert metrics
    java_texts = texts("IcebergPyParquetScan")
    assert set(metrics) <= java_texts


def test_kinds_of_values() -> None:
    source = java("IcebergPyRowValues")
    kinds = {v.__name__: v for v in get_args(call_arguments.Value) if v is not Column}
    java_kinds = re.findall(r'is\.equals\("(\w+)"\)', source)
    unread = call_arguments.UnusedValue.__name__
    assert sorted([*java_kinds, unread]) == sorted(kinds)
    assert f'"{unread}".equals' in java("IcebergPyChangedRows")
    assert keys_read("IcebergPyRowValues") == {"is"} | names_of(*kinds.values())
    assert keys_read("IcebergPyObjects") == {"is", "id"}


def test_changes_and_values_to_assign() -> None:
    described = (
        call_arguments.ChangedRows,
        call_arguments.ChangeCondition,
        call_arguments.ChangedColumn,
    )
    read = keys_read("IcebergPyChangedRows") | {"changes", "columns"}
    assert {"changes", "columns"} <= keys_read("IcebergPyChanges")
    assert read == {"is", metadata_columns.POS.name, merge._FROM_SOURCE} | names_of(*described)
    assigning = keys_read("IcebergPyChanges") - {"columns"}
    assert assigning == {"is"} & assigning | names_of(
        call_arguments.AssignedColumns, call_arguments.AssignedValues
    )
    sides = {side for side in get_args(get_args(call_arguments.Side)[0]) if side is not None}
    assert 'side.equals("source") ? source : target' in java("IcebergPyRowValues")
    assert sides == {"source", "target"}
    wheres = set(re.findall(r'where\.equals\("(\w+)"\)', java("IcebergPyChangedRows")))
    assert wheres == set(get_args(change_frame.Where))


def test_statements_taken_apart() -> None:
    source = java("IcebergPyStatement")
    keys = set(re.findall(r'description\.put\("(\w+)"', source))
    assert keys == names_of(statements.AnalysedStatement)
    kinds = set(re.findall(r'put\("kind", "(\w+)"\)', source))
    assert kinds == set(
        get_args(inspect.get_annotations(statements.AnalysedStatement, eval_str=True)["kind"])
    )
    arguments = [
        set(re.findall(r'"(\w+)",', m)) for m in re.findall(r"arguments\((.*?);", source, re.S)
    ]
    assert names_of(statements.AnalysedAssignment) in arguments
    assert names_of(statements.AnalysedAction) in arguments
    ops = {*re.findall(r'op = "(\w+)"', source)}
    assert ops == set(
        get_args(inspect.get_annotations(statements.AnalysedAction, eval_str=True)["op"])
    )


def test_equalities_of_a_condition() -> None:
    (arguments,) = re.findall(r"arguments\((.*?);", java("IcebergPyJoins"), re.DOTALL)
    keys = re.findall(r'\be\["(\w+)"\]', inspect.getsource(row_level_plans._equalities))
    assert set(re.findall(r'"(\w+)"', arguments)) == set(keys)


def test_kinds_of_hashes() -> None:
    kinds = set(re.findall(r'murmur3\(.*?, "(\w+)"\)', inspect.getsource(distribution)))
    assert set(re.findall(r'kind\.equals\("(\w+)"\)', java("IcebergPyMurmur3"))) <= kinds
    assert kinds == {"long", "text", "bytes", "decimal"}


@cache
def calls_of_classes() -> dict[str, set[str]]:
    """Return the methods that Python calls, by Java class."""
    called_methods: dict[str, set[str]] = {}
    for module in (
        jvm,
        row_level_plans,
        jvm_sessions,
        row_level_plans,
        scan_relations,
        spark_writes,
    ):
        source = inspect.getsource(module)
        classes = {"_plans": "IcebergPyPlans"}
        classes |= dict(re.findall(r'def (\w+)\(self\).*\n.*instance\("(\w+)"\)\n', source))
        for attribute, name in classes.items():
            called_methods.setdefault(name, set()).update(
                re.findall(rf"self\.{attribute}\.(\w+)", source)
            )
        for name, method in re.findall(r'instance\("(\w+)"\)\.(\w+)', source):
            called_methods.setdefault(name, set()).add(method)
    return called_methods


def test_classes_that_python_calls() -> None:
    assert calls_of_classes().keys() <= {
        n for module in java_modules.BUILDS_ON for n in java_modules.classes_of(module)
    }


@pytest.mark.parametrize(
    "name",
    [
        "IcebergPyPlans",
        "IcebergPySizes",
        "IcebergPyParquetScans",
        "IcebergPyDeleteConditions",
        "IcebergPyRowLevel",
        "IcebergPyJoins",
        "IcebergPySelections",
        "IcebergPyChanges",
        "IcebergPyParsers",
        "IcebergPyLayout",
        "IcebergPyParquetWrites",
        "IcebergPyRedaction",
    ],
)
def test_methods_that_python_calls(name: str) -> None:
    called_methods = calls_of_classes()[name]
    assert called_methods
    assert called_methods <= set(re.findall(r"^  public [\w.]+ (\w+)\(", java(name), re.MULTILINE))
