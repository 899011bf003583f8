"""A view of a catalog, as `TableCatalog.load_view` returns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import LoadedView
from iceberg_pyspark.display import printable
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked_methods
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.views import SqlRepresentation, ViewMetadata
from iceberg_pyspark.sql_text.names import readable_name


@checked_methods
@dataclass(frozen=True, slots=True)
class View:
    """A view as it was when it was loaded; its query is run by an engine such as Spark."""

    loaded: LoadedView
    """The view as the catalog returned it."""

    def __repr__(self) -> str:
        return "\n".join([printable(f"View {self.name}"), repr(self.schema)])

    @property
    def name(self) -> str:
        """The name as `load_view` of the view's catalog takes it."""
        return readable_name(self.loaded.identifier.levels)

    @property
    def metadata(self) -> ViewMetadata:
        """All versions of the view."""
        return self.loaded.metadata

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.metadata.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The view properties."""
        return self.metadata.properties

    def sql(self, dialect: str = "spark") -> str:
        """Return the query in a dialect; raise `InvalidRequestError` if the view has none."""
        version = self.metadata.current_version
        text = version.sql(dialect)
        if text is None:
            queries = [r for r in version.representations if isinstance(r, SqlRepresentation)]
            dialects = ", ".join(q.dialect for q in queries) or "none"
            raise InvalidRequestError(
                f"view {self.name} has no query in dialect '{dialect}'; it has: {dialects}"
            )
        return text
