"""The port on which the JVM calls Python: it requires a token, and has one function.

pyspark's own callback server accepts any connection, and lets it call every method of every
registered object. This is a separate server on the loopback interface. The JVM reads its parameters
from a file, because values in py4j calls appear in py4j's log.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from py4j.clientserver import ClientServer, PythonParameters, PythonServer
from py4j.java_gateway import (
    CallbackServer,
    CallbackServerParameters,
    GatewayProperty,
    JavaObject,
    PythonProxyPool,
)
from py4j.protocol import PYTHON_PROXY_PREFIX

Handler = Callable[[str, Any], Any]
LOOPBACK = "127.0.0.1"


class CallbackTarget:
    """The only object behind the port: py4j finds `handle` in it, and no other attribute."""

    __slots__ = ("_function",)

    def __init__(self, function: Handler) -> None:
        object.__setattr__(self, "_function", function)

    def __getattribute__(self, name: str) -> Any:
        if name != "handle":
            raise AttributeError(f"the JVM may call handle, not {name}")
        return object.__getattribute__(self, "_function")


class CallbackPort:
    """An open port; the port stays open as long as the gateway exists, like pyspark's own."""

    def __init__(self, gateway: Any, handler: Handler) -> None:
        """Open any free port; its requests call `handler` with an operation and its argument."""
        # A reference to the gateway itself would keep the gateway, which is a weak key, alive.
        self._java_client = gateway._gateway_client
        self._token = secrets.token_hex(32)
        self._target = PYTHON_PROXY_PREFIX + secrets.token_hex(16)
        pool = PythonProxyPool()
        pool.put(CallbackTarget(handler), self._target)
        self._server = _server(gateway, pool, self._token)
        self._server.start()
        # The server's thread calls listen() too, but the JVM may connect earlier.
        self._server.server_socket.listen()

    @property
    def number(self) -> int:
        """The number of the port."""
        return int(self._server.get_listening_port())

    def close(self) -> None:
        """Stop listening, without waiting as py4j does for a connection that is being read."""
        threading.Thread(target=self._server.shutdown, daemon=True).start()

    def client(self, make: Callable[[Any, str, int, str], Any]) -> Any:
        """Have the JVM make a client from its server, the address and port of Python, and a file.

        The file holds the client's secrets. Only this user can read the file, and the file is
        removed afterwards.
        """
        file, path = tempfile.mkstemp(prefix="iceberg-pyspark-")
        try:
            with os.fdopen(file, "w") as secret:
                secret.write(f"{self._token}\n{self._target}\n")
            java_server = JavaObject("GATEWAY_SERVER", self._java_client)
            return make(java_server, LOOPBACK, self.number, path)
        finally:
            os.unlink(path)


def _server(gateway: Any, pool: PythonProxyPool, token: str) -> CallbackServer:
    """Return a callback server of the gateway's kind that has its own objects."""
    settings: dict[str, Any] = {
        "address": LOOPBACK,
        "port": 0,
        "daemonize": True,
        "daemonize_connections": True,
        "auth_token": token,
    }
    client = gateway._gateway_client
    if isinstance(gateway, ClientServer):
        objects = GatewayProperty(gateway.gateway_property.auto_field, pool)
        return PythonServer(client, gateway.java_parameters, PythonParameters(**settings), objects)
    return CallbackServer(
        pool, client, callback_server_parameters=CallbackServerParameters(**settings)
    )
