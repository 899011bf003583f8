"""Represents the outcome of a commit as a value: done, refused or unknown.

Files written for a commit may be removed only with a `Refused` value, which only the code that
swaps the pointer creates. An exception proves nothing: it may be raised after the swap was sent,
although the table has changed. Specification, "Optimistic Concurrency"; apache/iceberg calls the
third outcome "commit state unknown".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from iceberg_pyspark.errors import CommitStateUnknownError, IcebergError
from iceberg_pyspark.redaction import get_logger

_log = get_logger(__name__)

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """A successful commit: the table has changed, and `value` is the result of the swap."""

    value: T

    def result(self) -> T:
        """Return the value."""
        return self.value

    def map(self, function: Callable[[T], U]) -> Done[U]:
        """Return a `Done` with the function's result for the value."""
        return Done(function(self.value))


@dataclass(frozen=True, slots=True)
class Refused:
    """A failed swap that has not changed the table and never will; `error` is the reason."""

    error: IcebergError

    def result(self) -> NoReturn:
        """Raise the error."""
        raise self.error

    def map(self, function: Callable[[Any], object]) -> Refused:
        """Return this outcome, which has no value to map."""
        return self


@dataclass(frozen=True, slots=True)
class Unknown:
    """An unknown outcome: the table may have changed or may still change; remove no files."""

    error: CommitStateUnknownError

    def result(self) -> NoReturn:
        """Raise the error."""
        raise self.error

    def map(self, function: Callable[[Any], object]) -> Unknown:
        """Return this outcome, which has no value to map."""
        return self


@dataclass(frozen=True, slots=True)
class NeverSent:
    """The case that no swap was sent: no table refers to the files written for it."""


Outcome: TypeAlias = Done[T] | Refused | Unknown
"""The outcome of one swap."""

NotCommitted: TypeAlias = Refused | NeverSent
"""The proof that a caller needs to remove the files written for a commit."""


def caused_by(error: IcebergError, cause: BaseException) -> IcebergError:
    """Set the cause of an error that is kept in a value before it is raised; return the error."""
    error.__cause__ = cause
    return error


def unknown(table: str, cause: BaseException) -> Unknown:
    """Return the outcome of a swap that ended in an error of unclear effect.

    `table` is how messages name the table.
    """
    text = str(cause) or type(cause).__name__
    error = CommitStateUnknownError(
        f"{table}: {text}; the commit may have succeeded; check the table before trying again, and "
        "delete no file"
    )
    error.__cause__ = cause
    return Unknown(error)


@contextlib.contextmanager
def after_commit(step: str) -> Iterator[None]:
    """Log an exception of the block and continue: the commit is already done."""
    try:
        yield
    except Exception as e:  # noqa: BLE001 - no error can undo the commit
        _log.warning(
            "the commit succeeded, but a later step failed: %s (%s: %s)", step, type(e).__name__, e
        )
