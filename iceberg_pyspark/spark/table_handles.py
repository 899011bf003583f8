"""Handles: texts by which the JVM refers to objects that a session has opened.

Each handle names its catalog, and begins with the session that opened the catalog; sessions cloned
from it may use the handle too. The handle of a table's state is enough to read the same state
again; other handles refer to objects in this process.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import msgspec

from iceberg_pyspark.table.reading.snapshot_selection import SnapshotSelector


@dataclass(frozen=True, kw_only=True)
class StateHandle:
    """The content of a state's handle; equal states have equal handles."""

    catalog: str
    namespace: tuple[str, ...]
    name: str
    metadata_location: str
    selector: SnapshotSelector
    metadata_table: str | None
    by_session: bool

    def text(self) -> str:
        """Return the handle as text."""
        return msgspec.json.encode(self).decode()


def read_state_handle(text: str) -> StateHandle:
    """Return the content of a state's handle."""
    return msgspec.json.decode(text, type=StateHandle)


def new_handle(catalog: str) -> str:
    """Return a new unique handle for an object of a catalog."""
    return msgspec.json.encode({"catalog": catalog, "key": str(uuid.uuid4())}).decode()


def catalog_of_handle(text: str) -> str:
    """Return the handle of the catalog that any of these handles names."""
    return str(msgspec.json.decode(text)["catalog"])
