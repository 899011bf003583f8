"""Changes of a Connect client, of which each process is killed at each point in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceberg_pyspark import Table, load_catalog
from iceberg_pyspark.table.commits.stream_epochs import CHANGE, EPOCH_ID
from tests.support.ports import free_port
from tests.support.spark_sessions import ROOT, connect_server, spark_environment
from tests.support.table_integrity import table_problems

pytestmark = pytest.mark.nightly

PROGRAM = "tests.spark.connect_changes"
POINTS = [
    "before ChangeWriter.write",
    "after ChangeWriter.write",
    "before ChangeWriter.commit",
    "before SqlCatalog._swap_table",
    "after SqlCatalog._swap_table",
    "after ChangeWriter.commit",
]
POINTS_OF_BATCH = ["before FormatTable.write", *POINTS, "after FormatTable.write"]
COUNT = "spark.merge-into.num-target-rows-"


class Campaign:
    """A catalog, and the file that tells the processes of a server whom to kill and where."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kill = folder / "kill"
        self.settings = {
            "type": "sql",
            "uri": f"sqlite:///{folder / 'catalog.db'}",
            "warehouse": str(folder / "warehouse"),
        }
        self.catalog = load_catalog("lake", **self.settings)
        self.catalog.create_namespace("db")
        self.servers = self.kills = 0

    def create(self, version: int, mode: str) -> Table:
        """Create a table of ids and counts."""
        modes = {f"write.{op}.mode": mode for op in ("update", "merge")}
        properties = {"format-version": str(version), **modes}
        return self.catalog.create_table("db.t", "id BIGINT, n BIGINT", properties=properties)

    @contextmanager
    def server(self, port: int | None = None) -> Iterator[str]:
        """Start a server whose processes pass the points."""
        self.servers += 1
        with pytest.MonkeyPatch.context() as patch:
            # else the processes would be forked from a server of the tests, without the points
            patch.delenv("PYTEST_VERSION")
            patch.delenv("ICEBERG_PYTHON_DAEMONS", raising=False)
            points = str(ROOT / "tests" / "support" / "killed_at")
            patch.setenv("PYTHONPATH", os.pathsep.join([points, os.environ.get("PYTHONPATH", "")]))
            patch.setenv("ICEBERG_KILL", str(self.kill))
            with connect_server(self.folder / f"server{self.servers}", port=port) as url:
                yield url

    def add_to_stream(self, number: int) -> None:
        """Add a file with one row to the source of the stream."""
        file = self.folder / f"{number}.parquet"
        pq.write_table(pa.table({"id": [number], "n": [0]}), file)
        file.rename(self.folder / "in" / file.name)

    def kill_at(self, point: str, victim: str, passed: int = 0) -> Path:
        """Let a victim be killed at a point; return the file that says that it was."""
        mark = self.folder / f"killed {self.kills}"
        self.kills += 1
        self.kill.write_text(f"{point}\n{victim}\n{mark}\n{passed}", encoding="utf-8")
        return mark

    @contextmanager
    def client(self, url: str) -> Iterator[Client]:
        """Start a client of the table."""
        options = json.dumps({f"catalog.{k}": v for k, v in self.settings.items()})
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, url, "db.t", options],
            env=spark_environment(),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Client(process)
        finally:
            process.kill()
            process.communicate()


