"""Every call of a public function with one argument of a wrong type, found by introspection."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import AlwaysTrue
from iceberg_pyspark.spec.schema import Schema

ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})
TEXT = r"\bstr\b|Filter|Given|Moment|Version|Beginning"

# values, and what an annotation that takes them has in its text
WRONG: tuple[tuple[Any, str], ...] = (
    (None, "None"),
    (True, "bool"),
    (5, r"\bint\b|float|Moment|Version|Beginning"),
    (1.5, "float"),
    ("x", f"{TEXT}|Type"),
    (b"x", "bytes"),
    (("db", 1), r"tuple$|tuple\[str, int\]"),
    ([1], r"(Sequence|Collection)\[int\]"),
    (["x"], r"(Sequence|Collection|Iterable)\[str\]"),
    ([{"a": 1}], r"\[Mapping\[str, (int|object)"),
    ({"a": 1}, r"Mapping\[str, (int|object|Any)"),
    (ROWS, "Rows"),
    (pd.DataFrame({"id": [1]}), r"pd\.DataFrame|Rows"),
    (Path("x"), "Path"),
    (object(), "object$"),
)

# an argument for each parameter that is required
RIGHT: dict[str, Any] = {
    "name": "db.t",
    "new_name": "z",
    "schema": "id INT",
    "metadata_location": "x",
    "sql": "SELECT 1",
    "rows": ROWS,
    "filter": "s = 'a'",
    "source": "s",
    "source_prefix": "a",
    "target_prefix": "b",
    "type_": "int",
    "doc": "d",
    "default": 1,
    "reference": "id",
    "location": "x",
    "snapshot_id": 1,
    "to": "main",
    "branch": "main",
    "wap_id": "w",
    "timestamp_ms": 1,
    "updates": {},
    "removals": [],
    "predicate": AlwaysTrue(),
    "paths": frozenset(["x"]),
    "transform": "identity",
    "table_name": "t",
    "identifier": TableIdentifier(namespace=("db",), name="t"),
    "target": TableIdentifier(namespace=("db",), name="u"),
    "namespace": ("db",),
    "requirements": [],
    "merge.source": ROWS,
    "rename_table.source": TableIdentifier(namespace=("db",), name="t"),
    "rename_view.source": TableIdentifier(namespace=("db",), name="t"),
    "commit_table.updates": [],
    "commit_view.updates": [],
    "action": AppendFiles(data_files=()),
    "projection": Schema(fields=()),
    "other": Schema(fields=()),
    "columns": ["id"],
    "set": {"id": "1"},
    "assignments": {"id": "1"},
    "condition": "true",
    "text": "SELECT 1",
    "table": "db.t",
    "source_table": "db.s",
    "arguments": {},
    "folder": "x",
}


def methods_of(owner: Any) -> Iterator[Callable[..., Any]]:
    """Return the public methods of an object."""
    for name, function in inspect.getmembers(type(owner), inspect.isfunction):
        if not name.startswith("_"):
            yield function.__get__(owner)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that do not take everything; a plan is a value of the same scan."""
    return [
        p
        for p in inspect.signature(function).parameters.values()
        if p.kind is not p.VAR_KEYWORD and p.annotation not in ("Any", "object", "Plan | None")
    ]


def call(
    function: Callable[..., Any],
    parameter: inspect.Parameter,
    value: Any,
    right: Mapping[str, Any] = RIGHT,
) -> object:
    """Call the function with one wrong argument."""
    args, kwargs = [], {}
    for p in inspect.signature(function).parameters.values():
        wrong = p.name == parameter.name
        if p.kind is p.VAR_POSITIONAL:
            args += [value] if wrong else []
        elif wrong:
            kwargs[p.name] = value
        elif p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            kwargs[p.name] = right.get(f"{function.__name__}.{p.name}", right.get(p.name))
    return function(*args, **kwargs)


def findings(
    functions: Iterable[Callable[..., Any]], others: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the wrong arguments that are not refused by a sentence with the parameter's name.

    `others` take the place of arguments in `RIGHT`.
    """
    right = {**RIGHT, **(others or {})}
    found = []
    for function in functions:
        name = function.__name__
        for parameter in parameters_of(function):
            for value, takes in WRONG:
                if re.search(takes, parameter.annotation):
                    continue
                case = f"{name}({parameter.name}={type(value).__name__})"
                try:
                    call(function, parameter, value, right)
                    found.append(f"{case} was accepted")
                except InvalidRequestError as e:
                    if "\n" in str(e) or f"{name}: {parameter.name}: expected" not in str(e):
                        found.append(f"{case}: {e}")
                except Exception as e:  # noqa: BLE001 - each is a finding
                    found.append(f"{case} raised {type(e).__name__}: {str(e)[:80]}")
    return found
