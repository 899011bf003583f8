"""A table of a Spark Connect session: the server has its catalog and its store.

Its state is what the format `iceberg-py` tells. Changes of its definition and its maintenance are
sent to the server as calls. Methods that read or write files in this process need the store here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast, get_type_hints

import msgspec

from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, TableIdentifier
from iceberg_pyspark.errors import UnsupportedFeatureError
from iceberg_pyspark.spark.data_source.table_calls import call_text
from iceberg_pyspark.spark.portable.format_table import FormatTable
from iceberg_pyspark.spark.portable.server_errors import servers_errors
from iceberg_pyspark.spark.row_changes.change_request import (
    PINNED,
    REWRITE,
    TABLE_CALL,
    PinnedRead,
)
from iceberg_pyspark.spec.encryption import TABLE_KEY_ID
from iceberg_pyspark.table.maintenance.rewrites.rewrite_data_files import RewrittenDataFiles
from iceberg_pyspark.table.maintenance.rewrites.written_groups import WrittenGroups
from iceberg_pyspark.table.maintenance.table_maintenance import TableMaintenance


class RemoteCatalog:
    """The server's catalog as a client knows it: it loads one table."""

    def __init__(self, table: FormatTable) -> None:
        self._table = table
        self.name = table.options.get("catalog", "")
        self.properties: dict[str, str] = {}

    def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table's current metadata; raise `NoSuchTableError` if there is none."""
        del identifier
        return self._table.load()

    def __getattr__(self, name: str) -> Any:
        raise UnsupportedFeatureError(
            f"{self._table.name}: {name} needs the catalog, which the server has; load it in this "
            "process by ice.load_catalog(...) if it is configured here"
        )


def remote_catalog(table: FormatTable) -> Catalog:
    """Return the catalog of a table that only the format knows."""
    return cast("Catalog", RemoteCatalog(table))


class RemoteChange:
    """A change of a table's definition that the server will make: `commit()` sends the calls."""

    def __init__(
        self, table: FormatTable, name: str, named: dict[str, Any], after: Callable[[], None]
    ) -> None:
        """`after` is called after the commit."""
        self._table = table
        self._after = after
        self._steps: list[tuple[str, list[Any], dict[str, Any]]] = [(name, [], named)]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._steps.append((name, list(arguments), named))
            if name != "commit":
                return self
            nothing = self._table.spark.range(0)
            self._table.write(nothing, {TABLE_CALL: call_text(self._steps)})
            self._after()
            return None

        return call


class RemoteMaintenance:
    """The methods of `TableMaintenance`, run by the server."""

    def __init__(self, table: FormatTable, after: Callable[[], None]) -> None:
        """`after` is called after each method."""
        self._table = table
        self._after = after

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = None if name.startswith("_") else getattr(TableMaintenance, name, None)
        if method is None:
            raise AttributeError(f"the maintenance of a table has no method {name}")

        def call(**named: Any) -> Any:
            return self._call(name, named)

        return call

    def rewrite_data_files(self, **named: Any) -> RewrittenDataFiles:
        """Rewrite data files in tasks, and commit them in the server's process.

        The keys of an encrypted table's files do not leave the server: one process rewrites them.
        """
        loaded = self._table.load()
        is_encrypted = TABLE_KEY_ID in loaded.metadata.properties
        if named.get("dry_run") or is_encrypted:
            return cast("RewrittenDataFiles", self._call("rewrite_data_files", named))
        pinned = {PINNED: PinnedRead(metadata_location=loaded.metadata_location).text()}
        write_id = str(uuid.uuid4())
        arguments = {name: value for name, value in named.items() if name != "dry_run"}
        with servers_errors():
            work = self._table.read({**pinned, REWRITE: json.dumps([write_id, arguments])})
            written = WrittenGroups(write_id=write_id, parts=[row[0] for row in work.collect()])
        arguments = {**arguments, "runner": written}
        return cast("RewrittenDataFiles", self._call("rewrite_data_files", arguments, pinned))

    def _call(self, name: str, named: dict[str, Any], more: Mapping[str, str] | None = None) -> Any:
        text = call_text([("maintenance", [], {}), (name, [], named)])
        with servers_errors():
            (row,) = self._table.read({**(more or {}), TABLE_CALL: text}).collect()
        self._after()
        result_type = get_type_hints(getattr(TableMaintenance, name))["return"]
        return msgspec.json.decode(row["answer"], type=result_type)
