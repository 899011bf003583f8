"""The rules for content entries, which are checked before a root manifest or a leaf is written.

Proposal "Single-file commits". A file that breaks the rules would be read incorrectly or not at
all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.content_entries import (
    LIVE_STATUSES,
    MANIFEST_COUNTS,
    ContentStatus,
    LeafEntry,
    ManifestVectorEntry,
    RootEntry,
)
from iceberg_pyspark.spec.manifests import (
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    inherits_from_leaf,
)
from iceberg_pyspark.spec.types import StructType

Content = Literal["root", "data", "delete"]
"""The kind of a file of content entries: a root manifest, or a leaf of data files or of deletes."""

_OWN_STATUSES = frozenset((ContentStatus.EXISTING, ContentStatus.ADDED, ContentStatus.DELETED))


def check_entries(
    entries: Sequence[RootEntry],
    location: str,
    content: Content,
    partition_types: Mapping[int, StructType],
) -> None:
    """Raise `InvalidRequestError` for the first entry that the file at `location` must not have."""
    for entry in entries:
        match entry:
            case ManifestEntry():
                problems = _of_file(entry, content, partition_types)
            case LeafEntry():
                problems = _of_leaf(entry, content)
            case ManifestVectorEntry():
                problems = _of_vector(entry, content)
        _refuse(location, problems)
    if content == "root":
        _refuse(location, _of_vectors(entries))
    else:
        _refuse(location, _of_specs(entries))


def _refuse(location: str, problems: Iterable[str]) -> None:
    for problem in problems:
        raise InvalidRequestError(f"{location}: {problem}")


def _of_file(
    entry: ManifestEntry, content: Content, partition_types: Mapping[int, StructType]
) -> Iterator[str]:
    file = entry.data_file
    path = file.file_path
    if file.content is FileContent.POSITION_DELETES:
        if not file.is_deletion_vector:
            yield (
                f"{path} is a file of position deletes, which no content entry stands for; it must "
                "stay in the manifest that it is in"
            )
        elif None in (file.referenced_data_file, file.content_offset, file.content_size_in_bytes):
            yield f"the deletion vector in {path} lacks its data file or its place"
    if content != "root" and (file.content is FileContent.DATA) != (content == "data"):
        yield f"{path} does not belong in a leaf of {content}"
    if file.spec_id not in partition_types:
        yield f"{path} is of partition spec {file.spec_id}, whose type is not given"
    elif len(partition_types[file.spec_id].fields) != len(file.partition):
        yield (
            f"{path} has {len(file.partition)} partition values and its spec {file.spec_id} "
            f"{len(partition_types[file.spec_id].fields)}"
        )
    if not inherits_from_leaf(entry.status, in_root=content == "root") and (
        entry.snapshot_id is None
        or not _is_number(entry.sequence_number)
        or not _is_number(entry.file_sequence_number)
    ):
        yield (
            f"{path} is {entry.status.name} in a {_content_name(content)} and must bring its "
            "snapshot id and sequence numbers"
        )


def _of_leaf(entry: LeafEntry, content: Content) -> Iterator[str]:
    manifest = entry.manifest
    path = manifest.manifest_path
    if content != "root":
        yield f"the manifest {path} does not belong in a leaf, only in a root manifest"
    if manifest.is_root:
        yield f"{path} is a root manifest, which cannot be an entry of another"
    yield from _of_status(entry.status, path)
    if manifest.added_snapshot_id is None or not _is_number(manifest.sequence_number):
        yield f"the manifest {path} must bring its snapshot id and sequence number"
    if not _is_number(manifest.min_sequence_number):
        yield f"the manifest {path} must bring its least sequence number"
    for name in MANIFEST_COUNTS:
        if getattr(manifest, name) is None:
            yield f"the manifest {path} must bring its counts and has no {name}"
    if entry.referenced_file is not None and not _has_deletes(manifest):
        yield f"the data manifest {path} cannot have a referenced file"


def _of_vector(entry: ManifestVectorEntry, content: Content) -> Iterator[str]:
    subject = f"the deletion vector of the manifest {entry.leaf}"
    if content != "root":
        yield f"{subject} does not belong in a leaf, only in a root manifest"
    yield from _of_status(entry.status, subject)
    if not _is_number(entry.sequence_number):
        yield f"{subject} must bring its sequence number"
    place = (entry.location, entry.offset, entry.size_in_bytes)
    if entry.inline is None and None in place:
        yield f"{subject} is neither inline nor has it a place in a file"
    if entry.inline is not None and place != (None, None, None):
        yield f"{subject} is inline and has a place in a file"


def _of_vectors(entries: Iterable[RootEntry]) -> Iterator[str]:
    """Yield problems of vectors: a live one needs a live manifest, dead entries need one vector."""
    leaves = dict[str, ManifestFile]()
    vectors = set[str]()
    for entry in entries:
        if isinstance(entry, LeafEntry) and entry.status in LIVE_STATUSES:
            if entry.manifest.manifest_path in leaves:
                yield f"the manifest {entry.manifest.manifest_path} is twice among the live entries"
            leaves[entry.manifest.manifest_path] = entry.manifest
        elif isinstance(entry, ManifestVectorEntry) and entry.status in LIVE_STATUSES:
            if entry.leaf in vectors:
                yield f"the manifest {entry.leaf} has two live deletion vectors"
            vectors.add(entry.leaf)
    for path in vectors - leaves.keys():
        yield f"a live deletion vector is of the manifest {path}, which is not a live entry"
    for path, manifest in leaves.items():
        if manifest.dead_positions is not None and path not in vectors:
            yield f"the manifest {path} has dead entries, and no deletion vector says which"


def _of_specs(entries: Iterable[RootEntry]) -> Iterator[str]:
    specs = {e.data_file.spec_id for e in entries if isinstance(e, ManifestEntry)}
    if len(specs) > 1:
        yield f"a leaf has files of one partition spec, not of {', '.join(map(str, sorted(specs)))}"


def _of_status(status: ContentStatus, subject: str) -> Iterator[str]:
    if status not in _OWN_STATUSES:
        yield f"{subject} is {status.name}, a status that entries of this form do not have"


def _is_number(sequence_number: int | None) -> bool:
    """Return whether a sequence number is assigned; unfinished commits use negative numbers."""
    return sequence_number is not None and sequence_number >= 0


def _has_deletes(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DELETES


def _content_name(content: Content) -> str:
    return "root manifest" if content == "root" else f"leaf of {content}"
