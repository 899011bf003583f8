"""Behaviour specific to path tables: versions, the version hint, exclusive names, drops."""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.catalogs.catalog import TableIdentifier
from iceberg_pyspark.catalogs.hadoop.catalog import FilesystemCatalog
from iceberg_pyspark.commits.updates import (
    AddSnapshot,
    RemoveProperties,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
)
from iceberg_pyspark.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FileAlreadyExistsError,
    FileNotWrittenError,
    InvalidMetadataError,
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec.snapshots import Snapshot, SnapshotRef
from iceberg_pyspark.storage.file_io import FileIO
from iceberg_pyspark.storage.local import LocalFileIO
from tests.support.catalog_contract import create, first_metadata, set_property
from tests.support.hooked_storage import Hook, HookedFileIO, Moment, once

EVENTS = TableIdentifier(namespace=("db",), name="events")


@pytest.fixture
def catalog(tmp_path: Path) -> FilesystemCatalog:
    return open_catalog(tmp_path)


def open_catalog(warehouse: Path, io: FileIO | None = None) -> FilesystemCatalog:
    catalog = FilesystemCatalog("lake", {"warehouse": str(warehouse)}, io=io)
    if not catalog.namespace_exists(("db",)):
        catalog.create_namespace(("db",))
    return catalog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "db" / "events" / "metadata"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def table_of(catalog: FilesystemCatalog, versions: int) -> None:
    create(catalog, EVENTS)
    for n in range(2, versions + 1):
        set_property(catalog, EVENTS, "n", str(n))


def current_n(catalog: FilesystemCatalog) -> str:
    return catalog.load_table(EVENTS).metadata.properties["n"]


def test_files_of_a_table(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 2)
    assert names(folder) == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    assert (folder / "version-hint.text").read_text() == "2"
    assert json.loads((folder / "v2.metadata.json").read_text())["location"] == str(folder.parent)


# The version hint.


@pytest.mark.parametrize(
    "hint",
    [
        "1",
        "2",
        "3",
        "99",
        "0",
        "-1",
        "",
        "x",
        "3\n",
        " 3 ",
        "3.0",
        "\N{ARABIC-INDIC DIGIT TWO}",
        "9" * 40,
    ],
)
def test_any_hint_leads_to_the_last_version(
    catalog: FilesystemCatalog, folder: Path, hint: str
) -> None:
    table_of(catalog, 3)
    (folder / "version-hint.text").write_text(hint)
    assert current_n(catalog) == "3"
    set_property(catalog, EVENTS, "n", "4")
    assert current_n(catalog) == "4"


def test_no_hint_and_a_hint_of_bytes(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 12)
    (folder / "version-hint.text").write_bytes(b"\xff\xfe")
    assert current_n(catalog) == "12"
    (folder / "version-hint.text").unlink()
    assert current_n(catalog) == "12"
    (folder / "version-hint.text").mkdir()
    assert current_n(catalog) == "12"
    # If the hint cannot be written, the commit succeeds anyway.
    set_property(catalog, EVENTS, "n", "13")
    assert current_n(catalog) == "13"


def test_a_hint_at_a_trimmed_version(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 5)
    for n in (1, 2, 3):
        (folder / f"v{n}.metadata.json").unlink()
    (folder / "version-hint.text").write_text("2")
    assert current_n(catalog) == "5"


def test_only_names_of_versions_count(catalog: FilesystemCatalog, folder: Path) -> None:
    table_of(catalog, 2)
    (folder / "version-hint.text").unlink()
    for name in ("v9.metadata.json.tmp", "v.metadata.json", "vx.metadata.json", "v8.json"):
        (folder / name).write_text("{}")
    assert current_n(catalog) == "2"


