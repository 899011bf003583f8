"""Imports the parsers of SQL text on first use.

Importing sqlglot takes 0.2 seconds. Spark's worker processes, and programs that use only simple
names and filters, save this time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iceberg_pyspark.errors import InvalidRequestError

if TYPE_CHECKING:
    from iceberg_pyspark.expressions.predicates import Filter, Predicate
    from iceberg_pyspark.sql_text.conjuncts import Conjuncts


def as_predicate(filter: Filter) -> Predicate:
    """Return the unbound predicate; raise `InvalidRequestError` for an invalid text."""
    from iceberg_pyspark.expressions.predicates import Predicate  # noqa: PLC0415
    from iceberg_pyspark.sql_text.simple_filters import parse_simple_filter  # noqa: PLC0415

    if isinstance(filter, Predicate):
        return filter
    simple = parse_simple_filter(filter)
    if simple is not None:
        return simple
    from iceberg_pyspark.sql_text.filters import parse_filter  # noqa: PLC0415

    return parse_filter(filter)


def conjuncts_of(text: str) -> Conjuncts:
    """Return what is understood of a condition, as `parse_conjuncts` does."""
    from iceberg_pyspark.sql_text.conjuncts import parse_conjuncts  # noqa: PLC0415

    return parse_conjuncts(text)


@dataclass(frozen=True, slots=True)
class ClauseToken:
    """A word, a name in backticks or a mark, with its character offset in the text."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset of the first character after the token."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The token in capitals; a name in backticks never equals a keyword."""
        return self.text.upper()

    @property
    def is_quoted(self) -> bool:
        """Whether the token is a name in backticks."""
        return len(self.text) > 1 and self.text.startswith("`")

    @property
    def is_word(self) -> bool:
        """Whether the token is a word: letters, digits and underscores."""
        return self.text.replace("_", "a").isalnum()

    @property
    def is_name(self) -> bool:
        """Whether the token is a word or a name in backticks."""
        return self.is_word or self.is_quoted


def term_tokens(text: str) -> list[ClauseToken]:
    """Return the tokens of a dotted name, or of a term such as `bucket(16, id) DESC`.

    Raises `InvalidRequestError` for a backtick that is not closed.
    """
    from iceberg_pyspark.sql_text.parser import SqlTextError, term_spans  # noqa: PLC0415

    try:
        return _tokens(text, term_spans(text))
    except SqlTextError as e:
        raise InvalidRequestError(f"name {text[:200]!r}: {e}") from e


def statement_tokens(text: str) -> list[ClauseToken]:
    """Return the tokens of one of Iceberg's statements, without comments.

    The last token is `/*` or a backtick if a comment or name is not closed.
    """
    from iceberg_pyspark.sql_text.parser import statement_spans  # noqa: PLC0415

    return _tokens(text, statement_spans(text))


def _tokens(text: str, spans: list[tuple[int, int]]) -> list[ClauseToken]:
    return [ClauseToken(text[start:end], start) for start, end in spans]
