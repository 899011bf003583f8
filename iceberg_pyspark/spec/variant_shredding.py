"""Chooses which parts of a column's variants are stored in typed columns of their own.

Parquet specification, "Variant Shredding". The choice is left to the writer, and this one is
Java's: from the first values of a file, a part gets a column if all its values there have one type,
or are integers or decimals of several widths. A field of fewer than a tenth of the values gets
none, and a group has at most 300. Unlike in Java, a column takes narrower numbers too, and is as
wide as the numbers at hand need, whether they are among the first values or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from iceberg_pyspark.spec import variant_encoding as encoding
from iceberg_pyspark.spec.variant_encoding import (
    ARRAY,
    OBJECT,
    FieldNames,
    array_elements,
    object_fields,
    stored_value,
    type_of,
)

_INTEGERS = (encoding.INT8, encoding.INT16, encoding.INT32, encoding.INT64)
_DECIMALS = (encoding.DECIMAL4, encoding.DECIMAL8, encoding.DECIMAL16)
_NUMBERS = {*_INTEGERS, *_DECIMALS}
_LEAST_SHARE = 0.1
_MOST_FIELDS = 300
_MOST_SEEN_FIELDS = 1000
_MOST_LEVELS = 50
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A typed column of primitive values; only decimals have a precision and a scale."""

    type_id: int
    precision: int = 0
    scale: int = 0

    def takes(self, value: bytes) -> bool:
        """Return whether the column holds the encoded value without loss."""
        type_id = type_of(value)
        if self.type_id in _INTEGERS:
            return type_id in _INTEGERS and type_id <= self.type_id
        if self.type_id not in _DECIMALS:
            return type_id == self.type_id
        if type_id not in _DECIMALS:
            return False
        digits, scale = _digits(value)
        return scale <= self.scale and digits - scale <= self.precision - self.scale


@dataclass(frozen=True, slots=True)
class TypedObject:
    """A group of typed fields, in the order of their names."""

    fields: Mapping[str, Shredding]


@dataclass(frozen=True, slots=True)
class TypedArray:
    """A list of typed elements."""

    element: Shredding


Shredding: TypeAlias = TypedValue | TypedObject | TypedArray


def shredding_of(
    first: Iterable[tuple[FieldNames, bytes]], others: Iterable[tuple[FieldNames, bytes]] = ()
) -> Shredding | None:
    """Return how variants are shredded, to judge by the first; None: they are stored whole.

    The other variants at hand only widen columns of numbers. Errors of Python are raised for
    damaged bytes.
    """
    root = _Seen()
    for names, value in first:
        root.add(value, names, _MOST_LEVELS)
    if root.shredding(root.count) is not None:
        for names, value in others:
            root.widen(value, names)
    return root.shredding(root.count)


@dataclass(slots=True)
class _Seen:
    """What is known of the values at one place in the variants; nulls are not counted."""

    count: int = 0
    types: set[int] = field(default_factory=set)
    integer_digits: int = 0
    scale: int = 0
    fields: dict[str, _Seen] = field(default_factory=dict)
    elements: _Seen | None = None

    def add(self, value: bytes, names: FieldNames, levels: int) -> None:
        type_id = type_of(value)
        if type_id == encoding.NULL_:
            return
        self.count += 1
        self._add_type(type_id, value)
        if type_id == OBJECT and levels:
            for name, inner in object_fields(value, names):
                seen = self.fields.get(name.decode())
                if seen is None:
                    if len(self.fields) >= _MOST_SEEN_FIELDS:
                        continue
                    seen = self.fields[name.decode()] = _Seen()
                seen.add(inner, names, levels - 1)
        elif type_id == ARRAY and levels:
            self.elements = self.elements or _Seen()
            for element in array_elements(value):
                self.elements.add(element, names, levels - 1)

    def _add_type(self, type_id: int, value: bytes) -> None:
        self.types.add(type_id)
        if type_id in _DECIMALS:
            digits, scale = _digits(value)
            self.integer_digits = max(self.integer_digits, digits - scale)
            self.scale = max(self.scale, scale)

    def widen(self, value: bytes, names: FieldNames) -> None:
        """Take over the width of numbers where all values so far are such numbers."""
        type_id = type_of(value)
        if type_id in _NUMBERS:
            if self.types and _are_in({type_id, *self.types}, _INTEGERS, _DECIMALS):
                self._add_type(type_id, value)
        elif self.types != {type_id}:
            return
        elif type_id == OBJECT:
            for name, inner in object_fields(value, names):
                if (seen := self.fields.get(name.decode())) is not None:
                    seen.widen(inner, names)
        elif type_id == ARRAY and self.elements is not None:
            for element in array_elements(value):
                self.elements.widen(element, names)

    def shredding(self, total: int) -> Shredding | None:
        """Return the shredding of these values of `total` variants; None for whole values."""
        types = sorted(self.types)
        if not types or not (len(types) == 1 or _are_in(types, _INTEGERS, _DECIMALS)):
            return None
        type_id = types[-1]
        if type_id == OBJECT:
            return self._object(total)
        if type_id == ARRAY:
            element = None if self.elements is None else self.elements.shredding(total)
            return None if element is None else TypedArray(element)
        if type_id in _DECIMALS:
            scale = min(self.scale, _MOST_DIGITS - min(self.integer_digits, _MOST_DIGITS))
            precision = min(self.integer_digits + self.scale, _MOST_DIGITS)
            return TypedValue(type_id, precision, scale)
        return TypedValue(type_id) if type_id <= encoding.UUID_ else None

    def _object(self, total: int) -> Shredding | None:
        # Java compares texts by their code units
        names = sorted(self.fields, key=lambda name: name.encode("utf-16-be"))
        frequent = [n for n in names if self.fields[n].count / total >= _LEAST_SHARE]
        kept = set(sorted(frequent, key=lambda n: -self.fields[n].count)[:_MOST_FIELDS])
        shredded = ((n, self.fields[n].shredding(total)) for n in frequent if n in kept)
        fields = {n: s for n, s in shredded if s is not None}
        return TypedObject(fields) if fields else None


def _are_in(types: Iterable[int], *families: tuple[int, ...]) -> bool:
    return any(set(types) <= set(family) for family in families)


def _digits(value: bytes) -> tuple[int, int]:
    """Return the number of digits of an encoded decimal, and its scale."""
    _, digits, exponent = stored_value(value).as_tuple()
    return len(digits), -int(exponent)
