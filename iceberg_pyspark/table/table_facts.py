"""What the loaded metadata of a table says: its name, columns, partitioning, snapshots, refs."""

from __future__ import annotations

from collections.abc import Mapping

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.display import html_table, printable
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import MAIN, Snapshot, SnapshotLogEntry, SnapshotRef
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import transform_text
from iceberg_pyspark.sql_text.names import readable_name


class TableFacts:
    """The part of `Table` that reads no file: the state of the last load, refresh or commit."""

    _catalog: Catalog
    _loaded_table: LoadedTable
    _case_sensitive: bool | None

    def __repr__(self) -> str:
        lines = [printable(f"{type(self).__name__} {self.identifier} at {self.location}")]
        lines += [f"{name}: {text}" for name, text in self.facts()]
        return "\n".join([*lines, repr(self.schema)])

    def _repr_html_(self) -> str:
        caption = f"{type(self).__name__} {self.identifier}"
        facts = html_table(caption, (), [("location", self.location), *self.facts()])
        return facts + self.schema._repr_html_()

    def facts(self) -> list[tuple[str, str]]:
        """Return further facts for people, apart from name, location and columns, as texts."""
        names = self.schema.name_by_id
        partitioning = [
            transform_text(f.transform, names.get(f.source_id, f.name)) for f in self.spec.fields
        ]
        order = [
            f"{transform_text(f.transform, names.get(f.source_id, '?'))} {f.direction}"
            for f in self.sort_order.fields
        ]
        branches = sorted(n for n, ref in self.refs.items() if ref.type == "branch" and n != MAIN)
        tags = sorted(n for n, ref in self.refs.items() if ref.type == "tag")
        snapshot = self.current_snapshot
        facts = [
            ("format version", str(self.metadata.format_version)),
            ("snapshot", "none" if snapshot is None else repr(snapshot)),
            ("partitioned by", ", ".join(partitioning)),
            ("sorted by", ", ".join(order)),
            ("branches", ", ".join(branches)),
            ("tags", ", ".join(tags)),
        ]
        return [(name, printable(text)) for name, text in facts if text]

    @property
    def catalog(self) -> Catalog:
        """The catalog that contains the table."""
        return self._catalog

    @property
    def identifier(self) -> TableIdentifier:
        """The name of the table in the catalog."""
        return self._loaded_table.identifier

    @property
    def name(self) -> str:
        """The name as `load_table` of the table's catalog takes it, or the path."""
        identifier = self.identifier
        return readable_name(identifier.levels) if identifier.namespace else identifier.name

    @property
    def loaded(self) -> LoadedTable:
        """The table as the catalog returned it last."""
        return self._loaded_table

    @property
    def case_sensitive(self) -> bool | None:
        """Whether names of columns in texts are case-sensitive, as in the constructor."""
        return self._case_sensitive

    @property
    def metadata(self) -> TableMetadata:
        """The table metadata as of the last load, refresh or commit."""
        return self._loaded_table.metadata

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.current_schema

    @property
    def spec(self) -> PartitionSpec:
        """The default partition spec."""
        return self.metadata.default_spec

    @property
    def sort_order(self) -> SortOrder:
        """The default sort order."""
        return self.metadata.default_sort_order

    @property
    def location(self) -> str:
        """The base location."""
        return self.metadata.location

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties."""
        return self.metadata.properties

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots in the metadata."""
        return tuple(self.metadata.snapshots)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The snapshot of branch main."""
        return self.metadata.current_snapshot

    @property
    def refs(self) -> Mapping[str, SnapshotRef]:
        """Branches and tags by name."""
        return self.metadata.refs

    def history(self) -> tuple[SnapshotLogEntry, ...]:
        """Return the log of which snapshot was current since when, the oldest first."""
        return self.metadata.snapshot_log
