"""Parses partitioning and sort orders: `days(ts)`, `v DESC`.

Terms are those of Spark DDL; unknown terms are refused. `sql_text/schema_text.py` parses schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from iceberg_pyspark.display import cut_off
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.json_fields import MAX_INT32
from iceberg_pyspark.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    PartitionField,
    PartitionSpec,
)
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.sorting import UNSORTED, Direction, NullOrder, SortField, SortOrder
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from iceberg_pyspark.sql_text.lazy_parser import ClauseToken, term_tokens
from iceberg_pyspark.sql_text.names import parse_levels

_INT32_DIGITS = len(str(MAX_INT32))

# each transform with the suffix that follows the column's name in the partition field's name
_TRANSFORMS: Mapping[str, tuple[Transform, str]] = {
    "identity": (IdentityTransform(), ""),
    "year": (YearTransform(), "_year"),
    "years": (YearTransform(), "_year"),
    "month": (MonthTransform(), "_month"),
    "months": (MonthTransform(), "_month"),
    "day": (DayTransform(), "_day"),
    "days": (DayTransform(), "_day"),
    "date": (DayTransform(), "_day"),
    "hour": (HourTransform(), "_hour"),
    "hours": (HourTransform(), "_hour"),
    "date_hour": (HourTransform(), "_hour"),
    "void": (VoidTransform(), "_null"),
}
# how Spark writes what its users ask for by other names
_OF_SPARK = {
    "sorted_bucket": "buckets of Iceberg have no order of their own; leave sortBy (SORTED BY) out, "
    "and set the table's order with ALTER TABLE ... WRITE ORDERED BY",
    "cluster_by": "Iceberg has no clustering columns; leave clusterBy (CLUSTER BY) out, and use "
    "partitionBy (PARTITIONED BY), or set the table's order with ALTER TABLE ... WRITE ORDERED BY",
}


def parse_partitioning(terms: Sequence[str], schema: Schema) -> PartitionSpec:
    """Return the partition spec of terms such as `days(ts)`, `bucket(16, id)` and `country`.

    Fields have Iceberg's names (`ts_day`, `id_bucket`), unless `AS name` gives another name. Raises
    `InvalidRequestError`.
    """
    fields: list[PartitionField] = []
    for position, term in enumerate(terms):
        tokens, alias = term_tokens(term), None
        match _last_words(tokens, 2):
            case ["AS", _] if tokens[-1].is_name:
                alias = ".".join(parse_levels(tokens[-1].text))
                tokens = tokens[:-2]
        partition_term = _term(term, tokens, schema, None)
        fields.append(
            PartitionField(
                source_ids=(partition_term.source_id,),
                field_id=FIRST_PARTITION_FIELD_ID + position,
                name=alias or partition_term.field_name,
                transform=partition_term.transform,
            )
        )
    names = [f.name for f in fields]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(
                f"partition field '{name}' occurs twice; give one of them another name with AS"
            )
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def parse_sort_order(
    terms: Sequence[str], schema: Schema, *, case_sensitive: bool | None = None
) -> SortOrder:
    """Return the sort order of terms such as `ts DESC NULLS LAST`; raise `InvalidRequestError`.

    Names are found as `Schema.find` does. As in Spark, ascending puts nulls first and descending
    puts nulls last, unless NULLS FIRST or NULLS LAST follows.
    """
    fields: list[SortField] = []
    for term in terms:
        tokens = term_tokens(term)
        if not tokens:
            raise InvalidRequestError(
                f"sort term '{cut_off(term)}': expected a column or a transform of one"
            )
        direction: Direction = "asc"
        null_order: NullOrder | None = None
        match _last_words(tokens, 2):
            case ["NULLS", "FIRST" | "LAST" as place]:
                null_order = "nulls-first" if place == "FIRST" else "nulls-last"
                tokens = tokens[:-2]
        match _last_words(tokens, 1):
            case ["ASC" | "DESC" as order]:
                direction = "asc" if order == "ASC" else "desc"
                tokens = tokens[:-1]
        sort_term = _term(term, tokens, schema, case_sensitive)
        fields.append(
            SortField(
                source_ids=(sort_term.source_id,),
                transform=sort_term.transform,
                direction=direction,
                null_order=null_order or ("nulls-first" if direction == "asc" else "nulls-last"),
            )
        )
    return SortOrder(order_id=1, fields=tuple(fields)) if fields else UNSORTED


def _last_words(tokens: Sequence[ClauseToken], number: int) -> list[str]:
    """Return the last words of a term, in capitals.

    The list is empty unless a token and a space precede each word.
    """
    last = tokens[-number - 1 :]
    if len(last) <= number or any(one.end == next_.start for one, next_ in pairwise(last)):
        return []
    return [token.word for token in last[1:]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A transform of a column, and the name of its partition field in a new table."""

    source_id: int
    column: str
    transform: Transform
    field_name: str


