"""Row ids of a new snapshot. Specification, "Row Lineage" and "First Row ID Assignment" (v3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iceberg_pyspark.errors import InvalidMetadataError
from iceberg_pyspark.spec.manifests import ManifestContent, ManifestFile


def assign_first_row_ids(
    manifests: Sequence[ManifestFile], next_row_id: int
) -> tuple[tuple[ManifestFile, ...], int]:
    """Give every data manifest without a first row id one, in order; also returns the next free id.

    A manifest takes as many ids as it has added and existing rows: rows with ids of their own
    are counted too, which leaves gaps and repeats nothing.
    """
    assigned: list[ManifestFile] = []
    for m in manifests:
        if m.content is ManifestContent.DELETES or m.first_row_id is not None:
            assigned.append(m)
            continue
        if m.added_rows_count is None or m.existing_rows_count is None:
            raise InvalidMetadataError(
                f"manifest {m.manifest_path} has no row counts; rows cannot be given ids: "
                "rewrite the table's manifests first"
            )
        assigned.append(replace(m, first_row_id=next_row_id))
        next_row_id += m.added_rows_count + m.existing_rows_count
    return tuple(assigned), next_row_id
