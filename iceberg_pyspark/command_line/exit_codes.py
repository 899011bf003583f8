"""Defines the exit codes of the command."""

from __future__ import annotations

from enum import IntEnum

from iceberg_pyspark.errors import (
    AlreadyExistsError,
    CatalogUnavailableError,
    CommitError,
    CommitStateUnknownError,
    NotAuthorizedError,
    NotFoundError,
)


class ExitCode(IntEnum):
    """The exit codes of the command; the shell uses further codes, such as 130 after Ctrl-C."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
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
)


def code_of(error: Exception) -> ExitCode:
    """Return the exit code of the command for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)
