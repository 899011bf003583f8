"""The definition of a procedure: its parameters, its result columns and its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.maintenance.rewrites.rewrite_options import PlannedGroup
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance
from iceberg_pyspark.table.progress import Progress, no_progress
from iceberg_pyspark.table.table import Table, load_table

Row: TypeAlias = tuple[int | str | None, ...]

DRY_RUN = "dry_run"
"""The parameter for a dry run; it comes last in procedures where Java has no such parameter."""


class NoTableToCallError(NoSuchTableError):
    """The table of a CALL does not exist."""


def no_other_catalog(name: str) -> Catalog:
    """Raise `InvalidRequestError`: this run of a procedure can use only its table's catalog."""
    raise InvalidRequestError(f"catalog {name} cannot be opened here; call the procedure in SQL")


def no_groups(groups: Sequence[PlannedGroup]) -> None:
    """Show no groups: the columns of CALL are those of the JVM connector."""


@dataclass(frozen=True)
class ProcedureRun:
    """One CALL, with its arguments by parameter name; a timestamp is in milliseconds since 1970."""

    procedure: str
    spark: SparkSession
    catalog: Catalog
    arguments: Mapping[str, Any]
    current_namespace: Namespace
    """The namespace of a table that is named without a namespace."""
    open_catalog: Callable[[str], Catalog] = no_other_catalog
    """Opens another catalog of this package by its name in the session."""
    progress: Progress = no_progress
    show_groups: Callable[[Sequence[PlannedGroup]], None] = no_groups
    """Called with the groups that a dry run of `rewrite_data_files` has chosen."""

    @property
    def maintenance(self) -> TableMaintenance:
        """The maintenance operations of the table; raises `NoTableToCallError`."""
        return self.table.maintenance(progress=self.progress)

    @cached_property
    def given_arguments(self) -> dict[str, Any]:
        """The arguments that are not null, without `table`."""
        return {n: v for n, v in self.arguments.items() if n != "table" and v is not None}

    @property
    def is_dry(self) -> bool:
        """Whether the argument `dry_run` is true, so that nothing may change."""
        return bool(self.given_arguments.get(DRY_RUN, False))

    @cached_property
    def identifier(self) -> TableIdentifier:
        """The identifier that the argument `table` gives; raises `InvalidRequestError`."""
        name = self.arguments["table"]
        if not isinstance(name, str) or not name.strip():
            raise InvalidRequestError(f"{self.procedure}: the argument table must name a table")
        levels = parse_levels(name)
        if levels[0] == self.catalog.name and len(levels) > 1:
            levels = levels[1:]
        return TableIdentifier(namespace=levels[:-1] or self.current_namespace, name=levels[-1])

    @cached_property
    def table(self) -> Table:
        """The loaded table; raises `NoTableToCallError`."""
        try:
            return load_table(
                self.catalog, self.identifier, case_sensitive=is_case_sensitive(self.spark)
            )
        except NoSuchTableError as e:
            raise NoTableToCallError(str(e)) from e

    def required(self, name: str) -> Any:
        """Return an argument that must not be null; raise `InvalidRequestError` if it is null."""
        if name not in self.given_arguments:
            raise InvalidRequestError(f"{self.procedure}: the argument {name} must not be null")
        return self.given_arguments[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a procedure's result, with Spark's name of its type."""

    type: str
    is_nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure, with the JVM connector's order of parameters and columns.

    `required` and `optional` map parameter names to Spark types; the required parameters, among
    them `table`, come first.
    """

    name: str
    description: str
    required: Mapping[str, str]
    optional: Mapping[str, str]
    columns: Mapping[str, Column]
    run: Callable[[ProcedureRun], tuple[Row, ...]]
    changes_rows: bool = False
    """Whether the table may have other rows afterwards, so that cached rows are read anew."""
