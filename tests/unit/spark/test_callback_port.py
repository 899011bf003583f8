"""The port on which the JVM asks: it serves one function to clients with the token only."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway

from iceberg_pyspark.spark.bridge.callback_port import Answering, CallbackPort

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


class QuestionLog:
    """A function for the JVM that records the questions."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, Any]] = []

    def __call__(self, operation: str, argument: Any) -> Any:
        self.questions.append((operation, argument))
        return f"answer to {operation}"


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
def question_log() -> QuestionLog:
    return QuestionLog()


@pytest.fixture
def port(gateway: Any, question_log: QuestionLog) -> Iterator[CallbackPort]:
    opened = CallbackPort(gateway, question_log)
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


def test_what_the_jvm_is_told_makes_it_a_client(
    port: CallbackPort, question_log: QuestionLog
) -> None:
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
    replies = sent(port, auth(token), call(target, "answer", "scan.plan", "{}"))
    assert replies == [b"!yv\n", b"!ysanswer to scan.plan\n"]
    assert question_log.questions == [("scan.plan", "{}")]


def test_the_port_is_open_to_this_machine_alone(port: CallbackPort) -> None:
    assert port._server.get_listening_address() == "127.0.0.1"


def test_without_the_token_nothing_is_called(port: CallbackPort, question_log: QuestionLog) -> None:
    question = call(port._target, "answer", "scan.plan", "{}")
    assert sent(port, question) == [SILENCE]
    assert sent(port, auth(port._token[:-1]), question) == [b"!xn\n", SILENCE]
    assert sent(port, auth(""), question) == [b"!xn\n", SILENCE]
    for attribute in ATTRIBUTES:
        assert sent(port, call(port._target, attribute, "_function", "x")) == [SILENCE]
    assert question_log.questions == []


def test_with_the_token_no_attribute_is_called_or_set(
    port: CallbackPort, question_log: QuestionLog
) -> None:
    for attribute in ATTRIBUTES:
        for arguments in [(), ("_function",), ("_function", "x"), ("__class__", "x")]:
            request = call(port._target, attribute, *arguments)
            (_, refused) = sent(port, auth(port._token), request)
            assert refused.startswith(b"!xs"), (attribute, refused)
            assert b"the JVM may call answer" in refused
    assert question_log.questions == []
    question = call(port._target, "answer", "scan.plan", "{}")
    assert sent(port, auth(port._token), question)[1] == b"!ysanswer to scan.plan\n"


@pytest.mark.parametrize("target", ["p0", "t", "GATEWAY_SERVER", "o0", "p" + "0" * 32])
def test_there_is_no_other_object(port: CallbackPort, target: str) -> None:
    assert sent(port, auth(port._token), call(target, "answer", "a", "b"))[1].startswith(b"!x")


def test_objects_that_pyspark_gives_the_jvm_are_not_behind_it(
    gateway: Any, port: CallbackPort
) -> None:
    others = gateway.gateway_property.pool
    theirs = others.put(Answering(lambda operation, argument: "theirs"))
    assert sent(port, auth(port._token), call(theirs, "answer", "a", "b"))[1].startswith(b"!x")
    assert port._target not in others


def test_every_port_has_a_token_and_a_name_of_its_own(gateway: Any) -> None:
    ports = [CallbackPort(gateway, QuestionLog()) for _ in range(3)]
    try:
        assert len({p._token for p in ports} | {p._target for p in ports}) == 6
        assert all(len(p._token) == 64 for p in ports)
    finally:
        for p in ports:
            p._server.shutdown()
