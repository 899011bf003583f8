"""Commits to folder tables in S3: many concurrent writers, and lost acknowledgements."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.errors import CommitStateUnknownError, StorageError
from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.objects import object_store_io
from iceberg_pyspark.storage.objects.object_store_io import ObjectStoreFileIO
from iceberg_pyspark.storage.open_storage import open_storage
from tests.amounts import FULL_WORK, WORK
from tests.services.s3 import S3Server
from tests.services.toxiproxy import Proxy
from tests.support.catalog_processes import run_together
from tests.support.folder_tables import (
    ROW,
    check_commit_that_never_arrives,
    create_events,
    events,
    ids,
)
from tests.support.hooked_storage import HookedFileIO
from tests.support.many_writers import SCHEMA, append_rows, wait_for_all, without_turns
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

WRITERS = 6 if FULL_WORK else 4
APPENDS = 3 * WORK


def write_rows(properties: Mapping[str, str], folder: Path, worker: int) -> int:
    """Append in this new process; return the number of acknowledged appends.

    The puts of all writers' first commits meet at the store.
    """
    without_turns()
    have_met = False

    def let_them_meet(name: str, _location: str, moment: str) -> None:
        nonlocal have_met
        if (name, moment, have_met) == ("create_exclusive", "before", False):
            wait_for_all(folder, worker, WRITERS)
            have_met = True

    io = HookedFileIO(ObjectStoreFileIO(properties), let_them_meet)
    return len(append_rows(FilesystemCatalog("lake", properties, io=io), worker, APPENDS))


@pytest.fixture
def properties(s3: S3Server, bucket: str) -> dict[str, str]:
    return {"warehouse": f"s3://{bucket}/{uuid.uuid4()}", **s3.properties()}


@pytest.fixture
def table(properties: dict[str, str]) -> Table:
    return create_events(properties)


def test_every_acknowledged_append_of_many_processes_is_there_once(
    s3: S3Server, properties: dict[str, str], table: Table, tmp_path: Path
) -> None:
    arguments = [(properties, tmp_path / "writers", worker) for worker in range(WRITERS)]
    assert run_together(write_rows, arguments) == [APPENDS] * WRITERS
    after = events(properties)
    assert ids(after) == [w * 10_000 + n for w in range(WRITERS) for n in range(APPENDS)]
    assert len(after.snapshots) == WRITERS * APPENDS
    assert table_problems(after) == []
    puts = re.findall(
        rf"s3_PutObject {properties['warehouse'].rpartition('/')[2]}/db/events/metadata/v\d+\S+ ",
        s3.access_log.read_text(),
    )
    # Each commit, the creation of the table, and at least the puts of the losers of the first race.
    assert len(puts) >= WRITERS * APPENDS + 1 + WRITERS - 1


class LossyCreate(HookedFileIO):
    """A store that creates files through a proxy that disturbs one exchange; all else is direct."""

    def __init__(
        self, io: FileIO, lossy: FileIO, spoil: Callable[[], AbstractContextManager[None]]
    ):
        super().__init__(io, self._look)
        self._lossy = lossy
        self._spoil = spoil
        self.blind = False
        """Whether the store cannot be read after the create."""
        self.lost = 0

    def _look(self, name: str, location: str, _moment: str) -> None:
        if self.blind and self.lost:
            raise StorageError(f"cannot {name} {location}: the store is gone")

    def create_exclusive(self, location: str, data: bytes) -> None:
        with self._spoil():
            try:
                self._lossy.create_exclusive(location, data)
            except StorageError:
                self.lost += 1
                raise


@pytest.fixture
def lossy(s3: S3Server, proxy: Proxy, properties: dict[str, str], table: Table) -> LossyCreate:
    through = {**s3.properties(proxy.endpoint), "s3.retry.num-retries": "1"}
    io = ObjectStoreFileIO(through)
    # Prove the store's conditional put now, so that the disturbed exchange is the commit's.
    io.create_exclusive(f"{properties['warehouse']}/proof", b"")

    def lose_the_answer() -> AbstractContextManager[None]:
        return proxy.toxic("limit_data", "downstream", bytes=1)

    return LossyCreate(open_storage(table.location, s3.properties()), io, lose_the_answer)


@pytest.mark.parametrize(("version", "files"), [("2", 4), ("3", 4), ("4", 3)])
def test_a_commit_takes_one_request_for_each_new_file(
    s3: S3Server,
    properties: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    files: int,
) -> None:
    """No request asks whether a name is free, because each name contains a new UUID.

    For the same reason, the first commit of a process does not test the store's conditional put.
    """
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": version})
    monkeypatch.setattr(object_store_io, "_honours_conditions", {})
    for _ in range(2):
        before = s3.requests()
        table.append(ROW)
        assert s3.requests() - before == Counter({"PutObject": files})


def test_a_commit_whose_acknowledgement_is_lost_is_looked_up(
    properties: dict[str, str], lossy: LossyCreate
) -> None:
    table = events(properties, lossy)
    table.append(ROW)
    assert lossy.lost == 1
    assert ids(events(properties)) == [7]
    assert len(events(properties).snapshots) == 1


def test_a_commit_that_cannot_be_looked_up_is_unknown_and_keeps_its_files(
    properties: dict[str, str], lossy: LossyCreate
) -> None:
    lossy.blind = True
    table = events(properties, lossy)
    with pytest.raises(CommitStateUnknownError):
        table.append(ROW)
    assert lossy.lost == 1
    assert ids(events(properties)) == [7]
    assert table_problems(events(properties)) == []


def test_a_commit_that_never_arrived_is_unknown_and_keeps_its_files(
    properties: dict[str, str], lossy: LossyCreate, proxy: Proxy
) -> None:
    """The store reports that the file does not exist, but a delayed request may still create it."""
    lossy._spoil = lambda: proxy.toxic("limit_data", "upstream", bytes=10)
    table = events(properties, lossy)
    check_commit_that_never_arrives(table, properties, lambda: lossy.lost)


def test_the_requests_of_a_commit_to_a_folder_table(
    s3: S3Server, properties: dict[str, str], table: Table
) -> None:
    """Version and hint are read before and after the commit; a version may have three names."""
    table.append(ROW)
    before = s3.requests()
    table.append(ROW)
    requests = {"PutObject": 5, "GetObject": 4, "HeadObject": 8}
    assert s3.requests() - before == Counter(requests)


def test_the_files_of_version_4_are_read_once(
    s3: S3Server, properties: dict[str, str], tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path}/c.db"
    catalog = load_catalog("lake", type="sql", uri=uri, **properties)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "4"})
    for _ in range(2):
        table.append(ROW)
    # Another store's settings, so that nothing which the writer knows is used.
    properties = {**properties, "s3.retry.num-retries": "7"}
    read = load_catalog("lake", type="sql", uri=uri, **properties).load_table("db.t")
    before = s3.requests()
    assert ids(read) == [7, 7]
    first = s3.requests() - before
    assert first == Counter({"GetObject": 1 + 2})
    assert ids(read) == [7, 7]
    assert s3.requests() - before - first == Counter({"GetObject": 2})


def test_small_files_are_read_by_one_request_each_and_in_order(
    s3: S3Server, properties: dict[str, str], table: Table
) -> None:
    for n in range(12):
        table.append(pa.table({"id": pa.array([n], pa.int64()), "v": ["x"]}))
    scan = events(properties).scan()
    in_order = [id_ for batch in scan.to_batches() for id_ in batch["id"].to_pylist()]
    before = s3.requests()
    assert scan.to_arrow()["id"].to_pylist() == in_order
    # Manifests are in the cache by now.
    assert s3.requests() - before == Counter({"GetObject": 12})
