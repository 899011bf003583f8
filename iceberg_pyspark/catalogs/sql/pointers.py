"""The rows of tables and views in a SQL catalog: a name and the location of its metadata.

Tables and views share `iceberg_tables` and its key, so a table and a view cannot have the same
name.
"""

from __future__ import annotations

import sqlalchemy as sa

from iceberg_pyspark.catalogs.catalog import Namespace, TableIdentifier
from iceberg_pyspark.catalogs.sql.database import Database
from iceberg_pyspark.catalogs.sql.namespaces import can_exist, joined_levels
from iceberg_pyspark.catalogs.sql.schema import TABLE_TYPE, TABLES
from iceberg_pyspark.errors import CatalogError
from iceberg_pyspark.storage.files.places import spellings


class SqlPointers:
    """The rows of one catalog name and one type (table or view).

    In a database of schema V0, every row is a table. The methods that write raise the errors of
    `Database.write`.
    """

    def __init__(self, catalog: str, database: Database, row_type: str, *, is_v1: bool) -> None:
        self._catalog = catalog
        self._database = database
        self._type = row_type
        self._is_v1 = is_v1

    def identifiers(self, namespace: Namespace) -> list[TableIdentifier]:
        """Return the identifiers directly in a namespace, sorted by name."""
        text = joined_levels(namespace)
        query = sa.select(TABLES.c.table_name, TABLES.c.table_namespace).where(
            TABLES.c.catalog_name == self._catalog,
            TABLES.c.table_namespace == text,
            *self._only_type(),
        )
        rows = self._database.read(lambda c: c.execute(query).all())
        # some databases ignore case in comparisons
        names = sorted(row.table_name for row in rows if row.table_namespace == text)
        return [TableIdentifier(namespace=namespace, name=name) for name in names]

    def location(self, identifier: TableIdentifier) -> str | None:
        """Return the location of the metadata, or None if there is no row."""
        # Spark also asks for tables in `db.t`, which is the metadata table of a table.
        if not can_exist(identifier.namespace):
            return None
        query = sa.select(TABLES.c.metadata_location).where(*self._is_row_of(identifier))
        row = self._database.read(lambda c: c.execute(query).first())
        if row is not None and row.metadata_location is None:
            raise CatalogError(
                f"{self._type.lower()} {identifier} has no metadata location in catalog "
                f"'{self._catalog}'; its row is damaged"
            )
        return None if row is None else row.metadata_location

    def other_catalogs(self, identifier: TableIdentifier) -> list[str]:
        """Return the other catalog names of the database that have this name, sorted."""
        if not can_exist(identifier.namespace):
            return []
        column = TABLES.c.catalog_name
        query = sa.select(column).where(*self._has_name(identifier), column != self._catalog)
        return sorted(self._database.read(lambda c: c.execute(query).scalars().all()))

    def others_in(self, identifier: TableIdentifier, folder: str) -> list[str]:
        """Return the metadata locations in a folder of all other rows, whatever their type.

        The rows of other catalog names count too.
        """
        starts = spellings(f"{folder.rstrip('/')}/")
        column = TABLES.c.metadata_location
        query = sa.select(column).where(
            sa.or_(*(column.startswith(start, autoescape=True) for start in starts)),
            sa.not_(sa.and_(*self._is_row_of(identifier))),
        )
        locations = self._database.read(lambda c: c.execute(query).scalars().all())
        # some databases ignore case in comparisons
        return sorted(f for f in locations if f"{f.rpartition('/')[0]}/" in starts)

    def insert(self, identifier: TableIdentifier, location: str) -> None:
        """Insert a row."""
        row: dict[str, str | None] = {
            "catalog_name": self._catalog,
            "table_namespace": joined_levels(identifier.namespace),
            "table_name": identifier.name,
            "metadata_location": location,
            "previous_metadata_location": None,
        }
        if self._is_v1:
            row["iceberg_type"] = self._type
        self._database.write(lambda c: c.execute(sa.insert(TABLES), row))

    def swap(self, identifier: TableIdentifier, base_location: str, new: str) -> bool:
        """Replace the metadata location if it is `base_location`; return whether it was."""
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(identifier), TABLES.c.metadata_location == base_location)
            .values(metadata_location=new, previous_metadata_location=base_location)
        )
        return self._changes_a_row(statement)

    def delete(self, identifier: TableIdentifier) -> bool:
        """Delete the row; return whether the row existed."""
        statement = sa.delete(TABLES).where(*self._is_row_of(identifier))
        return self._changes_a_row(statement)

    def rename(self, source: TableIdentifier, target: TableIdentifier) -> bool:
        """Rename the row; return whether the row existed."""
        statement = (
            sa.update(TABLES)
            .where(*self._is_row_of(source))
            .values(table_namespace=joined_levels(target.namespace), table_name=target.name)
        )
        return self._changes_a_row(statement)

    def _changes_a_row(self, statement: sa.Update | sa.Delete) -> bool:
        return self._database.write(lambda c: c.execute(statement).rowcount) > 0

    def _is_row_of(self, identifier: TableIdentifier) -> tuple[sa.ColumnElement[bool], ...]:
        return (TABLES.c.catalog_name == self._catalog, *self._has_name(identifier))

    def _has_name(self, identifier: TableIdentifier) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            *self._database.equals(TABLES.c.table_namespace, joined_levels(identifier.namespace)),
            *self._database.equals(TABLES.c.table_name, identifier.name),
            *self._only_type(),
        )

    def _only_type(self) -> tuple[sa.ColumnElement[bool], ...]:
        column = TABLES.c.iceberg_type
        if not self._is_v1:
            return () if self._type == TABLE_TYPE else (sa.false(),)
        if self._type == TABLE_TYPE:
            return (sa.or_(column == TABLE_TYPE, column.is_(None)),)
        return (column == self._type,)
