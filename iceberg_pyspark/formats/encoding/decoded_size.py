"""Limits the memory that one metadata file may take after decoding.

A compressed file, a wrong length or a schema with wide nulls can expand a few bytes to gigabytes.
The limit grows with the size of the file: tables of realistic size can be read, and a file of one
mebibyte never takes more than one gibibyte. Costs are upper bounds, computed before memory is
allocated.
"""

from __future__ import annotations

import re

from iceberg_pyspark.errors import InvalidMetadataError

MEMORY_FLOOR = 512 << 20
"""The memory that any file may take, however small it is."""
MEMORY_PER_BYTE = 128
"""The additional memory for each byte of the stored file."""
COLUMN_BYTES = 1 << 10
"""The memory of a column of a batch in addition to its values."""

_FOUR_BYTE_CHARACTERS = re.compile(rb"[\xf0-\xff]")
_OBJECT_BYTES = 240
_ARRAY_BYTES = 176
_KEY_BYTES = 208
_VALUE_BYTES = 72
_ESCAPE_BYTES = 90


def memory_limit(file_size: int) -> int:
    """Return the bytes of memory that the content of a file of `file_size` bytes may take."""
    return MEMORY_FLOOR + MEMORY_PER_BYTE * file_size


def too_large(where: str, file_size: int) -> InvalidMetadataError:
    """Return the error for a file that exceeds its limit; `where` begins with its location."""
    return InvalidMetadataError(
        f"{where}: decoding it would take more than {memory_limit(file_size):,} bytes of memory, "
        f"the limit for a file of {file_size:,} bytes; it is damaged or malicious"
    )


def check_json_memory(data: bytes, where: str, file_size: int) -> None:
    """Raise `InvalidMetadataError` if parsed JSON might take more memory than its file may."""
    if json_memory(data) > memory_limit(file_size):
        raise too_large(where, file_size)


def json_memory(data: bytes) -> int:
    """Return an upper bound of the bytes that a JSON text and its Python objects take."""
    copies = 3  # the bytes, the text, and the strings in the text
    if not data.isascii():
        # Python stores every character of a text in as many bytes as the widest character needs
        copies = 9 if _FOUR_BYTE_CHARACTERS.search(data) else 5
    return (
        copies * len(data)
        + _OBJECT_BYTES * data.count(b"{")
        + _ARRAY_BYTES * data.count(b"[")
        + _KEY_BYTES * data.count(b":")
        + _VALUE_BYTES * data.count(b",")
        + _ESCAPE_BYTES * data.count(b"\\")
    )
