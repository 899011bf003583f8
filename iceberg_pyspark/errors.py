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
    ├─ StorageError                a file that is missing, truncated, damaged or refused
    │  ├─ LocationRefusedError     a table refers to a location that it may not use
    │  ├─ FileAlreadyExistsError   a file to create exists already
    │  └─ FileNotWrittenError      a file was not created, and will not be
    └─ CommitError
       ├─ CommitConflictError      another commit was first: refresh and commit again
       ├─ ConcurrentChangeError    another commit changed what was read: run the operation again
       └─ CommitStateUnknownError  may have succeeded: check, never delete its files

There are two classes only where callers handle the errors differently. Each error takes one
positional argument, its message, so that it can be pickled between Python workers. The message says
what is wrong, where, and what to do. An error does not decide whether written files may be removed:
see `changes/outcomes.py`. No error is a `NotImplementedError`, because Spark ignores that error
while it plans a read.

Messages are redacted (`redaction.py`), so they contain no secrets.
"""

from iceberg_pyspark.redaction import redact_text


class IcebergError(Exception):
    """Base of all errors of this package."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact_text(a) if isinstance(a, str) else a for a in args))


class InvalidMetadataError(IcebergError):
    """Metadata or data violates the specification; the message names the file and the rule."""


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
    """A table, view, namespace, branch or tag of that name already exists."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table of that name already exists."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """A view or table of that name already exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """A namespace of that name already exists."""


class NamespaceNotEmptyError(AlreadyExistsError):
    """The namespace still contains tables, views or namespaces; drop them first."""


class CatalogError(IcebergError):
    """The catalog's server or database returned an error, or its data is damaged."""


class CatalogUnavailableError(CatalogError):
    """The catalog could not be reached, was busy or gave no answer: try again."""


class NotAuthorizedError(CatalogError):
    """The catalog or store refused the credentials, or they do not permit the operation."""


class StorageError(IcebergError):
    """A file is missing, truncated or damaged, or cannot be read or written."""


class LocationRefusedError(StorageError):
    """A table refers to a file outside of the folders or the store that it may use.

    The message names the setting that allows the location; set it only for a table that you trust.
    """


class FileAlreadyExistsError(StorageError):
    """A file cannot be created, because a file of that name exists already."""


class FileNotWrittenError(StorageError):
    """A file was not created, and no request that is still pending will create it."""


class CommitError(IcebergError):
    """A commit did not succeed."""


class CommitConflictError(CommitError):
    """Another commit was first or is in progress, and this commit had no effect.

    The operation is still valid: refresh the table, and commit again.
    """


class ConcurrentChangeError(CommitError):
    """Another commit changed rows or files that this operation has read, so its result is outdated.

    The commit had no effect. Committing again cannot succeed: run the operation again from its
    start.
    """


class CommitStateUnknownError(CommitError):
    """The catalog did not report whether the commit, or a drop or rename, succeeded.

    Look in the table's history for the commit, or in the catalog for the name, before you try
    again, and do not delete the written files.
    """
