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
        """The handle."""
        return msgspec.json.encode(self).decode()


def read_state_handle(text: str) -> StateHandle:
    """Decode the handle of a state."""
    return msgspec.json.decode(text, type=StateHandle)


def new_handle(catalog: str) -> str:
    """A handle that no other is equal to, of something of a catalog's."""
    return msgspec.json.encode({"catalog": catalog, "key": str(uuid.uuid4())}).decode()


def catalog_of_handle(text: str) -> str:
    """The handle of the catalog that any such handle names."""
    return str(msgspec.json.decode(text)["catalog"])
