"""Commits over REST: maps the server's answer to one of the three outcomes.

Open API specification of the REST catalog, `updateTable` and `commitTransaction`. A client error
(4xx) is a refusal: the server states that it did nothing. After a broken connection, a server error
(5xx) or an unreadable answer, the outcome is unknown, and the caller must find it out. The same
holds for a refusal of a repeated request, whose first attempt may have succeeded. After a drop or
rename without a clear answer, the client asks the server for the names.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from iceberg_pyspark.catalogs.catalog import TableIdentifier, check_folder_name, check_identifier
from iceberg_pyspark.catalogs.outcome_search import look_after_change
from iceberg_pyspark.catalogs.rest.answers import CONFLICT, Answer, error_of
from iceberg_pyspark.catalogs.rest.rest_session import LostAnswer
from iceberg_pyspark.changes.changes import AssertCreate, TableRequirement, TableUpdate
from iceberg_pyspark.changes.changes_json import requirement_to_json, update_to_json
from iceberg_pyspark.changes.outcomes import Done, Outcome, Refused, T, Unknown, unknown
from iceberg_pyspark.errors import (
    CommitConflictError,
    IcebergError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)


def check_new_name(identifier: TableIdentifier) -> None:
    """Raise `InvalidRequestError` for a name that could lead a server to a folder elsewhere."""
    check_identifier(identifier)
    check_folder_name(identifier.name)


def commit_to_json(
    identifier: TableIdentifier,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
) -> dict[str, Any]:
    """Return the JSON body of a commit to one table."""
    return {
        "identifier": identifier_to_json(identifier),
        "requirements": [requirement_to_json(r) for r in requirements],
        "updates": [update_to_json(u) for u in updates],
    }


def identifier_to_json(identifier: TableIdentifier) -> dict[str, Any]:
    """Return the name of a table or view as JSON."""
    return {"namespace": list(identifier.namespace), "name": identifier.name}


def outcome_of(
    answer: Answer | LostAnswer,
    catalog: str,
    table: str,
    read: Callable[[Answer], T],
    refusal: Callable[[Answer], IcebergError],
) -> Outcome[T]:
    """Return the outcome of a commit to `table`; `read` parses a successful answer."""
    if isinstance(answer, LostAnswer):
        return unknown(table, answer.error) if answer.was_sent else Refused(answer.error)
    if answer.is_success:
        try:
            return Done(read(answer))
        except IcebergError as e:
            return unknown(table, e)
    if not 400 <= answer.status < 500 or answer.status == 408 or answer.repeated:
        return unknown(table, error_of(answer, catalog))
    return Refused(refusal(answer))


def commit_refusal(
    answer: Answer, catalog: str, requirements: Sequence[TableRequirement]
) -> IcebergError:
    """Return why a commit was refused; a `CommitConflictError` may be retried on newer metadata."""
    if answer.status == CONFLICT:
        return CommitConflictError(f"catalog '{catalog}': {answer.message()}; refresh and retry")
    creates = AssertCreate() in requirements
    return error_of(answer, catalog, missing=NoSuchNamespaceError if creates else NoSuchTableError)


def creation_refusal(answer: Answer, catalog: str) -> IcebergError:
    """Return why a table was not created."""
    return error_of(answer, catalog, missing=NoSuchNamespaceError, existing=TableAlreadyExistsError)


def is_answered(
    answer: Answer | LostAnswer,
    catalog: str,
    change: str,
    refusal: Callable[[Answer], IcebergError],
    is_made: Callable[[], bool],
) -> bool:
    """Return True if the server answered that a drop or rename is done; raise its refusal.

    `change` names the change. Without a clear answer, return False if the change `is_made`, and
    raise `CommitStateUnknownError` if not.
    """
    outcome = outcome_of(answer, catalog, change, read_nothing, refusal)
    if not isinstance(outcome, Unknown):
        outcome.result()
        return True
    look_after_change(change, is_made, outcome.error.__cause__ or outcome.error)
    return False


def read_nothing(answer: Answer) -> None:
    """Ignore the answer of a commit whose answer has no content."""


def new_idempotency_key() -> str:
    """Return a UUID of version 7 (RFC 9562), by which a server recognizes a repeated request."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=number & ~(0x3 << 62) | 0x2 << 62))
