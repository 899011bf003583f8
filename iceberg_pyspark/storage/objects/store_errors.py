"""Converts errors of store libraries to errors with the location and without secrets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from iceberg_pyspark.errors import (
    FileAlreadyExistsError,
    FileNotWrittenError,
    IcebergError,
    StorageError,
)
from iceberg_pyspark.redaction import harmless_cause, secret_values, without_secrets
from iceberg_pyspark.storage.credentials.credential_renewal import expiry_notice

_NO_ADDRESS = "redirect without LOCATION"


class RequestError(Exception):
    """A failure of a request that this package sent; the text contains no secrets.

    `is_known` is True if the request was to create a file and the store certainly did not do so.
    """

    def __init__(self, text: str, *, is_known: bool = False) -> None:
        super().__init__(text)
        self.is_known = is_known


@contextlib.contextmanager
def store_errors(action: str, location: str, properties: Mapping[str, str]) -> Iterator[None]:
    """Raise a `StorageError` for any error that is not an `IcebergError`.

    `action` is a verb: "read", "create".
    """
    try:
        yield
    except IcebergError:
        raise
    except RequestError as e:
        kind = FileNotWrittenError if e.is_known else StorageError
        raise kind(f"cannot {action} {location}: {e}") from None
    except Exception as e:  # noqa: BLE001 - libraries have no class in common, and text to hide
        secrets = secret_values(properties)
        cause = harmless_cause(e, secrets)
        if isinstance(e, FileNotFoundError):
            raise StorageError(f"cannot {action} {location}: no such file") from cause
        if isinstance(e, FileExistsError):
            raise FileAlreadyExistsError(
                f"cannot {action} {location}: it exists already"
            ) from cause
        text = without_secrets(f"{type(e).__name__}: {e}", secrets)
        if _NO_ADDRESS in text:
            text = (
                "the store's server redirects without an address, as Amazon does for a bucket of "
                "another region; set s3.region (or client.region) to the bucket's region"
            )
        notice = expiry_notice(properties)
        raise StorageError(f"cannot {action} {location}: {text}{notice}") from cause
