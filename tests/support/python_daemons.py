"""A server that forks Spark's Python daemons, with all that they need imported.

Spark starts a daemon for each kind of Python worker of each session whose environment differs, and
each would import pyspark, pandas, pyarrow and this package: more than a second of processor time,
a hundred times in a run of all tests. Instead, the process that Spark starts (see
`worker_start/sitecustomize.py`) hands its environment and its standard streams over to this server.

`start_python_daemons` starts the server; it ends with the process that has started it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NoReturn

SERVER = "ICEBERG_PYTHON_DAEMONS"
"""The environment variable with the server's Python, a line break, and the server's socket."""

_ROOT = Path(__file__).parents[2]
_IMPORTS = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.worker",
    "iceberg_pyspark.spark.data_source.read_job",
    "iceberg_pyspark.spark.data_source.writer",
)
_servers: list[subprocess.Popen[bytes]] = []


def start_python_daemons() -> None:
    """Start a server for this Python, unless there is one; set `SERVER`."""
    if os.environ.get(SERVER, "").partition("\n")[0] != sys.executable:
        address = Path(tempfile.mkdtemp(prefix="iceberg-daemons-"), "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen(64)
            # The server ends when its standard input does, which this process alone has open.
            server = subprocess.Popen(
                [sys.executable, "-u", "-m", __name__, str(listener.fileno()), str(address)],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=_ROOT,
                env={**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        _servers.append(server)
        os.environ[SERVER] = f"{sys.executable}\n{address}"


def _serve(listener: socket.socket) -> None:
    """Fork a daemon for each connection, until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while 0 not in select.select([0, listener.fileno()], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _run_daemon(connection)
        connection.close()


def _run_daemon(connection: socket.socket) -> NoReturn:
    """Be the daemon of the process at the other end, which waits for this process to end."""
    code: object = 1
    try:
        data, streams, _, _ = socket.recv_fds(connection, 1, 3)
        while more := connection.recv(1 << 16):
            data += more
        worker, folder, environment = json.loads(data)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        modules = [path for path in paths if path and not path.endswith((".zip", ".jar"))]
        sys.path[:] = dict.fromkeys([folder, *modules, *sys.path[1:]])
        sys.argv = ["pyspark.daemon", worker]
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code
    except Exception:  # noqa: BLE001 - the streams of Spark show it, nothing above does
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 0)


def main() -> None:
    """Serve the listening socket whose number is the first argument; then delete its folder."""
    address = Path(sys.argv[2])
    try:
        for module in _IMPORTS:
            importlib.import_module(module)
        gc.freeze()
        with socket.socket(fileno=int(sys.argv[1])) as listener:
            _serve(listener)
    finally:
        address.unlink()
        address.parent.rmdir()


if __name__ == "__main__":
    main()
