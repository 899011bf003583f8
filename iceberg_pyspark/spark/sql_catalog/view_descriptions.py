"""The rows of SHOW CREATE TABLE, SHOW TBLPROPERTIES and DESCRIBE EXTENDED for a view.

Spark sends these statements to tables alone. The rows are those of Iceberg's own extensions, except
that the shown statement can be run again: names and strings are quoted, and the view's location and
format are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, TableIdentifier
from iceberg_pyspark.expressions.condition_text import sql_string
from iceberg_pyspark.spark.rows.types import to_spark_schema
from iceberg_pyspark.spark.sql_catalog.views import (
    CHANGED_BY,
    COMMENT,
    CREATED_BY,
    QUERY_COLUMNS,
    load_view,
    spark_query,
)
from iceberg_pyspark.spec.views import ViewMetadata
from iceberg_pyspark.sql_text.names import quoted

_INTERNAL = {COMMENT, CREATED_BY, CHANGED_BY, QUERY_COLUMNS}
"""Properties that a statement stores without being told to."""
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

Rows: TypeAlias = tuple[tuple[str, ...], ...]


def description_rows(
    catalog: Catalog,
    identifier: TableIdentifier,
    statement: Literal["show create", "show properties", "describe extended"],
    key: str | None = None,
) -> Rows | None:
    """Return the rows of a statement about a view, or None if there is no view of this name.

    `key` is the only property to show, or None for all.
    """
    view = load_view(catalog, identifier)
    if view is None:
        return None
    match statement:
        case "show create":
            return ((_create_statement(catalog.name, identifier, view),),)
        case "show properties":
            return _property_rows(catalog.name, identifier, view, key)
        case "describe extended":
            return _details(catalog.name, identifier, view)


def _create_statement(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> str:
    """Return the CREATE VIEW statement that creates the view again."""
    fields = to_spark_schema(view.schema).fields
    clauses = [
        f"CREATE VIEW {_full_name((catalog, *identifier.levels))} {_in_lines(map(_column, fields))}"
    ]
    comment = view.properties.get(COMMENT)
    if comment is not None:
        clauses.append(f"COMMENT {sql_string(comment)}")
    properties = _own_properties(view)
    if properties:
        clauses.append(f"TBLPROPERTIES {_in_lines(_pairs(properties))}")
    return "\n".join((*clauses, "AS", spark_query(identifier, view), ""))


def _column(field: spark_types.StructField) -> str:
    comment = field.metadata.get("comment")
    name = _name(field.name)
    return name if comment is None else f"{name} COMMENT {sql_string(comment)}"


def _property_rows(
    catalog: str, identifier: TableIdentifier, view: ViewMetadata, key: str | None
) -> Rows:
    if key is None:
        return tuple(_all_properties(view).items())
    missing = f"View {catalog}.{identifier} does not have property: {key}"
    return ((key, {**view.properties, **_all_properties(view)}.get(key, missing)),)


def _details(catalog: str, identifier: TableIdentifier, view: ViewMetadata) -> Rows:
    columns = [
        (f.name, f.dataType.simpleString(), f.metadata.get("comment", ""))
        for f in to_spark_schema(view.schema).fields
    ]
    own_names = view.properties.get(QUERY_COLUMNS, "").replace(",", ", ")
    pairs = ", ".join(_pairs(_all_properties(view)))
    return (
        *columns,
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Comment", view.properties.get(COMMENT, ""), ""),
        ("View Catalog and Namespace", _full_name((catalog, *identifier.namespace)), ""),
        ("View Query Output Columns", f"[{own_names}]", ""),
        ("View Properties", f"[{pairs}]", ""),
        ("Created By", view.properties.get(CREATED_BY, ""), ""),
    )


def _own_properties(view: ViewMetadata) -> Mapping[str, str]:
    """Return the properties that a statement has set, in the order of their keys."""
    return {k: v for k, v in sorted(view.properties.items()) if k not in _INTERNAL}


def _all_properties(view: ViewMetadata) -> Mapping[str, str]:
    """Return the properties that statements have set and those that describe the view."""
    facts = {
        "format-version": str(view.format_version),
        "location": view.location,
        "provider": "iceberg",
    }
    return dict(sorted({**_own_properties(view), **facts}.items()))


def _pairs(properties: Mapping[str, str]) -> Iterable[str]:
    return (f"{sql_string(key)} = {sql_string(value)}" for key, value in properties.items())


def _in_lines(items: Iterable[str]) -> str:
    return "(\n  " + ",\n  ".join(items) + ")"


def _full_name(levels: Iterable[str]) -> str:
    return ".".join(map(_name, levels))


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)
