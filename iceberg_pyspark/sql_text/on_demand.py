"""Imports the parser of SQL text when it is first needed.

Importing sqlglot takes 0.2 seconds, which Spark's worker processes, and sessions with simple names
only, save.
"""

from __future__ import annotations

from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.expressions.predicates import Predicate


def as_predicate(filter: str | Predicate) -> Predicate:
    """The unbound predicate; raises `InvalidRequestError` for text that is none."""
    if not isinstance(filter, str):
        return filter
    from iceberg_pyspark.sql_text.filters import parse_filter  # noqa: PLC0415

    return parse_filter(filter)


@dataclass(frozen=True, slots=True)
class ClauseToken:
    """A word, a name in backticks or a mark, as the text has it from character `start` on."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The character behind it."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """Itself in capitals; a name in backticks equals no keyword."""
        return self.text.upper()

    @property
    def is_quoted(self) -> bool:
        """Whether it is a name in backticks."""
        return len(self.text) > 1 and self.text.startswith("`")

    @property
    def is_word(self) -> bool:
        """Whether it is a word: letters, digits and underscores."""
        return self.text.replace("_", "a").isalnum()

    @property
    def is_name(self) -> bool:
        """Whether it is a word or in backticks."""
        return self.is_word or self.is_quoted


def term_tokens(text: str) -> list[ClauseToken]:
    """The tokens of a dotted name, or of a term such as `bucket(16, id) DESC`.

    Raises `InvalidRequestError` for a backtick that is not closed.
    """
    from iceberg_pyspark.sql_text.parser import SqlTextError, term_spans  # noqa: PLC0415

    try:
        return _tokens(text, term_spans(text))
    except SqlTextError as e:
        raise InvalidRequestError(f"name {text[:200]!r}: {e}") from e


def statement_tokens(text: str) -> list[ClauseToken]:
    """The tokens of one of Iceberg's statements, without its comments.

    What is not closed is a token of its own, the last: `/*` or a backtick.
    """
    from iceberg_pyspark.sql_text.parser import statement_spans  # noqa: PLC0415

    return _tokens(text, statement_spans(text))


def _tokens(text: str, spans: list[tuple[int, int]]) -> list[ClauseToken]:
    return [ClauseToken(text[start:end], start) for start, end in spans]
