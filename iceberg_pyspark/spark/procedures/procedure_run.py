"""One CALL of a procedure, or one run of `jobs/maintain.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError
from iceberg_pyspark.spark.options.option_values import is_case_sensitive
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.maintenance.procedure_parts import DRY_RUN, Interface
from iceberg_pyspark.table.maintenance.procedures import PROCEDURES
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance
from iceberg_pyspark.table.progress import Progress, no_progress
from iceberg_pyspark.table.table import Table, load_table

Row: TypeAlias = tuple[int | str | None, ...]
Result: TypeAlias = Any
"""A result as in Python, a dataclass, or a tuple of rows with the columns of CALL."""


class NoTableToCallError(NoSuchTableError):
    """The table of a CALL does not exist."""


def no_other_catalog(name: str) -> Catalog:
    """Raise `InvalidRequestError`: this run of a procedure can use only its table's catalog."""
    raise InvalidRequestError(f"catalog {name} cannot be opened here; call the procedure in SQL")


@dataclass(frozen=True)
class ProcedureRun:
    """A procedure's arguments by parameter name; a timestamp is in milliseconds since 1970."""

    procedure: str
    spark: SparkSession
    catalog: Catalog
    arguments: Mapping[str, Any]
    current_namespace: Namespace
    """The namespace of a table that is named without a namespace."""
    open_catalog: Callable[[str], Catalog] = no_other_catalog
    """Opens another catalog of this package by its name in the session."""
    progress: Progress = no_progress

    @property
    def maintenance(self) -> TableMaintenance:
        """The maintenance operations of the table; raises `NoTableToCallError`."""
        return self.table.maintenance(progress=self.progress)

    @cached_property
    def given_arguments(self) -> dict[str, Any]:
        """The arguments that are not null and have an effect, without `table`."""
        return {
            p.name: self.arguments[p.name]
            for p in PROCEDURES[self.procedure].parameters
            if p.name != "table"
            and p.interface is not Interface.CALL_WITHOUT_EFFECT
            and self.arguments.get(p.name) is not None
        }

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


Run: TypeAlias = Callable[[ProcedureRun], Result]
"""The function of a procedure."""
