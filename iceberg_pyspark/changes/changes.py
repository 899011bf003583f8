"""The changes of one operation: updates, and the requirements under which they are valid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from iceberg_pyspark.changes.requirements import (
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
)
from iceberg_pyspark.changes.updates import AssignUUID, TableUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """An operation's updates, in order, and their requirements; both are empty for a no-op."""

    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()


def combine_requirements(changes: Iterable[Changes]) -> list[TableRequirement]:
    """Return the requirements of several operations that are committed together.

    If two requirements have the same subject, the first counts: the second was computed on metadata
    that the first operation had already changed. A requirement of a UUID that the commit itself
    assigns is dropped for the same reason.
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
