"""Snapshot ids. Specification, "Snapshots": positive, unique in the table, well spread."""

from __future__ import annotations

from uuid import UUID


def snapshot_id_of(uuid: UUID) -> int:
    """The id that a random UUID gives: its halves XORed, without the sign bit.

    >>> snapshot_id_of(UUID(int=(5 << 64) + 3))
    6
    """
    return ((uuid.int >> 64) ^ uuid.int) & 0x7FFF_FFFF_FFFF_FFFF
