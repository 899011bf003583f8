"""What a manifest's entries inherit from the manifest (specification, "Sequence Number Inheritance"
and "First Row ID Inheritance").

A commit that is repeated writes a new manifest list and keeps its manifests: they leave out the
values that only the finished commit knows, and the manifest list gives them.
"""

from __future__ import annotations

from iceberg_pyspark.spec.manifests import EntryStatus, ManifestContent, ManifestFile


def inherited_sequence_number(
    status: EntryStatus, manifest: ManifestFile, *, is_written: bool
) -> int | None:
    """Return the number of an entry whose own (field 3 or 4) is null; None if it must have one.

    Without the field, as in version 1 (`is_written` is False), all numbers are 0. Otherwise only an
    ADDED entry inherits: any other was in the table before the manifest.
    """
    if not is_written or manifest.sequence_number == 0:
        return 0
    return manifest.sequence_number if status is EntryStatus.ADDED else None


def inherits_from_leaf(status: EntryStatus, *, in_root: bool) -> bool:
    """Return whether an entry may leave out its snapshot id and numbers (proposal of version 4).

    The entries of a root manifest have no parent to inherit from.
    """
    return status is EntryStatus.ADDED and not in_root


def first_inherited_row_id(manifest: ManifestFile) -> int | None:
    """Return the first row id of the first entry that has none; None if no entry inherits one.

    Each such entry that is not DELETED takes as many ids as it has rows. Entries of deletes have no
    rows of a table, and a manifest older than row lineage gives no ids.
    """
    return None if manifest.content is ManifestContent.DELETES else manifest.first_row_id


def takes_row_ids(status: EntryStatus) -> bool:
    """Return whether an entry without a first row id inherits one, if its manifest has ids."""
    return status is not EntryStatus.DELETED
