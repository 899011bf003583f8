"""The outcome of a commit as a value: done, refused or unknown.

Files written for a commit may be removed only with a `Refused` value, which only the code that
swaps the pointer creates. An exception is no proof: after the swap was sent, it may be raised
although the table has changed. Specification, "Optimistic Concurrency"; apache/iceberg calls the
third outcome "commit state unknown".
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from iceberg_pyspark.errors import CommitStateUnknownError, IcebergError

_log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The table has moved; `value` is what the swap left."""

    value: T

    def result(self) -> T:
        """The value."""
        return self.value

    def map(self, function: Callable[[T], U]) -> Done[U]:
        """Done with what the function makes of the value."""
        return Done(function(self.value))


@dataclass(frozen=True, slots=True)
class Refused:
    """The table has not moved because of this swap, and never will; `error` says why."""

    error: IcebergError

    def result(self) -> NoReturn:
        """Raise the error."""
        raise self.error

    def map(self, function: Callable[[Any], object]) -> Refused:
        """Itself: there is no value."""
        return self


@dataclass(frozen=True, slots=True)
class Unknown:
    """The table may have moved, or may yet move: nothing that was written may be removed."""

    error: CommitStateUnknownError

    def result(self) -> NoReturn:
        """Raise the error."""
        raise self.error

    def map(self, function: Callable[[Any], object]) -> Unknown:
        """Itself: there is no value."""
        return self


@dataclass(frozen=True, slots=True)
class NeverSent:
    """No swap was sent at all: what was written for it is in no table."""


Outcome: TypeAlias = Done[T] | Refused | Unknown
"""How one swap ended."""

NotCommitted: TypeAlias = Refused | NeverSent
"""The proof that removing what was written asks for."""


def caused_by(error: IcebergError, cause: BaseException) -> IcebergError:
    """The error with its cause, for one that travels in a value before it is raised."""
    error.__cause__ = cause
    return error


def unknown(what: str, cause: BaseException) -> Unknown:
    """The outcome of a swap that ended in an error which does not say whether it took place.

    `what` names the table.
    """
    text = str(cause) or type(cause).__name__
    error = CommitStateUnknownError(
        f"{what}: {text}; the commit may have succeeded; check the table before trying again, and "
        "delete no file"
    )
    error.__cause__ = cause
    return Unknown(error)


@contextlib.contextmanager
def after_commit(what: str) -> Iterator[None]:
    """Work after a commit that is done: a failure in it is logged and has no other effect."""
    try:
        yield
    except Exception as e:  # noqa: BLE001 - no error can undo the commit
        _log.warning(
            "the commit succeeded, but a later step failed: %s (%s: %s)", what, type(e).__name__, e
        )
