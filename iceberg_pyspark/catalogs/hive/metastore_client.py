"""Calls of a Hive metastore: connections, settings and errors.

A change is sent once. Any answer of the metastore, even an error, is final; if the connection
breaks after the request was sent, the outcome is unknown.
"""

from __future__ import annotations

import getpass
import logging
import os
import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from iceberg_pyspark.catalogs.catalog_properties import required_property
from iceberg_pyspark.catalogs.hive.thrift import (
    CALLS,
    ERROR,
    StructOf,
    read_value,
    write_value,
)
from iceberg_pyspark.catalogs.limited_sockets import (
    LimitedSocket,
    LimitReached,
    request_limits,
)
from iceberg_pyspark.errors import (
    CatalogError,
    CatalogUnavailableError,
    CommitStateUnknownError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger, redact_uri
from iceberg_pyspark.spec.property_types import IntProperty

_log = get_logger(__name__)

_DEFAULT_PORT = 9083
_IDLE_CONNECTIONS = IntProperty("clients", 2, 1)
_TIMEOUT = "hive.metastore.client.socket.timeout"
_DURATION = re.compile(r"(\d{1,9})(ms|s|sec|m|min|h)?")
_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_MAX_MESSAGE = 256 * 1024 * 1024
_KERBEROS = (
    "hive.kerberos-authentication",
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
)
"""Properties that ask for Kerberos or TLS, which are not supported; the first is PyIceberg's."""


class HiveAnswerError(CatalogError):
    """An error answer of the metastore: `code` is the name of the metastore's exception."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code)


class HiveUnreachableError(CatalogUnavailableError):
    """No metastore could be reached, so that nothing was sent."""


def hive_property(properties: Mapping[str, str], name: str) -> str | None:
    """Return a setting of Hive's clients, also in Spark's form `hadoop.<name>`; None if unset."""
    value = properties.get(name)
    return properties.get(f"hadoop.{name}") if value is None else value


def user_name(properties: Mapping[str, str]) -> str:
    """Return the user name to send: `ugi`, HADOOP_USER_NAME, or the operating system's user."""
    configured_name = properties.get("ugi", "").partition(":")[0] or os.environ.get(
        "HADOOP_USER_NAME"
    )
    if configured_name:
        return configured_name
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return str(os.getuid())


class HiveClient:
    """A client of a metastore, made from a catalog's properties; the first call connects.

    Threads may share a client: each call uses a connection of its own, and up to `clients` idle
    connections are kept.
    """

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._properties = properties
        self._addresses = _addresses(catalog, properties)
        self._timeout = _timeout(catalog, properties)
        self._max_idle = _IDLE_CONNECTIONS.of(properties)
        for name in _KERBEROS:
            if (hive_property(properties, name) or "").lower() == "true":
                raise UnsupportedFeatureError(
                    f"catalog '{catalog}': {name} is not supported; only plain Thrift is "
                    "supported, without Kerberos or TLS"
                )
        self._reset()

    def _reset(self) -> None:
        self._idle: list[Any] = []
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        names = ("_catalog", "_properties", "_addresses", "_timeout", "_max_idle")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def __repr__(self) -> str:
        return f"HiveClient({self._catalog!r}, {self.address!r})"

    @property
    def address(self) -> str:
        """The metastores' hosts and ports, separated by commas."""
        return ",".join(f"{host}:{port}" for host, port in self._addresses)

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation of `thrift.CALLS` and return its answer.

        Raise `HiveAnswerError` for an error answer, `HiveUnreachableError` if nothing was sent, and
        another `CatalogUnavailableError` if no answer arrived.
        """
        from thrift.Thrift import TException  # noqa: PLC0415 - an extra

        with request_limits(self._timeout, _MAX_MESSAGE):
            try:
                protocol = self._connection()
            except LimitReached as e:
                raise HiveUnreachableError(self._no_answer("set_ugi", e)) from None
            return self._answer(protocol, operation, arguments, (TException, OSError))

    def _answer(
        self,
        protocol: Any,
        operation: str,
        arguments: Mapping[str, Any],
        failures: tuple[type[Exception], ...],
    ) -> Any:
        broken: tuple[type[Exception], ...] = (*failures, ValueError, EOFError)
        try:
            answer = _exchange(protocol, operation, arguments)
        except HiveAnswerError as e:
            self._keep(protocol)
            raise HiveAnswerError(f"catalog '{self._catalog}': {e}", e.code) from e.__cause__
        except broken as e:
            protocol.trans.close()
            raise CatalogUnavailableError(self._no_answer(operation, e)) from e
        except LimitReached as e:
            protocol.trans.close()
            raise CatalogUnavailableError(self._no_answer(operation, e)) from None
        except BaseException:
            # the connection may still contain a part of the answer
            protocol.trans.close()
            raise
        self._keep(protocol)
        return answer

    def _no_answer(self, operation: str, error: BaseException) -> str:
        limit = isinstance(error, LimitReached)
        remedy = f"; a slow metastore may need a higher {_TIMEOUT}" if limit else ""
        return (
            f"catalog '{self._catalog}': the Hive metastore at {self.address} gave no answer to "
            f"{operation}: {error}{remedy}"
        )

    def change(self, operation: str, **arguments: Any) -> None:
        """Make a call that changes something, and raise the errors of `call`.

        Raise `CommitStateUnknownError` instead if the request was sent and no answer arrived.
        """
        try:
            self.call(operation, **arguments)
        except HiveUnreachableError:
            raise
        except CatalogUnavailableError as e:
            raise CommitStateUnknownError(str(e)) from e

    def _connection(self) -> Any:
        if self._pid != os.getpid():
            # after a fork, the connections belong to the parent process
            self._reset()
        while True:
            with self._lock:
                if not self._idle:
                    break
                protocol = self._idle.pop()
            if protocol.trans.isOpen():
                return protocol
        return self._connect()

    def _keep(self, protocol: Any) -> None:
        with self._lock:
            if len(self._idle) < self._max_idle:
                self._idle.append(protocol)
                return
        protocol.trans.close()

    def _connect(self) -> Any:
        try:
            from thrift.protocol.TBinaryProtocol import TBinaryProtocol  # noqa: PLC0415
            from thrift.transport.TSocket import TSocket  # noqa: PLC0415
            from thrift.transport.TTransport import (  # noqa: PLC0415
                TBufferedTransport,
                TTransportException,
            )
        except ImportError as e:
            raise InvalidRequestError(
                f"catalog '{self._catalog}': type 'hive' needs thrift; run "
                "pip install 'iceberg-pyspark[hive]'"
            ) from e
        # the library logs, at the error level, the same errors that are raised here
        logging.getLogger("thrift.transport.TSocket").setLevel(logging.CRITICAL)
        failures = []
        for host, port in self._addresses:
            socket = TSocket(host, port)
            socket.setTimeout(self._timeout * 1000)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except TTransportException as e:
                failures.append(f"{host}:{port} ({e})")
                continue
            socket.handle = LimitedSocket(socket.handle)
            protocol = TBinaryProtocol(
                transport, string_length_limit=_MAX_MESSAGE, container_length_limit=_MAX_MESSAGE
            )
            self._introduce(protocol)
            return protocol
        raise HiveUnreachableError(
            f"catalog '{self._catalog}': no Hive metastore can be reached: {', '.join(failures)}; "
            "check the property 'uri'"
        )

    def _introduce(self, protocol: Any) -> None:
        """Send our user name and groups, which a metastore without Kerberos trusts."""
        groups = self._properties.get("ugi", "").split(":")[1:]
        arguments = {"user_name": user_name(self._properties), "group_names": groups}
        try:
            _exchange(protocol, "set_ugi", arguments)
        except HiveAnswerError as e:
            _log.info("the Hive metastore at %s does not ask for users: %s", self.address, e)
        except Exception:  # noqa: BLE001 - the call that comes next says what is wrong
            protocol.trans.close()
        except LimitReached:
            protocol.trans.close()
            raise


def _exchange(protocol: Any, operation: str, arguments: Mapping[str, Any]) -> Any:
    from thrift.Thrift import TApplicationException, TMessageType  # noqa: PLC0415

    call = CALLS[operation]
    protocol.writeMessageBegin(operation, TMessageType.CALL, 0)
    write_value(protocol, call.arguments, arguments)
    protocol.writeMessageEnd()
    protocol.trans.flush()
    _name, kind, _number = protocol.readMessageBegin()
    if kind == TMessageType.EXCEPTION:
        error = TApplicationException()
        error.read(protocol)
        protocol.readMessageEnd()
        codes = {
            TApplicationException.UNKNOWN_METHOD: UNKNOWN_CALL,
            TApplicationException.INTERNAL_ERROR: INTERNAL_ERROR,
        }
        code = codes.get(error.type, "TApplicationException")
        raise HiveAnswerError(f"the Hive metastore failed at {operation}: {error}", code)
    fields = {name: (n, ERROR) for n, name in enumerate(call.errors, 1)}
    answer = StructOf({**fields, **({} if call.answer is None else {"success": (0, call.answer)})})
    result = read_value(protocol, answer)
    protocol.readMessageEnd()
    for code in call.errors:
        if code in result:
            text = result[code].get("message") or "no message"
            raise HiveAnswerError(
                f"the Hive metastore answered {operation} with {code}: {text}", code
            )
    if call.answer is None:
        return None
    if "success" not in result:
        raise HiveAnswerError(
            f"the Hive metastore's answer to {operation} has nothing in it", "TApplicationException"
        )
    return result["success"]


UNKNOWN_CALL = "unknown method"
"""The error code for a call that the metastore does not support."""

INTERNAL_ERROR = "internal error"
"""The error code for a call that failed within the metastore, as if its database is too busy."""


def _addresses(catalog: str, properties: Mapping[str, str]) -> list[tuple[str, int]]:
    uris = required_property(catalog, properties, "uri", "as thrift://host:9083")
    addresses = []
    for uri in uris.split(","):
        try:
            parts = urlsplit(uri.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if parts.scheme.lower() != "thrift" or not host or parts.username is not None:
            raise InvalidRequestError(
                f"catalog '{catalog}': uri '{redact_uri(uri.strip())}' is not the address of a "
                "Hive metastore; write thrift://host:port, or several of them separated by commas"
            )
        addresses.append((host, port or _DEFAULT_PORT))
    return addresses


def _timeout(catalog: str, properties: Mapping[str, str]) -> float:
    """Return how long a call may take, in seconds."""
    text = hive_property(properties, _TIMEOUT) or "600s"
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise InvalidRequestError(
            f"catalog '{catalog}': {_TIMEOUT} is '{text}'; write a time as 600s or 500ms"
        )
    return int(match[1]) * _SECONDS[match[2] or "s"]
