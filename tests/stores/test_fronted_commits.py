"""Commits to folder tables in the stores of Google and Azure: concurrent writers, lost answers."""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from iceberg_pyspark import Table
from iceberg_pyspark.catalogs.hadoop.hadoop_catalog import FilesystemCatalog
from iceberg_pyspark.errors import CommitStateUnknownError
from iceberg_pyspark.storage import store_properties
from iceberg_pyspark.table.commits import commit
from tests.services.azurite import AzureServer
from tests.services.gcs import GoogleServer
from tests.support.folder_tables import (
    ROW,
    check_commit_that_never_arrives,
    create_events,
    events,
    ids,
)
from tests.support.http_server import Request
from tests.support.many_writers import append_rows
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

WRITERS = 4
APPENDS = 3
VERSION = re.compile(r"v(\d+)(%2E|\.)metadata(%2E|\.)json$")


@pytest.fixture(params=["google", "azure"])
def server(request: pytest.FixtureRequest) -> GoogleServer | AzureServer:
    server: GoogleServer | AzureServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def properties(server: GoogleServer | AzureServer) -> dict[str, str]:
    return {"warehouse": f"{server.new_root()}/{uuid.uuid4()}", **server.properties()}


@pytest.fixture
def table(properties: dict[str, str]) -> Table:
    return create_events(properties)


class Loss:
    """Breaks connections of puts of one version of the metadata, `most` times."""

    def __init__(self, version: int) -> None:
        self._version = str(version)
        self.most = 1
        self.is_served = True
        """Whether the server serves the request, so that only the answer gets lost."""

        self.is_blind = False
        """Whether each request after the loss gets lost too."""

        self.lost = 0

    def __call__(self, request: Request, is_served: bool) -> bool:
        if self.is_blind and self.lost:
            return True
        put = VERSION.search(request.path) if request.method == "PUT" else None
        is_lost = (
            put is not None
            and put[1] == self._version
            and is_served == self.is_served
            and self.lost < self.most
        )
        self.lost += is_lost
        return is_lost


@pytest.fixture
def loss(server: GoogleServer | AzureServer, table: Table) -> Iterator[Loss]:
    server.front.loses = loss = Loss(2)
    yield loss
    server.front.loses = None


@pytest.fixture
def no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_properties, "_RETRIES", 0)


def test_every_acknowledged_append_of_racing_writers_is_there_once(
    server: GoogleServer | AzureServer,
    properties: dict[str, str],
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the server decides between writers on several machines, which cannot take turns."""

    first_puts = threading.Barrier(WRITERS)
    """The puts of all writers' first commits."""

    def let_them_meet(request: Request, is_served: bool) -> bool:
        version = VERSION.search(request.path)
        if request.method == "PUT" and version and version[1] == "2" and not is_served:
            first_puts.wait(timeout=60)
        return False

    def write(worker: int) -> int:
        return len(append_rows(FilesystemCatalog("lake", properties), worker, APPENDS))

    before = len(server.requests)
    monkeypatch.setattr(server.front, "loses", let_them_meet)
    monkeypatch.setattr(commit, "commit_turn", lambda _: nullcontext())
    with ThreadPoolExecutor(WRITERS) as pool:
        assert list(pool.map(write, range(WRITERS))) == [APPENDS] * WRITERS
    puts = [r for r in server.requests[before:] if r.method == "PUT" and VERSION.search(r.path)]
    after = events(properties)
    assert ids(after) == [w * 10_000 + n for w in range(WRITERS) for n in range(APPENDS)]
    assert len(after.snapshots) == WRITERS * APPENDS
    assert table_problems(after) == []
    # Each commit, and at least the puts of the losers of the first race.
    assert len(puts) >= WRITERS * APPENDS + WRITERS - 1


def test_a_commit_that_the_library_repeats_after_a_lost_answer_is_one_commit(
    properties: dict[str, str], table: Table, loss: Loss
) -> None:
    """The second put is refused, because the first one created the file."""
    table.append(ROW)
    assert loss.lost == 1
    assert ids(events(properties)) == [7]
    assert len(events(properties).snapshots) == 1


def test_a_commit_whose_answer_is_lost_is_looked_up(
    no_retries: None, properties: dict[str, str], table: Table, loss: Loss
) -> None:
    table.append(ROW)
    assert loss.lost == 1
    assert ids(events(properties)) == [7]
    assert len(events(properties).snapshots) == 1


def test_a_commit_that_cannot_be_looked_up_is_unknown_and_keeps_its_files(
    no_retries: None,
    server: GoogleServer | AzureServer,
    properties: dict[str, str],
    table: Table,
    loss: Loss,
) -> None:
    loss.is_blind = True
    with pytest.raises(CommitStateUnknownError):
        table.append(ROW)
    server.front.loses = None
    assert ids(events(properties)) == [7]
    assert table_problems(events(properties)) == []


def test_a_commit_that_never_arrived_is_unknown_and_keeps_its_files(
    no_retries: None, properties: dict[str, str], table: Table, loss: Loss
) -> None:
    """The store reports that the file does not exist, but a delayed request may still create it."""
    loss.is_served = False
    check_commit_that_never_arrives(table, properties, lambda: loss.lost)


def test_the_requests_of_a_commit_to_a_folder_table(
    server: GoogleServer | AzureServer, properties: dict[str, str], table: Table
) -> None:
    """They are those of S3: `test_s3_commits`."""
    table.append(ROW)
    before = len(server.requests)
    table.append(ROW)
    made = Counter(request.method for request in server.requests[before:])
    assert made == Counter({"PUT": 5, "GET": 4, "HEAD": 8})
