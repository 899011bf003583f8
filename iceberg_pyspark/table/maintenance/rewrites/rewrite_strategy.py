"""Determines the order of rows in a rewrite of data files: unchanged, sorted, or along a curve.

`strategy` and `sort_order` are those of the JVM connector's procedure; `hilbert(...)` is an
addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from iceberg_pyspark.arrow.write.row_order import CURVES, AlongCurve, Curve, RowOrder, SortedBy
from iceberg_pyspark.changes.compatibility import check_sort_order
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.sorting import UNSORTED, SortOrder, partition_sort_fields
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.transforms import IdentityTransform, VoidTransform
from iceberg_pyspark.sql_text.ddl import parse_sort_order
from iceberg_pyspark.sql_text.lazy_parser import ClauseToken, term_tokens

_PROCEDURE = "rewrite_data_files"
_MAX_COLUMNS = 16
SORT_OPTIONS = ("compression-factor", "shuffle-partitions-per-file")
"""Options of the JVM connector for Spark's sort; here they have no effect."""
CURVE_OPTIONS = (*SORT_OPTIONS, "max-output-size", "var-length-contribution")


@dataclass(frozen=True, kw_only=True)
class RewriteStrategy:
    """The order of the rows, None if unchanged; `sort_order` is the sort order of the new files.

    `options_without_effect` are options that Java accepts with this strategy and that are ignored.
    """

    order: RowOrder | None = None
    sort_order: SortOrder = UNSORTED
    options_without_effect: tuple[str, ...] = ()

    @staticmethod
    def of(
        strategy: str | None,
        sort_order: str | None,
        metadata: TableMetadata,
        table: str,
        *,
        case_sensitive: bool | None = None,
    ) -> RewriteStrategy:
        """Return the strategy in a procedure's arguments; raise `InvalidRequestError`.

        Names in `sort_order` are found as `Schema.find` does.
        """
        parse_order = partial(
            parse_sort_order, schema=metadata.current_schema, case_sensitive=case_sensitive
        )
        name = (strategy or ("binpack" if sort_order is None else "sort")).lower()
        if name not in ("binpack", "sort"):
            raise InvalidRequestError(
                f"{_PROCEDURE}: there is no strategy '{strategy}'; use binpack or sort (a curve is "
                "strategy sort with sort_order zorder(...) or hilbert(...))"
            )
        if name == "binpack":
            if sort_order is not None:
                raise InvalidRequestError(
                    f"{_PROCEDURE}: sort_order requires strategy sort, because binpack does not "
                    "sort rows"
                )
            return RewriteStrategy()
        if sort_order is None:
            order = metadata.default_sort_order
            if not order.fields:
                raise InvalidRequestError(
                    f"{_PROCEDURE}: table {table} has no sort order; give one with sort_order, or "
                    f"set one with ALTER TABLE {table} WRITE ORDERED BY ..."
                )
            return _sorted_by(order, metadata)
        terms = _terms(sort_order)
        curves = [c for c in CURVES if any(_is_call(t, c) for t in terms)]
        if not curves:
            return _sorted_by(parse_order(_texts(sort_order, terms)), metadata)
        if len(terms) > 1:
            raise InvalidRequestError(
                f"{_PROCEDURE}: sort_order '{sort_order}' has a curve among other terms; a curve "
                "must be the only term"
            )
        columns = _texts(sort_order, _arguments(terms[0]))
        return _along(curves[0], columns, parse_order(columns), metadata)


def _sorted_by(order: SortOrder, metadata: TableMetadata) -> RewriteStrategy:
    check_sort_order(order, metadata.current_schema)
    equal_order = next((o for o in metadata.sort_orders if o.fields == order.fields), UNSORTED)
    fields = tuple(f for f in order.fields if not isinstance(f.transform, VoidTransform))
    return RewriteStrategy(
        order=SortedBy(schema=metadata.current_schema, fields=fields) if fields else None,
        sort_order=equal_order,
        options_without_effect=SORT_OPTIONS,
    )


def _along(
    curve: Curve, columns: Sequence[str], order: SortOrder, metadata: TableMetadata
) -> RewriteStrategy:
    check_sort_order(order, metadata.current_schema)
    for text, f in zip(columns, order.fields, strict=True):
        if not isinstance(f.transform, IdentityTransform) or f.direction == "desc":
            raise InvalidRequestError(f"{_PROCEDURE}: {curve} takes columns, not '{text}'")
    # an identity partition column is constant in each partition, so it does not order rows
    constant = {
        f.source_id
        for f in metadata.default_spec.fields
        if isinstance(f.transform, IdentityTransform)
    }
    source_ids = tuple(
        dict.fromkeys(f.source_id for f in order.fields if f.source_id not in constant)
    )
    if not 1 <= len(source_ids) <= _MAX_COLUMNS:
        raise InvalidRequestError(
            f"{_PROCEDURE}: {curve} needs 1 to {_MAX_COLUMNS} columns that are not identity "
            f"partition columns, not {len(source_ids)}"
        )
    return RewriteStrategy(
        order=AlongCurve(schema=metadata.current_schema, source_ids=source_ids, curve=curve),
        options_without_effect=CURVE_OPTIONS,
    )


def partition_first(order: RowOrder, spec: PartitionSpec) -> RowOrder:
    """Return the order for rows of several partitions, which are written one after the other."""
    if not isinstance(order, SortedBy):
        return order
    return SortedBy(schema=order.schema, fields=(*partition_sort_fields(spec), *order.fields))


def _terms(text: str) -> list[list[ClauseToken]]:
    """Return the tokens of each term of a list."""
    return _split(term_tokens(text))


def _split(tokens: Sequence[ClauseToken]) -> list[list[ClauseToken]]:
    """Split tokens at the commas outside brackets."""
    terms: list[list[ClauseToken]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            terms.append([])
        else:
            terms[-1].append(token)
    return terms


def _texts(text: str, terms: Sequence[Sequence[ClauseToken]]) -> list[str]:
    return [text[t[0].start : t[-1].end] if t else "" for t in terms]


def _is_call(term: Sequence[ClauseToken], name: str) -> bool:
    return len(term) > 1 and term[0].word == name.upper() and term[1].text == "("


def _arguments(call: Sequence[ClauseToken]) -> list[list[ClauseToken]]:
    if call[-1].text != ")":
        raise InvalidRequestError(
            f"{_PROCEDURE}: sort_order has '{call[-1].text}' after {call[0].text}(...); leave it "
            "out"
        )
    return _split(call[2:-1])