@dataclass
class Client:
    """A process of `tests/spark/connect_changes.py`."""

    process: subprocess.Popen[str]

    def tell(self, what: str, which: object) -> None:
        """Let the client do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {which}\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return what the client has done; nothing if it was killed."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {}

    def fails(self, what: str, which: object) -> None:
        """Let the client do something that fails."""
        self.tell(what, which)
        answer = self.answer()
        assert "error" in answer, answer

    def is_stopped_at(self, mark: Path, what: str, which: object) -> None:
        """Let the client do something until another process is killed."""
        self.tell(what, which)
        deadline = monotonic() + 120
        while not mark.exists():
            assert monotonic() < deadline, f"{what} {which} has not passed the point of {mark}"
            sleep(0.05)

    def does(self, what: str, which: object) -> Any:
        """Let the client do something; again where Spark has not waited for a process."""
        for _ in range(5):
            self.tell(what, which)
            answer = self.answer()
            if "to connect back" not in answer.get("error", ""):
                break
        assert "done" in answer, answer
        return answer["done"]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


def check_merges(table: Table, merges: int) -> None:
    """Check that each merge of numbers from 0 on was made once, and no file is missing."""
    table.refresh()
    assert table_problems(table) == []
    rows = table.scan().to_arrow().to_pylist()
    expected = [(i, merges - 1 - i) for i in range(merges)]
    assert sorted((row["id"], row["n"]) for row in rows) == expected
    summaries = [s.summary for s in table.snapshots]
    assert [s["txn-version"] for s in summaries] == [str(i) for i in range(merges)]
    counted = [(s[f"{COUNT}updated"], s[f"{COUNT}inserted"]) for s in summaries]
    assert counted == [(str(i), "1") for i in range(merges)]


@pytest.mark.parametrize(("version", "mode"), [(3, "merge-on-read"), (2, "copy-on-write")])
def test_a_merge_is_made_once_if_a_process_is_killed(
    campaign: Campaign, version: int, mode: str
) -> None:
    """The Python process at the point, or the client, whose next one runs the merge again."""
    table = campaign.create(version, mode)
    number = 0
    with campaign.server() as url:
        with campaign.client(url) as client:
            for point in POINTS:
                mark = campaign.kill_at(point, "process")
                client.fails("merge", number)
                assert mark.exists()
                client.does("merge", number)
                number += 1
        for point in POINTS:
            with campaign.client(url) as client:
                if number > len(POINTS):
                    client.does("merge", number - 1)
                mark = campaign.kill_at(point, str(client.process.pid))
                client.tell("merge", number)
                assert client.answer() == {}
                assert mark.exists()
                number += 1
        with campaign.client(url) as client:
            client.does("merge", number - 1)
    check_merges(table, number)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("version", "mode"), [(3, "merge-on-read"), (2, "copy-on-write")])
def test_a_merge_is_made_once_if_the_server_is_killed(
    campaign: Campaign, version: int, mode: str
) -> None:
    """The client waits for a server at the address, and the next one begins the merge again."""
    table = campaign.create(version, mode)
    port = free_port()
    with ExitStack() as clients:
        waiting: Client | None = None
        for number, point in enumerate((*POINTS, None)):
            with campaign.server(port) as url:
                if waiting is not None:
                    assert waiting.answer(), "the client has ended"
                client = clients.enter_context(campaign.client(url))
                if number:
                    client.does("merge", number - 1)
                if point is not None:
                    mark = campaign.kill_at(point, "jvm")
                    client.is_stopped_at(mark, "merge", number)
                waiting = client
    check_merges(table, len(POINTS))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["process", "client", "jvm"])
@pytest.mark.parametrize("what", ["stream", "named"])
def test_the_changes_of_a_batch_are_made_once(campaign: Campaign, what: str, victim: str) -> None:
    """A stream is killed in the first or second change of a batch, and runs again."""
    table = campaign.create(3, "merge-on-read")
    (campaign.folder / "in").mkdir()
    port = free_port()
    points = (None, *POINTS_OF_BATCH, None)
    with ExitStack() as server:
        url = server.enter_context(campaign.server(port))
        client = server.enter_context(campaign.client(url))
        for number, point in enumerate(points):
            campaign.add_to_stream(number)
            if point is not None:
                of = str(client.process.pid) if victim == "client" else victim
                mark = campaign.kill_at(point, of, passed=number % 2)
                if victim == "process":
                    client.fails(what, campaign.folder)
                    assert mark.exists()
                else:
                    client.is_stopped_at(mark, what, campaign.folder)
                    if victim == "jvm":
                        server.close()
                        url = server.enter_context(campaign.server(port))
                    client = server.enter_context(campaign.client(url))
            client.does(what, campaign.folder)
    table.refresh()
    assert table_problems(table) == []
    rows = table.scan().to_arrow().to_pylist()
    batches = len(points)
    assert sorted((r["id"], r["n"]) for r in rows) == [(i, batches - 1 - i) for i in range(batches)]
    # The first change of the first batch changes nothing, so it makes no snapshot.
    summaries = [s.summary for s in table.snapshots]
    if what == "named":
        assert [int(s["txn-version"]) for s in summaries] == list(range(1, 2 * batches))
    else:
        changes = [(str(i), change) for i in range(batches) for change in ("0 update", "1 merge")]
        assert [(s[EPOCH_ID], s[CHANGE]) for s in summaries] == changes[1:]


@pytest.mark.parametrize(
    ("version", "mode", "isolation", "retries"),
    [
        (3, "merge-on-read", "serializable", "20"),
        (3, "merge-on-read", "snapshot", "0"),
        (2, "copy-on-write", "serializable", "20"),
    ],
)
def test_merges_of_two_clients_add_up(
    campaign: Campaign, version: int, mode: str, isolation: str, retries: str
) -> None:
    """A conflict runs the merge again, as often as the table allows, and is then an error."""
    table = campaign.create(version, mode)
    properties = {"write.merge.isolation-level": isolation, "commit.retry.num-retries": retries}
    table.update_properties().set(properties).commit()
    table.refresh().append(pa.table({"id": [0, 1, 2], "n": pa.array([0] * 3, pa.int64())}))
    times = 6
    with campaign.server() as url, campaign.client(url) as one, campaign.client(url) as other:
        for client in (one, other):
            client.tell("race", times)
        refused = [name for client in (one, other) for name in client.answer()["done"]]
    table.refresh()
    assert table_problems(table) == []
    assert set(refused) <= (
        {"ConcurrentChangeError", "CommitConflictError"} if retries == "0" else set()
    )
    assert table.scan().to_arrow()["n"].to_pylist() == [2 * times - len(refused)] * 3
    assert len(table.snapshots) == 1 + 2 * times - len(refused)
