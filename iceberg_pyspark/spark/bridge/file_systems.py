"""What the JVM's side says of its file systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JvmFileSystem:
    """The file system that a session of Spark has for a scheme."""

    name: str
    """The name of its Java class."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Hadoop's options without which this session could not open it."""
