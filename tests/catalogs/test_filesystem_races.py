"""Commits of the filesystem catalog that race, fail or come late."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.changes.changes import (
    AddSnapshot,
    SetSnapshotRef,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FileAlreadyExistsError,
    FileNotWrittenError,
    StorageError,
    TableAlreadyExistsError,
)
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.storage.files.local import LocalFileIO
from tests.support.catalog_contract import create, set_property
from tests.support.filesystem_catalogs import EVENTS, current_n, names, open_catalog, table_of
from tests.support.hooked_storage import Hook, HookedFileIO, Moment, once


@pytest.fixture
def catalog(tmp_path: Path) -> FilesystemCatalog:
    return open_catalog(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "db" / "events" / "metadata"


CODEC = "write.metadata.compression-codec"


def hooked(hook: Hook) -> HookedFileIO:
    return HookedFileIO(LocalFileIO(), hook)


def racing(moment: Moment, action: Callable[[], object]) -> HookedFileIO:
    """Return a store on which another writer acts just before or after a version is published."""
    return hooked(once("create_exclusive", moment, action))


def test_a_version_published_under_another_codec_wins(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    other = folder / "v3.gz.metadata.json"

    def publish() -> None:
        other.write_bytes(gzip.compress((folder / "v2.metadata.json").read_bytes()))

    for io in (racing("before", publish), racing("after", publish)):
        with pytest.raises(CommitConflictError):
            set_property(open_catalog(tmp_path, io), EVENTS, "a", "1")
        assert not (folder / "v3.metadata.json").exists()
        other.unlink()


def test_a_lost_race_is_refused_and_leaves_nothing(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    late = open_catalog(tmp_path, racing("before", lambda: set_property(catalog, EVENTS, "n", "3")))
    with pytest.raises(CommitConflictError, match="version 3"):
        set_property(late, EVENTS, "loser", "1")
    assert names(folder) == [*(f"v{n}.metadata.json" for n in (1, 2, 3)), "version-hint.text"]
    assert "loser" not in catalog.load_table(EVENTS).metadata.properties


TRIMMING = {
    "write.metadata.previous-versions-max": "1",
    "write.metadata.delete-after-commit.enabled": "true",
}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_writer_so_late_that_its_version_was_trimmed(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path, moment: Moment
) -> None:
    # Before: the file name was free again. After: the version was committed, and others followed.
    create(catalog, EVENTS, TRIMMING)

    def many_commits() -> None:
        for n in range(6):
            add_snapshot(catalog, 10 + n)

    late = open_catalog(tmp_path, racing(moment, many_commits))
    if moment == "before":
        with pytest.raises(CommitConflictError, match="moved on"):
            add_snapshot(late, 1)
        assert not (folder / "v2.metadata.json").exists()
    else:
        add_snapshot(late, 1)
    metadata = catalog.load_table(EVENTS).metadata
    expected = [*range(10, 16)] if moment == "before" else [1, *range(10, 16)]
    assert [s.snapshot_id for s in metadata.snapshots] == expected


@pytest.mark.parametrize("moment", ["before", "after"])
def test_metadata_commit_overtaken_by_trimming_is_unknown(
    catalog: FilesystemCatalog, tmp_path: Path, moment: Moment
) -> None:
    create(catalog, EVENTS, TRIMMING)

    def many_commits() -> None:
        for n in range(6):
            set_property(catalog, EVENTS, "n", str(n))

    late = open_catalog(tmp_path, racing(moment, many_commits))
    with pytest.raises(CommitStateUnknownError, match="do not tell"):
        set_property(late, EVENTS, "late", "1")
    assert current_n(catalog) == "5"
    assert ("late" in catalog.load_table(EVENTS).metadata.properties) == (moment == "after")


def test_the_base_may_be_trimmed_between_the_look_and_the_read(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    following = f"{folder}/v3.metadata.json"
    published = is_trimmed = False

    def hook(operation: str, location: str, moment: Moment) -> None:
        nonlocal published, is_trimmed
        published = published or (operation, location) == ("create_exclusive", following)
        if published and operation == "read_bytes" and location.endswith("v2.metadata.json"):
            # A later commit does this in a table that keeps no older versions.
            Path(location).unlink(missing_ok=True)
            is_trimmed = True
            set_property(catalog, EVENTS, "n", "4")

    set_property(open_catalog(tmp_path, hooked(hook)), EVENTS, "n", "3")
    assert is_trimmed
    assert current_n(catalog) == "4"


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO, errno.EMFILE])
@pytest.mark.parametrize("operation", ["exists", "read_bytes", "list_files", "write_bytes"])
def test_error_after_publishing_keeps_the_version(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path, operation: str, code: int
) -> None:
    table_of(catalog, 2)
    published = False

    def hook(name: str, location: str, moment: Moment) -> None:
        nonlocal published
        if published and name == operation:
            raise StorageError(os.strerror(code))
        published = published or (name, moment) == ("create_exclusive", "after")

    # The outcome is success or unknown, depending on the check.
    with contextlib.suppress(CommitStateUnknownError):
        set_property(open_catalog(tmp_path, hooked(hook)), EVENTS, "n", "3")
    assert published
    assert current_n(catalog) == "3"


def add_snapshot(catalog: FilesystemCatalog, snapshot_id: int) -> None:
    base = catalog.load_table(EVENTS).metadata
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=base.current_snapshot_id,
        sequence_number=base.last_sequence_number + 1,
        timestamp_ms=base.last_updated_ms,
        manifest_list="/nowhere",
        summary={"operation": "append"},
        schema_id=0,
    )
    updates = (AddSnapshot(snapshot), SetSnapshotRef("main", SnapshotRef(snapshot_id=snapshot_id)))
    catalog.commit_table(EVENTS, (), updates).result()


def test_a_creator_so_late_that_the_first_version_was_trimmed_is_refused(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    trimming = {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }

    def create_and_commit() -> None:
        create(catalog, EVENTS, trimming)
        for n in range(3):
            set_property(catalog, EVENTS, "n", str(n))

    late = open_catalog(tmp_path, racing("before", create_and_commit))
    with pytest.raises(TableAlreadyExistsError):
        create(late, EVENTS)
    assert not (folder / "v1.metadata.json").exists()
    assert current_n(catalog) == "2"


def test_a_commit_into_a_table_dropped_or_recreated_meanwhile_is_refused(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    # The table of that name has other commits now, and the late one must not add to them.
    table_of(catalog, 2)

    def recreate() -> None:
        catalog.drop_table(EVENTS)
        table_of(catalog, 2)

    late = open_catalog(tmp_path, racing("before", recreate))
    with pytest.raises(CommitConflictError):
        set_property(late, EVENTS, "a", "1")
    assert "v3.metadata.json" not in names(folder)
    late = open_catalog(tmp_path, racing("before", lambda: catalog.drop_table(EVENTS)))
    with pytest.raises(CommitConflictError):
        set_property(late, EVENTS, "a", "1")
    assert not catalog.table_exists(EVENTS)


def test_a_drop_takes_a_commit_that_raced_with_it(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    io = racing("after", lambda: set_property(catalog, EVENTS, "n", "3"))
    open_catalog(tmp_path, io).drop_table(EVENTS)
    assert not catalog.table_exists(EVENTS)


def test_a_publish_that_failed_after_it_worked_is_a_success(
    catalog: FilesystemCatalog, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    for n, error in ((3, StorageError("EIO")), (4, FileAlreadyExistsError("taken, by us"))):
        io = racing("after", partial(fail, error))
        set_property(open_catalog(tmp_path, io), EVENTS, "n", str(n))
        assert current_n(catalog) == str(n)


def test_a_publish_that_failed_changes_nothing(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    before = names(folder)
    io = racing("before", lambda: fail(FileNotWrittenError("no space left")))
    with pytest.raises(StorageError, match="no space left"):
        set_property(open_catalog(tmp_path, io), EVENTS, "n", "3")
    assert names(folder) == before
    assert current_n(catalog) == "2"


def test_a_publish_that_timed_out_may_come_late_and_is_unknown(
    catalog: FilesystemCatalog, folder: Path, tmp_path: Path
) -> None:
    table_of(catalog, 2)
    late: list[tuple[str, bytes]] = []

    class TimesOut(LocalFileIO):
        def create_exclusive(self, location: str, data: bytes) -> None:
            late.append((location, data))
            raise StorageError("timed out")

    with pytest.raises(CommitStateUnknownError, match="may yet be published: timed out"):
        set_property(open_catalog(tmp_path, TimesOut()), EVENTS, "n", "3")
    assert current_n(catalog) == "2"
    LocalFileIO().create_exclusive(*late[0])
    assert current_n(catalog) == "3"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_publish_whose_outcome_cannot_be_seen_is_unknown(
    catalog: FilesystemCatalog, tmp_path: Path, moment: Moment
) -> None:
    table_of(catalog, 2)
    fails = False

    def hook(operation: str, _location: str, when: Moment) -> None:
        nonlocal fails
        fails = fails or (operation, when) == ("create_exclusive", moment)
        if fails:
            raise StorageError("EIO")

    with pytest.raises(CommitStateUnknownError, match="delete no file"):
        set_property(open_catalog(tmp_path, hooked(hook)), EVENTS, "n", "3")
    assert current_n(catalog) == ("2" if moment == "before" else "3")


def fail(error: Exception) -> None:
    raise error
