"""The procedures that CALL runs, in the namespace `system` of each catalog.

Names, the order of parameters and the columns of results are those of the JVM connector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import types as spark_types

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.spark.bridge.protocol.procedures import (
    Argument,
    ProcedureArgument,
    ProcedureDefinition,
    ProcedureRows,
)
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.table import Table, load_table

SYSTEM = "system"
Row: TypeAlias = tuple[int | str | None, ...]
Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure on one table, which its first parameter names.

    `parameters` are the others, which all may be left out, by Spark's type of each; `columns` the
    same of its result, which Spark takes for nullable where the JVM connector says so.
    """

    description: str
    parameters: Mapping[str, str]
    columns: Mapping[str, str]
    nullable: bool
    run: Callable[[Table, Arguments], tuple[Row, ...]]


def _expire_snapshots(table: Table, arguments: Arguments) -> tuple[Row, ...]:
    done = table.maintenance().expire_snapshots(**_given(arguments))
    return (tuple(getattr(done, name) for name in PROCEDURES["expire_snapshots"].columns),)


def _remove_orphan_files(table: Table, arguments: Arguments) -> tuple[Row, ...]:
    given = _given(arguments)
    if "file_list_view" in given:
        raise UnsupportedFeatureError(
            "remove_orphan_files: file_list_view is not supported yet; leave it out, and the "
            "table's folder is listed"
        )
    for name in ("prefix_listing", "stream_results"):
        # how files are listed and results kept, of which there is one way here
        given.pop(name, None)
    if "prefix_mismatch_mode" in given:
        given["prefix_mismatch_mode"] = str(given["prefix_mismatch_mode"]).lower()
    done = table.maintenance().remove_orphan_files(**given)
    return tuple((location,) for location in done.orphan_file_locations)


PROCEDURES: Mapping[str, Procedure] = {
    "expire_snapshots": Procedure(
        description="Removes old snapshots, and the files that only they need",
        parameters={
            "older_than": "timestamp",
            "retain_last": "int",
            "max_concurrent_deletes": "int",
            "stream_results": "boolean",
            "snapshot_ids": "array<bigint>",
            "clean_expired_metadata": "boolean",
        },
        columns={
            "deleted_data_files_count": "long",
            "deleted_position_delete_files_count": "long",
            "deleted_equality_delete_files_count": "long",
            "deleted_manifest_files_count": "long",
            "deleted_manifest_lists_count": "long",
            "deleted_statistics_files_count": "long",
        },
        nullable=True,
        run=_expire_snapshots,
    ),
    "remove_orphan_files": Procedure(
        description="Removes old files of a table's folder that the table does not need",
        parameters={
            "older_than": "timestamp",
            "location": "string",
            "dry_run": "boolean",
            "max_concurrent_deletes": "int",
            "file_list_view": "string",
            "equal_schemes": "map<string,string>",
            "equal_authorities": "map<string,string>",
            "prefix_mismatch_mode": "string",
            "prefix_listing": "boolean",
            "stream_results": "boolean",
        },
        columns={"orphan_file_location": "string"},
        nullable=False,
        run=_remove_orphan_files,
    ),
}
"""By name."""


def procedure_names(namespace: Namespace) -> tuple[str, ...]:
    """The procedures in a namespace."""
    return tuple(PROCEDURES) if _is_system(namespace) else ()


def procedure_definition(namespace: Namespace, name: str) -> ProcedureDefinition:
    """A procedure as Spark knows it; raises `InvalidRequestError`: there is none."""
    procedure = PROCEDURES.get(name.lower()) if _is_system(namespace) else None
    if procedure is None:
        raise InvalidRequestError(
            f"there is no procedure {'.'.join((*namespace, name))}; those of a catalog of "
            f"iceberg_pyspark are {', '.join(f'{SYSTEM}.{n}' for n in PROCEDURES)}"
        )
    schema = spark_types.StructType()
    for column, type_ in procedure.columns.items():
        schema = schema.add(column, type_, procedure.nullable)
    return ProcedureDefinition(
        name=name.lower(),
        description=procedure.description,
        parameters=(
            ProcedureArgument(name="table", type="string", is_required=True),
            *(
                ProcedureArgument(name=n, type=type_, is_required=False)
                for n, type_ in procedure.parameters.items()
            ),
        ),
        schema=schema.json(),
    )


def call_procedure(
    catalog: Catalog,
    name: str,
    arguments: Mapping[str, Argument],
    current_namespace: Namespace,
) -> ProcedureRows:
    """Run a procedure on the table that its arguments name."""
    others = dict(arguments)
    table_name = others.pop("table")
    if not isinstance(table_name, str) or not table_name.strip():
        raise InvalidRequestError(f"{name}: the argument table must name a table")
    levels = parse_levels(table_name)
    if levels[0] == catalog.name and len(levels) > 1:
        levels = levels[1:]
    identifier = TableIdentifier(namespace=levels[:-1] or current_namespace, name=levels[-1])
    return ProcedureRows(rows=PROCEDURES[name].run(load_table(catalog, identifier), others))


def _is_system(namespace: Namespace) -> bool:
    return len(namespace) == 1 and namespace[0].lower() == SYSTEM


def _given(arguments: Arguments) -> dict[str, Any]:
    """What the caller gave, times as milliseconds."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if "older_than" in given:
        given["older_than"] //= 1000
    return given
