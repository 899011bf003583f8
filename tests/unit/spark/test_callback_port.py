"""The port for the requests of the JVM: it serves one function to clients with the token only."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway

from iceberg_pyspark.spark.bridge.callback_port import CallbackPort, CallbackTarget

ATTRIBUTES = [
    "__class__",
    "__delattr__",
    "__dir__",
    "__eq__",
    "__format__",
    "__getattribute__",
    "__hash__",
    "__init__",
    "__init_subclass__",
    "__new__",
    "__reduce__",
    "__reduce_ex__",
    "__repr__",
    "__setattr__",
    "__sizeof__",
    "__str__",
    "__subclasshook__",
    "_function",
    "Java",
]
SILENCE = b""


class RequestLog:
    """A function for the JVM that records the requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []

    def __call__(self, operation: str, argument: Any) -> Any:
        self.requests.append((operation, argument))
        return f"response to {operation}"


@pytest.fixture(params=["pinned threads", "threads of their own"])
def gateway(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Yield a py4j gateway whose JVM was never started."""
    if request.param == "pinned threads":
        yield ClientServer(JavaParameters(port=1), PythonParameters(port=0, eager_load=False))
    else:
        yield JavaGateway(
            GatewayParameters(port=1),
            callback_server_parameters=CallbackServerParameters(port=0, eager_load=False),
        )


@pytest.fixture
def request_log() -> RequestLog:
    return RequestLog()


@pytest.fixture
def port(gateway: Any, request_log: RequestLog) -> Iterator[CallbackPort]:
    opened = CallbackPort(gateway, request_log)
    yield opened
    opened._server.shutdown()


def sent(port: CallbackPort, *commands: Sequence[str]) -> list[bytes]:
    """Send commands on one connection; return the replies, empty once it is closed."""
    replies = []
    with socket.create_connection(("127.0.0.1", port.number), timeout=5) as connection:
        stream = connection.makefile("rb")
        for lines in commands:
            try:
                connection.sendall("".join(line + "\n" for line in lines).encode())
                replies.append(stream.readline())
            except ConnectionError:
                replies.append(SILENCE)
    return replies


def call(target: str, method: str, *arguments: str) -> list[str]:
    return ["c", target, method, *(f"s{a}" for a in arguments), "e"]


def auth(token: str) -> list[str]:
    return ["A", token, "e"]


def test_file_for_the_jvm_has_port_and_token(port: CallbackPort, request_log: RequestLog) -> None:
    messages: list[str] = []

    def make(server: object, address: str, number: int, path: str) -> str:
        assert (address, number) == ("127.0.0.1", port.number)
        assert Path(path).stat().st_mode & 0o777 == 0o600
        messages.extend(Path(path).read_text().splitlines())
        messages.append(path)
        return "a client"

    assert port.client(make) == "a client"
    token, target, path = messages
    assert not Path(path).exists()
    replies = sent(port, auth(token), call(target, "handle", "scan.plan", "{}"))
    assert replies == [b"!yv\n", b"!ysresponse to scan.plan\n"]
    assert request_log.requests == [("scan.plan", "{}")]


def test_the_port_is_open_to_this_machine_alone(port: CallbackPort) -> None:
    assert port._server.get_listening_address() == "127.0.0.1"


def test_without_the_token_nothing_is_called(port: CallbackPort, request_log: RequestLog) -> None:
    message = call(port._target, "handle", "scan.plan", "{}")
    assert sent(port, message) == [SILENCE]
    assert sent(port, auth(port._token[:-1]), message) == [b"!xn\n", SILENCE]
    assert sent(port, auth(""), message) == [b"!xn\n", SILENCE]
    for attribute in ATTRIBUTES:
        assert sent(port, call(port._target, attribute, "_function", "x")) == [SILENCE]
    assert request_log.requests == []


def test_with_the_token_no_attribute_is_called_or_set(
    port: CallbackPort, request_log: RequestLog
) -> None:
    for attribute in ATTRIBUTES:
        for arguments in [(), ("_function",), ("_function", "x"), ("__class__", "x")]:
            request = call(port._target, attribute, *arguments)
            (_, refused) = sent(port, auth(port._token), request)
            assert refused.startswith(b"!xs"), (attribute, refused)
            assert b"the JVM may call handle" in refused
    assert request_log.requests == []
    message = call(port._target, "handle", "scan.plan", "{}")
    assert sent(port, auth(port._token), message)[1] == b"!ysresponse to scan.plan\n"


@pytest.mark.parametrize("target", ["p0", "t", "GATEWAY_SERVER", "o0", "p" + "0" * 32])
def test_other_objects_of_the_gateway_are_refused(port: CallbackPort, target: str) -> None:
    assert sent(port, auth(port._token), call(target, "handle", "a", "b"))[1].startswith(b"!x")


def test_objects_that_pyspark_gives_the_jvm_are_not_behind_it(
    gateway: Any, port: CallbackPort
) -> None:
    others = gateway.gateway_property.pool
    theirs = others.put(CallbackTarget(lambda operation, argument: "theirs"))
    assert sent(port, auth(port._token), call(theirs, "handle", "a", "b"))[1].startswith(b"!x")
    assert port._target not in others


def test_every_port_has_a_token_and_a_name_of_its_own(gateway: Any) -> None:
    ports = [CallbackPort(gateway, RequestLog()) for _ in range(3)]
    try:
        assert len({p._token for p in ports} | {p._target for p in ports}) == 6
        assert all(len(p._token) == 64 for p in ports)
    finally:
        for p in ports:
            p._server.shutdown()