def parse_term(text: str, schema: Schema, *, case_sensitive: bool | None = None) -> Term:
    """Return the column or transform of a column in a text; raise `InvalidRequestError`.

    Names are found as `Schema.find` does.
    """
    return _term(text, term_tokens(text), schema, case_sensitive)


def _term(
    text: str, tokens: Sequence[ClauseToken], schema: Schema, case_sensitive: bool | None
) -> Term:
    """Return the column or transform of a column that the tokens of a text name."""
    term_text = text[tokens[0].start : tokens[-1].end] if tokens else ""
    match [token.text for token in tokens]:
        case [function, "(", *_, ")"] if tokens[0].is_word:
            arguments = _arguments(text, tokens[2:-1])
            find = partial(_column, schema=schema, case_sensitive=case_sensitive)
            return _transform(function.lower(), arguments, cut_off(term_text), find)
        case _:
            name, source_id = _column(term_text, schema, case_sensitive)
            return Term(
                source_id=source_id, column=name, transform=IdentityTransform(), field_name=name
            )


def _arguments(text: str, tokens: Sequence[ClauseToken]) -> list[str]:
    """Return the texts between the commas."""
    if not tokens:
        return []
    commas = [token for token in tokens if token.text == ","]
    starts = (tokens[0].start, *(comma.end for comma in commas))
    ends = (*(comma.start for comma in commas), tokens[-1].end)
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _transform(
    function: str,
    arguments: Sequence[str],
    term_text: str,
    find: Callable[[str], tuple[str, int]],
) -> Term:
    # Python's int() refuses numbers of thousands of digits
    if (why := _OF_SPARK.get(function)) is not None:
        raise InvalidRequestError(f"'{term_text}': {why}")
    numbers = [
        int(a) if len(a) <= _INT32_DIGITS else MAX_INT32 + 1 for a in arguments if a.isdecimal()
    ]
    columns = [a for a in arguments if not a.isdecimal()]
    if len(columns) != 1:
        raise InvalidRequestError(
            f"'{term_text}': a transform takes one column; write one transform for each column"
        )
    name, source_id = find(columns[0])
    if function in ("bucket", "truncate"):
        if len(numbers) != 1 or not 1 <= numbers[0] <= MAX_INT32:
            raise InvalidRequestError(
                f"'{term_text}': {function} takes a positive number and a column, as "
                f"{function}(16, id); the number is at most {MAX_INT32}"
            )
        bucket = function == "bucket"
        return Term(
            source_id=source_id,
            column=name,
            transform=BucketTransform(numbers[0]) if bucket else TruncateTransform(numbers[0]),
            field_name=f"{name}_{'bucket' if bucket else 'trunc'}",
        )
    if numbers:
        raise InvalidRequestError(f"'{term_text}': {function} takes a column only")
    if function not in _TRANSFORMS:
        raise InvalidRequestError(
            f"'{term_text}': transform {function} is not known; there are identity, years, months, "
            "days, hours, bucket(n, column), truncate(n, column)"
        )
    transform, suffix = _TRANSFORMS[function]
    return Term(source_id=source_id, column=name, transform=transform, field_name=f"{name}{suffix}")


def _column(text: str, schema: Schema, case_sensitive: bool | None) -> tuple[str, int]:
    """Return full name and id of the column that a term names."""
    column = schema.find(".".join(parse_levels(text)), case_sensitive=case_sensitive)
    return schema.name_by_id[column.field_id], column.field_id
