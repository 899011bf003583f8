"""What the steps of one read hand on, so that all of them see the same snapshot and schema."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PinnedTable:
    """The metadata file a DataFrame saw when it was loaded; later steps need no catalog."""

    namespace: tuple[str, ...]
    name: str
    metadata_location: str
    config: dict[str, str] = field(repr=False)
    metadata_table: str | None = None
    """Which of the table's metadata tables is read; None for the table itself."""
