"""Every error this package raises, as one tree.

    IcebergError
    ├─ InvalidMetadataError        what we read breaks the specification
    ├─ UnsupportedFeatureError     valid Iceberg that is not done here yet
    ├─ InvalidRequestError         a schema, filter, option or change that cannot be carried out
    ├─ NotFoundError
    │  ├─ NoSuchTableError
    │  │  └─ TableRecreatedError   another table has the name now: load that one, or stop
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
    │  ├─ FileAlreadyExistsError   an exclusive create found the name taken
    │  └─ FileNotWrittenError      a create that took no effect and never will
    └─ CommitError
       ├─ CommitConflictError      the metadata moved: refresh and retry
       ├─ ConcurrentChangeError    a retry cannot help: the other commit touches what we read
       └─ CommitStateUnknownError  may have succeeded: look, never retry blindly, never delete

Leaves differ only where the caller acts differently. Each takes one positional message, so that it
survives pickling between Python workers; the message says what, where and what to do. No error says
whether written files may be removed: that takes a value, see `commits/outcomes.py`. None of them is
a `NotImplementedError`: Spark swallows that one while planning a read.

No message has a secret in it (`redaction.py`), wherever its text came from.
"""

from iceberg_pyspark.redaction import redact_text


class IcebergError(Exception):
    """Base of all errors of this package."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redact_text(a) if isinstance(a, str) else a for a in args))


class InvalidMetadataError(IcebergError):
    """What was read breaks the specification; names the file, the place in it and the rule."""


class UnsupportedFeatureError(IcebergError):
    """Valid Iceberg that this version does not implement; refused rather than read wrongly."""


class InvalidRequestError(IcebergError):
    """The caller asked for something that cannot be done: schema, filter, option, evolution."""


class NotFoundError(IcebergError):
    """A named thing does not exist."""


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
    """A thing of that name is already there."""


class TableAlreadyExistsError(AlreadyExistsError):
    """The table is already there."""


class ViewAlreadyExistsError(AlreadyExistsError):
    """A view, or a table, of that name is already there."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace is already there."""


class NamespaceNotEmptyError(AlreadyExistsError):
    """The namespace still holds tables or namespaces."""


class CatalogError(IcebergError):
    """The catalog answered with an error."""


class CatalogUnavailableError(CatalogError):
    """The catalog could not be reached or was busy; trying again may help."""


class NotAuthorizedError(CatalogError):
    """The catalog or store refused the credentials."""


class StorageError(IcebergError):
    """A file is missing, short, damaged, or its location is refused."""


class LocationRefusedError(StorageError):
    """A table names a location that it may not use; who trusts the table can allow it."""


class FileAlreadyExistsError(StorageError):
    """An exclusive create found a file of that name."""


class FileNotWrittenError(StorageError):
    """A file was not created, and no request that could still create it is under way."""


class CommitError(IcebergError):
    """A commit did not succeed."""


class CommitConflictError(CommitError):
    """The table's metadata moved; refresh and try again. Nothing was changed."""


class ConcurrentChangeError(CommitError):
    """Another commit touched what this operation read; run the operation again from the start."""


class CommitStateUnknownError(CommitError):
    """The commit may have succeeded. Never retry blindly and never delete its files."""
