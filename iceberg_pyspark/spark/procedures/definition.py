"""The definition of a procedure: its parameters, its result columns and its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from iceberg_pyspark.catalogs.catalog import Catalog, Namespace, TableIdentifier
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.maintenance.progress import Progress, no_progress
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.maintenance import TableMaintenance
from iceberg_pyspark.table.table import Table, load_table

Row: TypeAlias = tuple[int | str | None, ...]

DRY_RUN = "dry_run"
"""The parameter that has a procedure count what it would do; last where Java has none."""


def no_other_catalog(name: str) -> Catalog:
    """Where a procedure has the catalog alone whose table it is given."""
    raise InvalidRequestError(f"catalog {name} cannot be opened here; call the procedure in SQL")


@dataclass(frozen=True)
class ProcedureRun:
    """One CALL: the values of the parameters, by name; a time is its milliseconds from 1970."""

    procedure: str
    spark: SparkSession
    catalog: Catalog
    arguments: Mapping[str, Any]
    current_namespace: Namespace
    """Where a table of one name is."""
    open_catalog: Callable[[str], Catalog] = no_other_catalog
    """Another catalog of ours, by its name in the session."""
    progress: Progress = no_progress

    @property
    def maintenance(self) -> TableMaintenance:
        """The maintenance of the table; raises `NoSuchTableError`."""
        return self.table.maintenance(progress=self.progress)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The arguments that are not null, without the table."""
        return {n: v for n, v in self.arguments.items() if n != "table" and v is not None}

    @cached_property
    def identifier(self) -> TableIdentifier:
        """The table that the argument `table` names; raises `InvalidRequestError`."""
        name = self.arguments["table"]
        if not isinstance(name, str) or not name.strip():
            raise InvalidRequestError(f"{self.procedure}: the argument table must name a table")
        levels = parse_levels(name)
        if levels[0] == self.catalog.name and len(levels) > 1:
            levels = levels[1:]
        return TableIdentifier(namespace=levels[:-1] or self.current_namespace, name=levels[-1])

    @cached_property
    def table(self) -> Table:
        """The table itself; raises `NoSuchTableError`."""
        return load_table(self.catalog, self.identifier)

    def required(self, name: str) -> Any:
        """An argument that must be given; raises `InvalidRequestError`."""
        if name not in self.given:
            raise InvalidRequestError(f"{self.procedure}: the argument {name} must not be null")
        return self.given[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a result, by Spark's name of its type."""

    type: str
    is_nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure of the JVM connector's, in its order of parameters and columns.

    Spark's type of each parameter, those that must be given (`table` among them) before those that
    may be left out.
    """

    name: str
    description: str
    required: Mapping[str, str]
    optional: Mapping[str, str]
    columns: Mapping[str, Column]
    run: Callable[[ProcedureRun], tuple[Row, ...]]
