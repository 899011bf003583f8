"""Base classes of the JVM's requests and of the responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen struct that is decoded from JSON and encoded to JSON."""

    def __repr__(self) -> str:
        """Return only the class name, because options, settings and properties may hold secrets."""
        return f"{type(self).__name__}(...)"


class Request(Message, frozen=True, kw_only=True):
    """A request from the JVM."""


class RequestWithPlan(Request, frozen=True, kw_only=True):
    """A request that comes with a Spark plan."""

    plan: Any = None
    """A JVM object, not part of the JSON: a `LogicalPlan`, or a `Dataset` of rows to write."""


class Response(Message, frozen=True, kw_only=True):
    """A response to the JVM."""


class ResponseWithParts(Response, frozen=True, kw_only=True):
    """A response that comes with Spark plans."""

    parts: Callable[[str], Any] | None = None
    """A function that makes the JVM's list of the response's text and the plans; not part of the
    JSON.

    It is None if Spark keeps its own plan.
    """


class Failure(Response, frozen=True, kw_only=True):
    """The response to any request that fails: Java raises it."""

    error: str
    """The name of the class in `errors.py`; empty for any other exception."""

    message: str
    namespace: tuple[str, ...] = ()
    """The namespace that the error is about, or the namespace of the table that it is about."""

    name: str | None = None


class Acknowledgement(Response, frozen=True, kw_only=True):
    """A response without content."""


def text_of(message: Message) -> str:
    """Return a message as JSON; equal messages give equal text."""
    return msgspec.json.encode(message).decode()
