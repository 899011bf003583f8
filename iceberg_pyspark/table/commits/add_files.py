"""Adds existing files, which were not written through the table, in their current location.

Rows are not copied: a file only gets an entry in a manifest. A file that does not fit the table is
refused before anything is committed, and no file is ever deleted here. Columns without field ids
are found by name: the table gets the property `schema.name-mapping.default` in the same commit if
it has none (specification, "Column Projection").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from iceberg_pyspark.arrow.write.imported_files import imported_file
from iceberg_pyspark.catalogs.catalog import Catalog, LoadedTable, newest_version
from iceberg_pyspark.changes.property_changes import PropertyChanges
from iceberg_pyspark.changes.snapshot_changes import AppendFiles
from iceberg_pyspark.errors import InvalidRequestError, TableAlreadyExistsError
from iceberg_pyspark.spec.manifests import DataFile, DataFileFormat
from iceberg_pyspark.spec.name_mapping import (
    NameMapping,
    name_mapping_from_text,
    name_mapping_of,
    name_mapping_to_text,
)
from iceberg_pyspark.spec.partitioning import partition_key
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.table_properties import NAME_MAPPING, check_commit_properties
from iceberg_pyspark.storage.files.file_io import FileInfo, FileIO
from iceberg_pyspark.storage.files.local import is_local, plain_location
from iceberg_pyspark.storage.folders import LocalFolders
from iceberg_pyspark.storage.threaded_map import threaded_map
from iceberg_pyspark.table.commits.clock import Clock
from iceberg_pyspark.table.commits.commit import MetadataStep
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.commit_options import CommitOptions
from iceberg_pyspark.table.commits.commit_snapshot import SnapshotStep
from iceberg_pyspark.table.commits.create_table import create_table_with
from iceberg_pyspark.table.commits.partition_folders import (
    is_hidden,
    names_partitions,
    partition_of_texts,
    partition_texts,
    spec_of_folders,
    spelled_as,
)
from iceberg_pyspark.table.progress import Progress, no_progress, with_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFiles:
    """The number of added files, and the number of partitions that the files are in."""

    added_files_count: int
    changed_partition_count: int


@dataclass(frozen=True, kw_only=True)
class FileImport:
    """One import of the files of a folder, or of a single file.

    `partition_filter` selects files by partition values, per column and as the folders spell them.
    `partitions` selects files whose values of all partition columns are in the collection; None
    selects all files. With `may_be_empty`, a source without files is not an error. Without
    `nested_folders`, files in folders that name no partition are skipped, as for Spark's own
    tables.
    """

    catalog: Catalog
    table: LoadedTable
    io: FileIO
    source: str
    file_format: DataFileFormat
    options: CommitOptions
    clock: Clock
    partition_filter: Mapping[str, str]
    partitions: Collection[Mapping[str, str | None]] | None = None
    may_be_empty: bool = False
    nested_folders: bool = True
    progress: Progress = no_progress

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", plain_location(self.source))

    def plan(self) -> AddedFiles:
        """Examine and count the files, and write nothing; raise the errors of `run`."""
        files = self._data_files
        if files:
            newest = newest_version(self.catalog, self.table)
            step = self._step(newest.metadata.table_uuid, schema=self.table.metadata.current_schema)
            step.check(newest.metadata)
        return _result_of(files)

    def run(self) -> tuple[LoadedTable, AddedFiles]:
        """Add the files to the table; raise `InvalidRequestError` if a file does not fit."""
        files = self._data_files
        if not files:
            return self.table, AddedFiles(added_files_count=0, changed_partition_count=0)
        loaded_table = commit_action(
            self.catalog,
            self.table,
            self.io,
            self._action,
            self.options,
            before=[MetadataStep(self._name_mapping_changes().changes)],
            clock=self.clock,
        )
        return loaded_table, _result_of(files)

    def plan_creation(self) -> AddedFiles:
        """Examine and count the files of `create`, and write nothing; raise the errors of `create`.

        Another client may still create the table in the meantime.
        """
        files = self._data_files
        if self.catalog.table_exists(self.table.identifier):
            raise TableAlreadyExistsError(
                f"table {self.table.identifier} already exists in catalog '{self.catalog.name}'; "
                "choose another name"
            )
        check_commit_properties(self.table.metadata.properties)
        if files:
            self._step(self.table.metadata.table_uuid).check(self.table.metadata)
        return _result_of(files)

    def create(self) -> tuple[LoadedTable, AddedFiles]:
        """Create the planned table, which does not exist yet, with the files in one commit."""
        files = self._data_files
        metadata = replace(
            self.table.metadata,
            properties={
                NAME_MAPPING: name_mapping_to_text(self._default_mapping),
                **self.table.metadata.properties,
            },
        )
        steps = [self._step(metadata.table_uuid)]
        new_table = create_table_with(
            self.catalog,
            self.table.identifier,
            metadata,
            steps if files else [],
            clock=self.clock,
        )
        return new_table, _result_of(files)

    @property
    def partitions_without_files(self) -> list[Mapping[str, str | None]]:
        """The partitions of `partitions` in which no file is."""
        filled_partitions = {frozenset(texts.items()) for _, texts in self._listing}
        return [p for p in self.partitions or () if frozenset(p.items()) not in filled_partitions]

    @property
    def _action(self) -> AppendFiles:
        return AppendFiles(data_files=tuple(self._data_files))

    def _step(self, table_uuid: str | None, schema: Schema | None = None) -> SnapshotStep:
        return SnapshotStep(
            self._action,
            self.io,
            self.options,
            table_uuid=table_uuid,
            clock=self.clock,
            schema=schema,
        )

    def _name_mapping_changes(self) -> PropertyChanges:
        changes = PropertyChanges()
        if NAME_MAPPING not in self.table.metadata.properties:
            changes.set({NAME_MAPPING: name_mapping_to_text(self._default_mapping)})
        return changes

    @cached_property
    def _listing(self) -> list[tuple[FileInfo, dict[str, str | None]]]:
        """The files, each with the partition values that its folders spell."""
        columns = [f.name for f in self.table.metadata.current_schema.fields]
        return [
            (file, spelled_as(partition_texts(file.location, self.source), columns))
            for file in self._files()
        ]

    @cached_property
    def _data_files(self) -> list[DataFile]:
        metadata = self.table.metadata
        schema = metadata.current_schema
        text = metadata.properties.get(NAME_MAPPING)
        mapping = self._default_mapping if text is None else name_mapping_from_text(text)
        listed_file = self._listing
        if not listed_file:
            if self.may_be_empty or self._is_folder():
                return []
            raise InvalidRequestError(
                f"{self.source}: there is no such folder or file; name a folder, or one file"
            )
        names = set(listed_file[0][1])
        for file, texts in listed_file:
            if set(texts) != names:
                raise InvalidRequestError(
                    f"{self.source}: not all files are in folders of the same partition columns: "
                    f"{listed_file[0][0].location} and {file.location}; add the folders one by one"
                )
        if unknown := set(self.partition_filter) - names:
            raise InvalidRequestError(
                f"{self.source} has no folders of partition column {', '.join(sorted(unknown))}, "
                "which partition_filter names; the partition columns are "
                f"{', '.join(sorted(names)) or 'none'}"
            )
        specs = [metadata.default_spec, *metadata.partition_specs]
        spec = spec_of_folders(names, specs, schema, self.source)

        def entry(listed_file: tuple[FileInfo, dict[str, str | None]]) -> DataFile:
            file, texts = listed_file
            partition = partition_of_texts(texts, spec, schema, file.location)
            return imported_file(
                self.io, file, self.file_format, metadata, mapping, spec, partition
            )

        selection = [
            (file, texts)
            for file, texts in listed_file
            if all(texts[name] == value for name, value in self.partition_filter.items())
        ]
        if self.partitions is not None:
            partition_values = {frozenset(values.items()) for values in self.partitions}
            selection = [
                (file, texts)
                for file, texts in selection
                if frozenset(texts.items()) in partition_values
            ]
        entries = threaded_map(entry, selection, lambda listed: listed[0].location)
        return list(with_progress(self.progress, "files examined", entries, len(selection)))

    @property
    def _default_mapping(self) -> NameMapping:
        return name_mapping_of(self.table.metadata.current_schema)

    def _is_folder(self) -> bool:
        """Return whether the source is a folder, if without files to add."""
        if any(True for _ in self.io.list_files(self.source)):
            return True
        # object stores have no empty folders
        return is_local(self.source) and LocalFolders().exists(self.source)

    def _files(self) -> Iterator[FileInfo]:
        """Yield the files of the source that are not hidden."""
        is_empty = True
        for file in self.io.list_files(self.source):
            is_empty = False
            if is_hidden(file.location, self.source):
                continue
            if self.nested_folders or names_partitions(file.location, self.source):
                yield file
        if is_empty and self.io.exists(self.source):
            size = self.io.size(self.source)
            yield FileInfo(location=self.source, size=size, modified_ms=None)


def _result_of(files: Sequence[DataFile]) -> AddedFiles:
    partitions = {partition_key(f.partition) for f in files}
    return AddedFiles(added_files_count=len(files), changed_partition_count=len(partitions))
