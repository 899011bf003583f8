"""Base classes of the JVM's questions and of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen dataclass that JSON is decoded into and encoded from."""

    def __repr__(self) -> str:
        """Only the name: options, settings and properties may hold secrets."""
        return f"{type(self).__name__}(...)"


class Question(Message, frozen=True, kw_only=True):
    """A question of the JVM's."""


class PlanQuestion(Question, frozen=True, kw_only=True):
    """A question about a plan of Spark's."""

    plan: Any = None
    """An object of the JVM's, not in the JSON: a `LogicalPlan`, or a `Dataset` of rows to write."""


class Answer(Message, frozen=True, kw_only=True):
    """An answer to the JVM."""


class PartsAnswer(Answer, frozen=True, kw_only=True):
    """An answer with plans of Spark's."""

    parts: Callable[[str], Any] | None = None
    """Not in the JSON: makes a list of the JVM's, the answer's text and the plans after it.

    None where Spark's own plan is to stay.
    """


class Failure(Answer, frozen=True, kw_only=True):
    """The answer to any question that fails: Java raises it."""

    error: str
    """The class in `errors.py`; empty for any other exception."""

    message: str
    namespace: tuple[str, ...] = ()
    """The namespace that the error is about, or that of the table it is about."""

    name: str | None = None


class Acknowledgement(Answer, frozen=True, kw_only=True):
    """An answer without content."""


def text_of(message: Message) -> str:
    """A message as JSON, equal for equal ones."""
    return msgspec.json.encode(message).decode()
