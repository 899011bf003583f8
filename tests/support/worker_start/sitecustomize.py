"""Python runs this at its start: a daemon of Spark's Python workers is forked by a server.

See `tests/support/python_daemons.py`, which is not imported, because any release's Python runs
this. A Python that is not the server's, or has none, is a daemon as Spark starts it.
"""

import json
import os
import socket
import sys


def hand_over(address: str) -> None:
    """Give the arguments and the standard streams of this process away; end with the daemon."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError:
        return
    message = json.dumps([sys.orig_argv[-1], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(connection, [message[:1]], [0, 1, 2])
    connection.sendall(message[1:])
    connection.shutdown(socket.SHUT_WR)
    for stream in (0, 1, 2):
        os.close(stream)
    connection.recv(1)
    os._exit(0)


if "pyspark.daemon" in sys.orig_argv:
    executable, _, server = os.environ.get("ICEBERG_PYTHON_DAEMONS", "").partition("\n")
    if executable == sys.executable:
        hand_over(server)
