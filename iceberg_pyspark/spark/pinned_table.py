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
