"""The Thrift server of docs/guide/thrift.md: its commands, PyHive, beeline, and its end."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from jobs.find_java import find_java_home
from tests.releases.environments import (
    EnvironmentUnavailableError,
    new_environment,
    python_of,
)
from tests.releases.releases import RELEASES
from tests.services.server import absent
from tests.support.documentation import DOCS, ROOT, blocks_of, commands_of
from tests.support.ports import free_port

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

PAGE = DOCS / "guide" / "thrift.md"
CLIENT = Path(__file__).parent / "thrift_client.py"
PYHIVE = "pyhive[hive_pure_sasl]"
START_SECONDS = 180
END_SECONDS = 60


@dataclass(frozen=True)
class ThriftServer:
    """A running server, the programs of its release, and its port."""

    process: subprocess.Popen[bytes]
    programs: Path
    port: int
    log: Path

    def command(self, program: str) -> list[str]:
        """Return the page's command of a program, for this server."""
        [command] = commands_of(PAGE, program)
        _, *arguments = shlex.split(command.replace("10000", str(self.port)))
        return [str(self.programs / program), *arguments]


@pytest.fixture(scope="module")
def client_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with PyHive."""
    try:
        return new_environment(tmp_path_factory.mktemp("pyhive") / "environment", PYHIVE)
    except EnvironmentUnavailableError as e:
        absent("PyHive", str(e))


@pytest.fixture(scope="module", params=[RELEASES[1], RELEASES[-1]])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ThriftServer]:
    folder = tmp_path_factory.mktemp("thrift")
    try:
        programs = python_of(request.param).parent
    except EnvironmentUnavailableError as e:
        absent(f"Spark {request.param}", str(e))
    [command] = commands_of(PAGE, "spark-submit")
    port = free_port()
    command = command.replace("/warehouse", str(folder)).replace("10000", str(port))
    command = command.replace("jobs/", f"{ROOT}/jobs/")
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(programs / "spark-submit"), *shlex.split(command)[1:]],
            cwd=folder,
            env=environment(programs),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + START_SECONDS
        while "\nlistening on" not in log.read_text(encoding="utf-8", errors="replace"):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < until, log.read_text(encoding="utf-8")
            time.sleep(0.5)
        yield ThriftServer(process, programs, port, log)
    finally:
        process.kill()
        process.wait()


def environment(programs: Path) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PY", "SPARK"))}
    return {
        **inherited,
        "JAVA_HOME": str(find_java_home()),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": str(programs / "python"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run(server: ThriftServer, command: list[str]) -> str:
    done = subprocess.run(
        command,
        env=environment(server.programs),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{server.log.read_text()[-9000:]}"
    return done.stdout


def test_the_page_holds_for_two_clients_at_a_time(
    server: ThriftServer, client_python: Path
) -> None:
    assert "shop" in run(server, server.command("beeline"))
    [block] = [b for b in blocks_of(PAGE) if b.language == "py"]
    run(server, [str(client_python), "-c", block.code.replace("10000", str(server.port))])

    shown = run(server, [str(client_python), str(CLIENT), str(server.port)])
    results = json.loads(shown.splitlines()[-1])
    failures = results.pop("failures")
    assert results == {
        "statements": {
            "rows": [[1, "A"], [2, "two"], [4, "four"]],
            "view": [[2], [4]],
            "tables": [["shop", "orders", False], ["shop", "t", False]],
            "views": [["shop", "v", False]],
            "columns": [["id", "bigint", None], ["s", "string", None]],
            "commits": [[True]],
        },
        "two sessions": [[], False, [[5]], [["shop"]], [["default"]]],
        "at the same time": [[101], [201], [301], [401]],
        "cancelled": [True, True, True],
        "later sessions": [[1]],
        "merge of the last session": [[2, "two"], [4, "four"]],
    }
    column, table, snapshot = failures.values()
    assert "[UNRESOLVED_COLUMN.WITH_SUGGESTION]" in column
    assert "[TABLE_OR_VIEW_NOT_FOUND]" in table
    assert "t has no snapshot 1 (it has expired or never existed)" in snapshot

    by_name = server.command("beeline")
    by_name[2] = by_name[2].replace("default", "lake.shop")
    by_name[-1] = "SELECT concat('rows: ', count(*)) FROM t"
    assert "rows: 2" in run(server, by_name)


def test_a_terminated_server_leaves_no_process(server: ThriftServer) -> None:
    processes = psutil.Process(server.process.pid).children(recursive=True)
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(END_SECONDS)
    _, alive = psutil.wait_procs(processes, END_SECONDS)
    assert alive == []
