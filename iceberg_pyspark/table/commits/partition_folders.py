"""Reads partition values from folder names: `day=2026-01-01/country=de/x.parquet`.

The layout is Hive's: one folder per column, `%XX` for characters that a path cannot contain,
`__HIVE_DEFAULT_PARTITION__` for null.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.literals import place_literal
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import IdentityTransform

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_texts(location: str, root: str) -> dict[str, str | None]:
    """Return the partition values in the folders between a root and a file, by column name."""
    folders = location[len(root.rstrip("/")) :].split("/")[:-1]
    texts: dict[str, str | None] = {}
    for folder in folders:
        name, sign, text = folder.partition("=")
        if sign:
            value = unquote(text)
            texts[unquote(name)] = None if value == _NULL else value
    return texts


def spelled_as(texts: Mapping[str, str | None], columns: Collection[str]) -> dict[str, str | None]:
    """Return the texts by column names; Hive writes names in lower case into folders.

    >>> spelled_as({"day": "x", "n": "1"}, ["Day", "n", "N"])
    {'Day': 'x', 'n': '1'}
    """
    by_small_name: dict[str, list[str]] = {}
    for column in columns:
        by_small_name.setdefault(column.lower(), []).append(column)

    def name_of(name: str) -> str:
        spellings = by_small_name.get(name.lower(), [])
        return spellings[0] if name not in columns and len(spellings) == 1 else name

    return {name_of(name): text for name, text in texts.items()}


def names_partitions(location: str, root: str) -> bool:
    """Return whether every folder between a root and a file names a partition."""
    folders = location[len(root.rstrip("/")) :].split("/")[1:-1]
    return all("=" in folder for folder in folders)


def is_hidden(location: str, root: str) -> bool:
    """Return whether a path segment begins with `.`, or with `_` and names no partition."""
    parts = [p for p in location[len(root.rstrip("/")) :].split("/") if p]
    return any(p[0] == "." or (p[0] == "_" and "=" not in p) for p in parts)


def spec_of_folders(
    names: Iterable[str], specs: Sequence[PartitionSpec], schema: Schema, source: str
) -> PartitionSpec:
    """Return the first spec with identity transforms of exactly these columns."""
    wanted_columns = set(names)
    for spec in specs:
        if all(isinstance(f.transform, IdentityTransform) for f in spec.fields):
            columns = {schema.name_by_id[f.source_id] for f in spec.fields}
            if columns == wanted_columns:
                return spec
    column_list = ", ".join(sorted(wanted_columns)) or "nothing"
    raise InvalidRequestError(
        f"{source} is partitioned by {column_list}, and the table has no partition spec of just "
        "the "
        "values (identity) of these columns; add one with ALTER TABLE ... ADD PARTITION FIELD, or "
        "write the rows with INSERT"
    )


def partition_of_texts(
    texts: Mapping[str, str | None], spec: PartitionSpec, schema: Schema, location: str
) -> tuple[Any, ...]:
    """Return the partition tuple of a file; raise `InvalidRequestError` for an invalid text."""
    values = []
    for field in spec.fields:
        name = schema.name_by_id[field.source_id]
        type_ = schema.field_by_id[field.source_id].type
        text = texts[name]
        try:
            values.append(None if text is None else _value(type_, text))
        except (TypeError, ValueError, ArithmeticError) as e:
            raise InvalidRequestError(
                f"{location}: its folder says {name}={text}, which is not of type {type_} ({e})"
            ) from e
    return tuple(values)


_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(E[+-]?[0-9]+)?"
_DATE = "[+-]?[0-9]{4,6}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_FORMS: Mapping[type[types.Type], str] = {
    types.BooleanType: "true|false",
    types.IntegerType: "[+-]?[0-9]+",
    types.LongType: "[+-]?[0-9]+",
    types.DecimalType: _DECIMAL,
    types.FloatType: f"{_DECIMAL}|NaN|[+-]?Infinity",
    types.DoubleType: f"{_DECIMAL}|NaN|[+-]?Infinity",
    types.DateType: _DATE,
    types.TimeType: _TIME,
    types.TimestampType: f"{_DATE}([T ]{_TIME})?",
    types.TimestampNsType: f"{_DATE}([T ]{_TIME})?",
    types.TimestamptzType: f"{_DATE}([T ]{_TIME})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?",
    types.TimestamptzNsType: f"{_DATE}([T ]{_TIME})?(Z|[+-][0-9]{{2}}:[0-9]{{2}})?",
    types.UUIDType: "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
"""The forms of values: those of the specification's Appendix D "JSON", and those of Hive and Spark.

Python's own conversions accept more: other digits than ASCII's, underscores, surrounding spaces.
"""


def _value(type_: types.Type, text: str) -> Any:
    form = _FORMS.get(type(type_))
    if form is not None and re.fullmatch(form, text, re.ASCII | re.IGNORECASE) is None:
        raise ValueError("it does not have the form of such a value")
    match type_:
        case types.BooleanType():
            literal: Any = text.lower() == "true"
        case types.IntegerType() | types.LongType():
            literal = int(text)
        case types.DecimalType():
            literal = Decimal(text)
        case types.FloatType() | types.DoubleType():
            literal = float(text)
        case _:
            literal = text
    bound_value = place_literal(type_, literal)
    if bound_value.where == "nan":
        return float("nan")
    if bound_value.where != "at":
        raise ValueError("it is out of range or has more digits")
    return bound_value.value
