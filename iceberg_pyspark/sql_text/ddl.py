"""Partitioning and sort orders as users write them: `days(ts)`, `v DESC`.

Terms are those of Spark DDL; what is not understood is refused by name. Schemas as text are
`sql_text/schemas.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from iceberg_pyspark.sql_text.names import parse_levels

_TERM = re.compile(r"(?P<function>\w+)\s*\((?P<arguments>.*)\)", re.DOTALL)
# quoted names, words with what clings to them, spaces: each character one way only
_WORD = re.compile(r"`(?:[^`]|``)*`|[^`\s]+|\s+|`")
_NAME = re.compile(r"\w+|`(?:[^`]|``)+`")
_ARGUMENT = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")

_INT32_DIGITS = len(str(MAX_INT32))

_TIME_TRANSFORMS: Mapping[str, tuple[Transform, str]] = {
    "year": (YearTransform(), "year"),
    "years": (YearTransform(), "year"),
    "month": (MonthTransform(), "month"),
    "months": (MonthTransform(), "month"),
    "day": (DayTransform(), "day"),
    "days": (DayTransform(), "day"),
    "date": (DayTransform(), "day"),
    "hour": (HourTransform(), "hour"),
    "hours": (HourTransform(), "hour"),
    "date_hour": (HourTransform(), "hour"),
    "void": (VoidTransform(), "null"),
}


def parse_partitioning(terms: Sequence[str], schema: Schema) -> PartitionSpec:
    """The partition spec that terms such as `days(ts)`, `bucket(16, id)` and `country` say.

    Fields are named as Iceberg names them (`ts_day`, `id_bucket`); `AS name` renames one. Raises
    `InvalidRequestError`.
    """
    fields: list[PartitionField] = []
    for position, term in enumerate(terms):
        text, alias = _without_alias(term.strip())
        parsed = parse_term(text, schema)
        fields.append(
            PartitionField(
                source_ids=(parsed.source_id,),
                field_id=FIRST_PARTITION_FIELD_ID + position,
                name=alias or parsed.field_name,
                transform=parsed.transform,
            )
        )
    names = [f.name for f in fields]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequestError(
                f"partition field '{name}' is there twice; give one of them another name with AS"
            )
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def parse_sort_order(terms: Sequence[str], schema: Schema) -> SortOrder:
    """The sort order that terms such as `ts DESC NULLS LAST` say; raises `InvalidRequestError`.

    As in Spark, ascending puts nulls first and descending puts them last unless told otherwise.
    """
    fields: list[SortField] = []
    for term in terms:
        text, direction, null_order = _sort_parts(term.strip())
        if not text:
            raise InvalidRequestError(
                f"sort term '{_shortened(term)}': expected a column or a transform of one"
            )
        parsed = parse_term(text, schema)
        fields.append(
            SortField(
                source_ids=(parsed.source_id,),
                transform=parsed.transform,
                direction=direction,
                null_order=null_order,
            )
        )
    return SortOrder(order_id=1, fields=tuple(fields)) if fields else UNSORTED


def _without_alias(text: str) -> tuple[str, str | None]:
    """A term without ` AS name` at its end, and that name."""
    words = _WORD.findall(text)
    if len(words) < 5 or words[-3].upper() != "AS" or not (words[-4] + words[-2]).isspace():
        return text, None
    if not _NAME.fullmatch(words[-1]):
        return text, None
    return "".join(words[:-4]), ".".join(parse_levels(words[-1]))


def _sort_parts(text: str) -> tuple[str, Direction, NullOrder]:
    """A term without ` ASC`, ` DESC` and ` NULLS FIRST`, ` NULLS LAST` at its end, and these."""
    nulls = None
    match text.rsplit(None, 2):
        case [rest, before, last] if before.upper() == "NULLS" and last.upper() in _NULL_ORDERS:
            text, nulls = rest, _NULL_ORDERS[last.upper()]
    direction: Direction = "asc"
    match text.rsplit(None, 1):
        case [rest, last] if last.upper() in ("ASC", "DESC"):
            text, direction = rest, "desc" if last.upper() == "DESC" else "asc"
    return text, direction, nulls or ("nulls-last" if direction == "desc" else "nulls-first")


_NULL_ORDERS: Mapping[str, NullOrder] = {"FIRST": "nulls-first", "LAST": "nulls-last"}


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A transform of a column, and the name its partition field has in a new table."""

    source_id: int
    column: str
    transform: Transform
    field_name: str


def parse_term(text: str, schema: Schema) -> Term:
    """The column, or transform of one, that a term says; raises `InvalidRequestError`."""
    m = _TERM.fullmatch(text.strip())
    if m is None:
        name, source_id = _column(text, schema)
        return Term(
            source_id=source_id, column=name, transform=IdentityTransform(), field_name=name
        )
    function, shown = m["function"].lower(), _shortened(text)
    arguments = [a.strip() for a in _ARGUMENT.findall(m["arguments"])]
    # thousands of digits are no number for Python
    numbers = [
        int(a) if len(a) <= _INT32_DIGITS else MAX_INT32 + 1 for a in arguments if a.isdecimal()
    ]
    columns = [a for a in arguments if not a.isdecimal()]
    if len(columns) != 1:
        raise InvalidRequestError(f"'{shown}': a transform takes one column")
    name, source_id = _column(columns[0], schema)
    if function in ("bucket", "truncate"):
        if len(numbers) != 1 or not 1 <= numbers[0] <= MAX_INT32:
            raise InvalidRequestError(
                f"'{shown}': {function} takes a positive number and a column, as {function}(16, "
                f"id); the number is at most {MAX_INT32}"
            )
        bucket = function == "bucket"
        return Term(
            source_id=source_id,
            column=name,
            transform=BucketTransform(numbers[0]) if bucket else TruncateTransform(numbers[0]),
            field_name=f"{name}_{'bucket' if bucket else 'trunc'}",
        )
    if numbers:
        raise InvalidRequestError(f"'{shown}': {function} takes a column only")
    if function == "identity":
        return Term(
            source_id=source_id, column=name, transform=IdentityTransform(), field_name=name
        )
    if function not in _TIME_TRANSFORMS:
        raise InvalidRequestError(
            f"'{shown}': transform {function} is not known; there are identity, years, months, "
            "days, hours, "
            "bucket(n, column), truncate(n, column)"
        )
    transform, suffix = _TIME_TRANSFORMS[function]
    return Term(
        source_id=source_id, column=name, transform=transform, field_name=f"{name}_{suffix}"
    )


def _column(text: str, schema: Schema) -> tuple[str, int]:
    """Full name and id of the column a term names, in its exact case or any other."""
    wanted = ".".join(parse_levels(text.strip()))
    found = schema.find(wanted, case_sensitive=wanted in schema.id_by_name)
    return schema.name_by_id[found.field_id], found.field_id
