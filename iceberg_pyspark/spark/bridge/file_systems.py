"""The file systems of the JVM: those that it has, and those that this package adds for tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

S3A_IN_TASKS = "IcebergPyRenewedS3A"
"""S3A, which renews credentials."""

GOOGLE_IN_TASKS = "IcebergPyGoogleFiles"
"""Google's connector by another scheme."""

AZURE_IN_TASKS = "IcebergPyAzureFiles"
"""Hadoop's file system for Azure by another scheme."""


@dataclass(frozen=True, slots=True)
class JvmFileSystem:
    """The file system that a session of Spark has for a scheme."""

    name: str
    """The name of its Java class."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Hadoop options that this session needs to open the file system."""

    has_blob_interface: bool = False
    """Whether the file system can use Azure's Blob interface, the only one that emulators have."""

    bucket_options: Sequence[str] = ()
    """The names, after `fs.s3a.bucket.`, of the session's options for single buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JvmLocalFiles:
    """How the JVM names files of the local file system."""

    encoding: str = "utf-8"
    """The encoding of file names in the JVM's locale."""

    default_file_system: str = "file:///"
    """The URI of the file system that the JVM takes for a location without a scheme."""

    def location(self, location: str) -> str | None:
        """Return the location by which the JVM opens a local file; None if it cannot name the
        file.
        """
        if not location.isascii():
            try:
                location.encode(self.encoding)
            except (LookupError, UnicodeEncodeError):
                return None
        if location.startswith("/") and not self.default_file_system.startswith("file:"):
            return f"file://{location}"
        return location
