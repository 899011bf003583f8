"""The file systems of the JVM: those that it has, and those that this package adds for tasks."""

from __future__ import annotations

from collections.abc import Mapping
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
