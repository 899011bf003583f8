"""The offsets of streams, in the JSON that Iceberg's Java connector writes into checkpoints.

An offset lies between two data files of a snapshot: `position` counts the data files that the
snapshot has added, in the order of its manifest list. Java ignores `complete`, which only this
package writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from iceberg_pyspark.errors import InvalidRequestError

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """A place in a stream: all files before it have been read."""

    snapshot_id: int
    position: int
    scan_all_files: bool = False
    """Whether the positions count all live files of the snapshot, and not those it has added."""

    is_complete: bool = field(default=False, compare=False)
    """Whether it is known that the snapshot has no further file, also once it has expired."""

    def json(self) -> str:
        """Return the offset as Java writes it."""
        content: dict[str, object] = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "position": self.position,
            "scan_all_files": self.scan_all_files,
        }
        if self.is_complete:
            content["complete"] = True
        return json.dumps(content, separators=(",", ":"))


START = StreamOffset(snapshot_id=-1, position=-1)
"""The offset before the first file of a table that has no snapshot to begin with yet."""


def read_offset(text: str) -> StreamOffset:
    """Return the offset of a checkpoint; raise `InvalidRequestError` for any other text."""
    try:
        content = json.loads(text)
        version, snapshot_id, position, scan_all_files = (
            content[key] for key in ("version", "snapshot_id", "position", "scan_all_files")
        )
    except (ValueError, TypeError, KeyError) as e:
        raise _refusal(text) from e
    numbers = (version, snapshot_id, position)
    if any(type(n) is not int for n in numbers) or not isinstance(scan_all_files, bool):
        raise _refusal(text)
    if version != _VERSION:
        raise InvalidRequestError(
            f"the checkpoint has an offset of version {version}, and this iceberg_pyspark knows "
            f"version {_VERSION}: continue the stream with a newer one, or start a new checkpoint"
        )
    return StreamOffset(
        snapshot_id=snapshot_id,
        position=position,
        scan_all_files=scan_all_files,
        is_complete=content.get("complete") is True,
    )


def _refusal(text: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the checkpoint has the offset {text[:200]}, which is none of an Iceberg table: it may "
        "belong to another source; give this stream a checkpoint of its own"
    )
