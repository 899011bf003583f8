"""Defines every error that this package raises, as one tree.

    IcebergError
    ├─ InvalidMetadataError        metadata or data that violates the specification
    ├─ UnsupportedFeatureError     valid Iceberg that is not implemented yet
    ├─ InvalidRequestError         a schema, filter, option or change that cannot be carried out
    ├─ NotFoundError
    │  ├─ NoSuchTableError
    │  │  └─ TableRecreatedError   another table has the name now: load it again
    │  ├─ NoSuchViewError
    │  ├─ NoSuchNamespaceError
    │  └─ NoSuchSnapshotError
    ├─ AlreadyExistsError
    │  ├─ TableAlreadyExistsError
    │  ├─ ViewAlreadyExistsError
    │  ├─ NamespaceAlreadyExistsError
    │  └─ NamespaceNotEmptyError
    ├─ CatalogError
    │  ├─ CatalogUnavailableError  try again
    │  └─ NotAuthorizedError
    ├─ StorageError                a file that is missing, short, damaged or refused
    │  ├─ LocationRefusedError     a table names a location that it may not use
    │  ├─ FileAlreadyExistsError   an exclusive create of an existing file
    │  └─ FileNotWrittenError      a create that had no effect and never will
    └─ CommitError
       ├─ CommitConflictError      the table's metadata has changed: refresh and retry
       ├─ ConcurrentChangeError    another commit changed what was read: do not retry
       └─ CommitStateUnknownError  may have succeeded: check, never delete its files

Two classes differ only if callers handle them differently. Each error takes one positional message,
so it can be pickled between Python workers; the message says what is wrong, where, and what to do.
An error does not decide whether written files may be removed: see `commits/outcomes.py`. No error
is a `NotImplementedError`, because Spark ignores that error while it plans a read.

Messages are redacted (`redaction.py`), so they contain no secrets.
"""

from iceberg_pyspark.redaction import redact_text


class IcebergError(Exception):
    """Base of all errors of this package."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact_text(a) if isinstance(a, str) else a for a in args))


class InvalidMetadataError(IcebergError):
    """Metadata or data violates the specification; the message names file, place and rule."""


class UnsupportedFeatureError(IcebergError):
    """A valid feature of Iceberg that this version does not implement."""


class InvalidRequestError(IcebergError):
    """An invalid schema, filter, option or change of a table."""


class NotFoundError(IcebergError):
    """A table, view, namespace or snapshot does not exist."""


class NoSuchTableError(NotFoundError):
    """The table does not exist."""


class TableRecreatedError(NoSuchTableError):
    """The loaded table was dropped or renamed, and another one has its name; load it again."""


class NoSuchViewError(NotFoundError):
    """The view does not exist."""


class NoSuchNamespaceError(NotFoundError):
    """The namespace does not exist."""


class NoSuchSnapshotError(NotFoundError):
    """The snapshot, branch, tag or point in time is not in the table's metadata."""


class AlreadyExistsError(IcebergError):
    """The name is already in use."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table of that name already exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """A view or table of that name already exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """A namespace of that name already exists."""


class NamespaceNotEmptyError(AlreadyExistsError):
    """The namespace still holds tables or namespaces."""


class CatalogError(IcebergError):
    """The catalog answered with an error."""


class CatalogUnavailableError(CatalogError):
    """The catalog could not be reached or was busy: try again."""


class NotAuthorizedError(CatalogError):
    """The catalog or store refused the credentials."""


class StorageError(IcebergError):
    """A file is missing, short, damaged, or its location is refused."""


class LocationRefusedError(StorageError):
    """A table refers to a location outside of those it may use; a setting can allow it."""


class FileAlreadyExistsError(StorageError):
    """A file of that name exists, so it cannot be created exclusively."""


class FileNotWrittenError(StorageError):
    """A file was not created, and no pending request can still create it."""


class CommitError(IcebergError):
    """A commit did not succeed."""


class CommitConflictError(CommitError):
    """The table has changed since it was read; nothing was committed. Refresh and try again."""


class ConcurrentChangeError(CommitError):
    """Another commit changed what this operation read; run the whole operation again."""


class CommitStateUnknownError(CommitError):
    """The commit may have succeeded. Check the table; do not delete the written files."""
