"""Defines the exit codes of `iceberg-py`, `jobs/maintain.py` and `jobs/ingest.py`."""

from __future__ import annotations

from enum import IntEnum

from iceberg_pyspark.errors import (
    AlreadyExistsError,
    CatalogUnavailableError,
    CommitError,
    CommitStateUnknownError,
    InvalidRequestError,
    NotAuthorizedError,
    NotFoundError,
    UnsupportedFeatureError,
)


class ExitCode(IntEnum):
    """The exit codes; docs/guide/command-line.md says when to run again."""

    DONE = 0
    FAILED = 1
    WRONG_REQUEST = 2
    NOT_FOUND = 3
    ALREADY_EXISTS = 4
    NOT_AUTHORIZED = 5
    UNAVAILABLE = 6
    CONFLICT = 7
    UNKNOWN = 8
    DAMAGED = 9
    INTERRUPTED = 130


_CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    (NotFoundError, ExitCode.NOT_FOUND),
    (AlreadyExistsError, ExitCode.ALREADY_EXISTS),
    (NotAuthorizedError, ExitCode.NOT_AUTHORIZED),
    (CatalogUnavailableError, ExitCode.UNAVAILABLE),
    (CommitStateUnknownError, ExitCode.UNKNOWN),
    (CommitError, ExitCode.CONFLICT),
    (InvalidRequestError, ExitCode.WRONG_REQUEST),
    (UnsupportedFeatureError, ExitCode.WRONG_REQUEST),
)


def code_of(error: Exception) -> ExitCode:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