def test_a_damaged_version_is_an_error_and_not_the_one_before(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    table_of(catalog, 2)
    (folder / "v2.metadata.json").write_text("{")
    with pytest.raises(InvalidMetadataError, match=r"v2\.metadata\.json"):
        catalog.load_table(EVENTS)
    with pytest.raises(InvalidMetadataError):
        set_property(catalog, EVENTS, "a", "1")


# Gzipped metadata.


@pytest.mark.parametrize("name", ["v3.gz.metadata.json", "v3.metadata.json.gz"])
def test_gzipped_versions_of_both_names_are_found(
    catalog: FilesystemCatalog, folder: Path, name: str
) -> None:
    table_of(catalog, 3)
    plain = folder / "v3.metadata.json"
    (folder / name).write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert current_n(catalog) == "3"
    set_property(catalog, EVENTS, "n", "4")
    assert names(folder)[-2] == "v4.metadata.json"


def test_a_change_of_codec_takes_effect_one_commit_later(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    # All writers on one base version must race for one file name, whatever codec they set.
    create(catalog, EVENTS)
    set_property(catalog, EVENTS, "write.metadata.compression-codec", "gzip")
    set_property(catalog, EVENTS, "write.metadata.compression-codec", "none")
    set_property(catalog, EVENTS, "a", "1")
    assert names(folder) == [
        *("v1.metadata.json", "v2.metadata.json", "v3.gz.metadata.json", "v4.metadata.json"),
        "version-hint.text",
    ]


CODEC = "write.metadata.compression-codec"


def test_a_codec_that_is_none_is_refused_when_it_is_set(catalog: FilesystemCatalog) -> None:
    refused = f"{CODEC}.*zstd.*none (n)?or gzip"
    with pytest.raises(InvalidRequestError, match=refused):
        create(catalog, EVENTS, properties={CODEC: "zstd"})
    create(catalog, EVENTS)
    with pytest.raises(InvalidRequestError, match=refused):
        set_property(catalog, EVENTS, CODEC, "zstd")
    set_property(catalog, EVENTS, "n", "1")


@pytest.mark.parametrize(
    "mending", [RemoveProperties((CODEC,)), SetProperties({CODEC: "gzip"})], ids=["unset", "set"]
)
def test_a_codec_that_is_none_does_not_lock_a_table_of_another_writer(
    catalog: FilesystemCatalog, folder: Path, mending: TableUpdate
) -> None:
    create(catalog, EVENTS)
    first = folder / "v1.metadata.json"
    text = json.loads(first.read_text())
    first.write_text(json.dumps({**text, "properties": {CODEC: "zstd"}}))
    with pytest.raises(InvalidRequestError, match="zstd"):
        set_property(catalog, EVENTS, "n", "1")
    catalog.commit_table(EVENTS, (), (mending,)).result()
    set_property(catalog, EVENTS, "n", "1")
    assert current_n(catalog) == "1"


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


# Exclusive names, and late writers.


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
def test_a_late_change_of_metadata_alone_leaves_no_trace_to_tell_by(
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
def test_what_fails_after_the_publish_never_takes_the_version_back(
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


# Writes that fail before or after the store carries them out.


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


# Requests that path tables refuse.


def test_a_location_elsewhere_is_refused(catalog: FilesystemCatalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="stays"):
        catalog.create_table(EVENTS, first_metadata(f"{tmp_path}/elsewhere"))
    assert not catalog.table_exists(EVENTS)
    create(catalog, EVENTS)
    with pytest.raises(InvalidRequestError, match="stays"):
        catalog.commit_table(EVENTS, (), (SetLocation(f"{tmp_path}/elsewhere"),)).result()


def test_a_metadata_path_is_refused(catalog: FilesystemCatalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"write\.metadata\.path"):
        create(catalog, EVENTS, {"write.metadata.path": str(tmp_path)})
    create(catalog, EVENTS)
    with pytest.raises(InvalidRequestError, match=r"write\.metadata\.path"):
        set_property(catalog, EVENTS, "write.metadata.path", str(tmp_path))


def test_a_newer_format_version_is_refused(catalog: FilesystemCatalog) -> None:
    metadata = first_metadata(catalog.default_table_location(EVENTS))
    with pytest.raises(UnsupportedFeatureError, match="version 3"):
        catalog.create_table(EVENTS, replace(metadata, format_version=4))


def test_a_table_whose_location_has_a_scheme_is_the_same_table(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    # Java writes the location with a scheme.
    create(catalog, EVENTS)
    file = folder / "v1.metadata.json"
    file.write_text(file.read_text().replace(f'"{folder.parent}"', f'"file:{folder.parent}"'))
    set_property(catalog, EVENTS, "a", "1")


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_warehouse_with_a_scheme(catalog: FilesystemCatalog, tmp_path: Path, scheme: str) -> None:
    other = FilesystemCatalog("lake", {"warehouse": f"{scheme}{tmp_path}/"})
    created = create(other, EVENTS)
    assert created.metadata.location == f"{scheme}{tmp_path}/db/events"
    assert catalog.list_tables(("db",)) == [EVENTS]
    set_property(catalog, EVENTS, "a", "1")
    assert other.load_table(EVENTS).metadata.properties["a"] == "1"


def test_a_warehouse_where_no_name_can_be_taken_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="https://host"):
        FilesystemCatalog("lake", {"warehouse": "https://host/warehouse"})
    with pytest.raises(InvalidRequestError, match="warehouse"):
        FilesystemCatalog("lake", {})


# Namespaces and folders.


def test_namespaces_are_folders(catalog: FilesystemCatalog, tmp_path: Path) -> None:
    (tmp_path / "made" / "by").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").touch()
    assert catalog.list_namespaces() == [("db",), ("made",)]
    assert catalog.list_namespaces(("made",)) == [("made", "by")]
    assert not catalog.namespace_exists(("file",))
    assert catalog.load_namespace_properties(("made",)) == {"location": f"{tmp_path}/made"}


def test_a_table_is_no_namespace(catalog: FilesystemCatalog) -> None:
    create(catalog, EVENTS)
    assert not catalog.namespace_exists(("db", "events"))
    assert catalog.list_namespaces(("db",)) == []
    for namespace in (("db", "events"), ("db", "events", "below")):
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(namespace)


def test_a_namespace_is_no_table(catalog: FilesystemCatalog) -> None:
    catalog.create_namespace(("db", "events", "below"))
    with pytest.raises(TableAlreadyExistsError, match="namespace"):
        create(catalog, EVENTS)


def test_a_job_writes_the_files_of_its_table_before_it_creates_it(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    written = folder.parent / "data" / "day=1" / "a.parquet"
    written.parent.mkdir(parents=True)
    written.touch()
    create(catalog, EVENTS)
    assert catalog.list_tables(("db",)) == [EVENTS]


@pytest.mark.parametrize("namespace", [("db", "events"), ("db", "events", "data")])
def test_a_namespace_whose_table_is_called_data_is_no_table(
    catalog: FilesystemCatalog, namespace: tuple[str, ...]
) -> None:
    catalog.create_namespace(namespace)
    create(catalog, TableIdentifier(namespace=namespace, name="data"))
    with pytest.raises(TableAlreadyExistsError, match="namespace"):
        create(catalog, EVENTS)


def test_a_table_without_a_namespace_lies_in_the_warehouse(
    catalog: FilesystemCatalog, tmp_path: Path
) -> None:
    identifier = TableIdentifier(namespace=(), name="events")
    create(catalog, identifier)
    assert (tmp_path / "events" / "metadata" / "v1.metadata.json").is_file()
    assert catalog.list_tables(()) == [identifier]


def test_a_dropped_table_keeps_its_files_and_its_last_metadata(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    table_of(catalog, 3)
    data = folder.parent / "data" / "a.parquet"
    data.parent.mkdir()
    data.touch()
    last = catalog.load_table(EVENTS).metadata
    catalog.drop_table(EVENTS)
    assert data.is_file()
    assert names(folder) == [f"dropped-v3-{last.table_uuid}.metadata.json"]
    # The remaining folder is neither a table nor a namespace, and so the namespace is not empty.
    assert catalog.list_namespaces(("db",)) == []
    with pytest.raises(NoSuchTableError):
        catalog.load_table(EVENTS)
    with pytest.raises(NamespaceNotEmptyError, match="dropped"):
        catalog.drop_namespace(("db",))


def test_a_drop_that_was_cut_short_leaves_the_table_whole(
    catalog: FilesystemCatalog, folder: Path
) -> None:
    table_of(catalog, 3)
    last = catalog.load_table(EVENTS)
    last_metadata = folder / f"dropped-v3-{last.metadata.table_uuid}.metadata.json"
    last_metadata.write_bytes((folder / "v3.metadata.json").read_bytes())
    (folder / "version-hint.text").unlink()
    (folder / "v1.metadata.json").unlink()
    assert catalog.load_table(EVENTS) == last
    catalog.drop_table(EVENTS)
    assert not catalog.table_exists(EVENTS)


def test_an_interrupted_create_can_be_done_again(catalog: FilesystemCatalog, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".0123.tmp").touch()
    assert not catalog.table_exists(EVENTS)
    create(catalog, EVENTS)
    catalog.commit_table(EVENTS, (), (SetProperties({"a": "1"}),)).result()


def test_a_namespace_whose_tables_were_purged_can_be_dropped(
    catalog: FilesystemCatalog, tmp_path: Path
) -> None:
    tables = TableCatalog(catalog)
    tables.create_namespace("other")
    table = tables.create_table("other.t", schema="id BIGINT, p STRING", partitioned_by=["p"])
    table.append(pa.table({"id": [1], "p": ["a"]}))
    tables.drop_table("other.t", purge=True)
    stray_file = tmp_path / "other" / "t" / "data" / "p=a" / "of-another.parquet"
    stray_file.touch()
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(("other",))
    stray_file.unlink()
    catalog.drop_namespace(("other",))
    assert not (tmp_path / "other").exists()
