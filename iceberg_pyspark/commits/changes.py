"""The changes of one operation: updates, and the requirements under which they are valid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iceberg_pyspark.commits.requirements import (
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
)
from iceberg_pyspark.commits.updates import AssignUUID, TableUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Updates in order, and their requirements; both empty: nothing to do."""

    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()


def combine_requirements(changes: Iterable[Changes]) -> list[TableRequirement]:
    """The requirements of several operations of one commit.

    Of two about the same thing the first counts: the second was made when the first operation
    had already changed it. So is a UUID that the commit itself gives to the table.
    """
    groups = tuple(changes)
    new_uuids = {u.uuid for group in groups for u in group.updates if isinstance(u, AssignUUID)}
    by_subject: dict[object, TableRequirement] = {}
    for requirement in (r for group in groups for r in group.requirements):
        if isinstance(requirement, AssertTableUUID) and requirement.uuid in new_uuids:
            continue
        key: object = type(requirement)
        if isinstance(requirement, AssertRefSnapshotId):
            key = (key, requirement.ref)
        by_subject.setdefault(key, requirement)
    return list(by_subject.values())
