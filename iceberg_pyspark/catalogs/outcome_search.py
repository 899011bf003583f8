"""Drops and renames that ended in an error: done, refused or unknown, by a look at the catalog.

After a lost answer the request is not repeated: the repeated request could hit a table that another
client has created under the name meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    NotFoundError,
)
from iceberg_pyspark.redaction import get_logger

_log = get_logger(__name__)


def unknown_change(change: str, cause: BaseException) -> CommitStateUnknownError:
    """Return the error for a change that may have happened; `change` names it in messages."""
    error = CommitStateUnknownError(
        f"{change}: {cause}; the change may have been made, or may still be made; look at the "
        "catalog before trying again, and delete no file"
    )
    error.__cause__ = cause
    return error


def look_after_change(change: str, is_made: Callable[[], bool], cause: BaseException) -> None:
    """Return if a change whose answer was lost is made; raise `CommitStateUnknownError` if not."""
    try:
        if is_made():
            _log.info("%s: it was made, although: %s", change, cause)
            return
    except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
        _log.info("could not look after %s: %s", change, e)
    raise unknown_change(change, cause) from cause


@dataclass(frozen=True, slots=True)
class Pointers:
    """The pointers of one catalog to the metadata of its tables, or of its views.

    `kind` is "table" or "view". `location` returns the location of the current metadata file, or
    None if there is no such table; `uuid` reads the UUID in a metadata file.
    """

    kind: str
    location: Callable[[TableIdentifier], str | None]
    uuid: Callable[[str], str | None]

    def before_change(self, identifier: TableIdentifier) -> str | None:
        """Return `location`, or an empty text for a damaged entry, which can still be dropped."""
        try:
            return self.location(identifier)
        except CatalogUnavailableError:
            raise
        except CatalogError as e:
            _log.info("the entry of %s %s is damaged: %s", self.kind, identifier, e)
            return ""

    def drop(
        self, identifier: TableIdentifier, location: str, delete: Callable[[TableIdentifier], bool]
    ) -> bool | None:
        """Delete the pointer, after `before_change`; return what `delete` returns.

        `delete` raises `CatalogUnavailableError` if nothing happened, `CommitStateUnknownError` if
        the answer was lost. Return None if `delete` raised an error and the table that was at
        `location` no longer has the name: it was dropped here, or dropped or renamed by another
        client. Raise `CommitStateUnknownError` if the table may have been dropped or may still be
        dropped.
        """
        try:
            return delete(identifier)
        except CatalogUnavailableError:
            raise
        except (CatalogError, CommitStateUnknownError) as e:
            match self._is_at(identifier, location):
                case False:
                    _log.info("%s %s was dropped, although: %s", self.kind, identifier, e)
                    return None
                case True if isinstance(e, CatalogError):
                    raise
            raise unknown_change(f"drop of {self.kind} {identifier}", e) from e

    def rename(
        self,
        source: TableIdentifier,
        target: TableIdentifier,
        location: str,
        rename: Callable[[TableIdentifier, TableIdentifier], bool],
    ) -> bool:
        """Rename the pointer, after `before_change`; return what `rename` returns.

        `rename` raises errors as `delete` does. Return True also if `rename` raised an error and
        the table that was at `location` has the new name. Raise `CommitStateUnknownError` if the
        table may have been renamed or may still be renamed.
        """
        try:
            return rename(source, target)
        except CatalogUnavailableError:
            raise
        except (CatalogError, CommitStateUnknownError) as e:
            match self._is_at(source, location), self._is_at(target, location):
                case False, True:
                    _log.info("%s %s was renamed, although: %s", self.kind, source, e)
                    return True
                case True, False if isinstance(e, CatalogError):
                    raise
            raise unknown_change(f"rename of {self.kind} {source} to {target}", e) from e

    def _is_at(self, identifier: TableIdentifier, location: str) -> bool | None:
        """Return whether the table that was at `location` has the name; None: that is not known."""
        try:
            now = self.location(identifier)
            if now is None or now == location:
                return now is not None
            uuid_now, uuid = self.uuid(now), self.uuid(location)
        except NotFoundError:
            # the entry is not Iceberg's
            return False
        except Exception as e:  # noqa: BLE001 - whatever keeps us from looking
            _log.info("could not look at %s %s: %s", self.kind, identifier, e)
            return None
        return None if uuid_now is None or uuid is None else uuid_now == uuid
