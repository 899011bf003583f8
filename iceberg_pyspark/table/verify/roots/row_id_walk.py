"""Checks that row ids are assigned in the order of a root's entries, from the first id on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from iceberg_pyspark.spec.content_entries import ContentStatus, ContentType
from iceberg_pyspark.table.verify.roots.root_rules import Root
from iceberg_pyspark.table.verify.roots.stored_entries import StoredEntry


def row_id_problems(
    root: Root,
    parent_row_ids: Mapping[str, int | None],
    *,
    all_have_ids: Callable[[StoredEntry], bool],
    next_row_id: int | None,
) -> Iterator[tuple[int | None, str]]:
    """Yield the position of an entry with wrong row ids (None: the snapshot) and a description.

    `parent_row_ids` maps locations to first row ids of the parent's data manifests. `all_have_ids`
    says whether all entries of a new data manifest have row ids of their own. `next_row_id` is the
    table's, or None if there are later snapshots.
    """
    start = root.snapshot.first_row_id
    if start is None:
        yield None, "the snapshot has no first-row-id"
        return
    cursor = start
    for e in root.entries:
        first = e["first_row_id"]
        if not e.is_live or first is None:
            continue
        if e.type is ContentType.DATA and e.status is ContentStatus.ADDED:
            if first != cursor:
                yield e.ordinal, f"first_row_id is {first}, the next one was {cursor}"
            cursor = first + e["record_count"]
        elif e.type is ContentType.DATA_MANIFEST and parent_row_ids.get(e["location"]) is None:
            if first != cursor:
                yield e.ordinal, f"first_row_id is {first}, the next one was {cursor}"
            if not all_have_ids(e):
                cursor = first + (e["added_rows_count"] or 0) + (e["existing_rows_count"] or 0)
    added_rows = root.snapshot.added_rows
    if added_rows is not None and start + added_rows != cursor:
        yield None, f"added-rows is {added_rows}, and {cursor - start} were given"
    elif next_row_id is not None and next_row_id != cursor:
        yield None, f"the table's next-row-id is {next_row_id}, the next one was {cursor}"
