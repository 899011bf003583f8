"""The bounding boxes of geometries: of WKB values, in the bounds of files, and whether two meet.

Specification, "Bounds for Variant, Geometry, and Geography" and Appendix G. WKB is ISO's: the type
of a geometry with Z, M or both has 1000, 2000 or 3000 added.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from iceberg_pyspark.errors import InvalidMetadataError

_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_DIMENSIONS = {0: (0, 1), 1: (0, 1, 2), 2: (0, 1, 3), 3: (0, 1, 2, 3)}
_MAX_DEPTH = 50
_X, _Y, _Z, _M = range(4)


@dataclass(slots=True)
class BoundingBox:
    """The least and greatest X, Y, Z and M; a dimension without values has an infinite range."""

    lower: list[float] = field(default_factory=lambda: [math.inf] * 4)
    upper: list[float] = field(default_factory=lambda: [-math.inf] * 4)

    def has(self, dimension: int) -> bool:
        """Return whether the box has values of a dimension, 0 to 3."""
        return self.lower[dimension] <= self.upper[dimension]

    def add(self, dimension: int, values: Sequence[float]) -> None:
        """Extend the box by values of a dimension; NaN is skipped."""
        for value in values:
            if value < self.lower[dimension]:
                self.lower[dimension] = value
            if value > self.upper[dimension]:
                self.upper[dimension] = value

    def add_wkb(self, wkb: bytes) -> None:
        """Extend the box by a geometry; raise `ValueError` if the bytes are no WKB."""
        try:
            end = self._add(wkb, 0, 0)
        except (struct.error, IndexError) as e:
            raise ValueError(f"it is cut short: {e}") from e
        if end != len(wkb):
            raise ValueError("bytes follow the geometry")

    def _add(self, wkb: bytes, at: int, depth: int) -> int:
        if depth > _MAX_DEPTH:
            raise ValueError("collections nest too deep")
        if wkb[at] > 1:
            raise ValueError(f"the byte order {wkb[at]} is neither 0 nor 1")
        order = "<" if wkb[at] else ">"
        (code,) = struct.unpack_from(order + "I", wkb, at + 1)
        at += 5
        layout, kind = divmod(code, 1000)
        dimensions = _DIMENSIONS.get(layout)
        if dimensions is None or not _POINT <= kind <= _COLLECTION:
            raise ValueError(f"the type {code} is not one of WKB")
        if kind == _POINT:
            return self._add_points(wkb, at, 1, dimensions, order)
        (count,) = struct.unpack_from(order + "I", wkb, at)
        at += 4
        if kind == _LINE:
            return self._add_points(wkb, at, count, dimensions, order)
        for _ in range(count):
            if kind == _POLYGON:
                (points,) = struct.unpack_from(order + "I", wkb, at)
                at = self._add_points(wkb, at + 4, points, dimensions, order)
            else:
                at = self._add(wkb, at, depth + 1)
        return at

    def _add_points(
        self, wkb: bytes, at: int, count: int, dimensions: Sequence[int], order: str
    ) -> int:
        width = len(dimensions)
        end = at + count * width * 8
        if end > len(wkb):
            raise ValueError("it is cut short")
        numbers = struct.unpack_from(f"{order}{count * width}d", wkb, at)
        for i, dimension in enumerate(dimensions):
            self.add(dimension, numbers[i::width])
        return end

    def bounds(self) -> tuple[bytes, bytes] | None:
        """Return the lower and upper bound of a file; None without a range of X and Y."""
        if not self.has(_X) or not self.has(_Y):
            return None
        return self._corner(self.lower), self._corner(self.upper)

    def _corner(self, corner: Sequence[float]) -> bytes:
        coordinates = [corner[_X], corner[_Y]]
        if self.has(_Z) or self.has(_M):
            coordinates.append(corner[_Z] if self.has(_Z) else math.nan)
        if self.has(_M):
            coordinates.append(corner[_M])
        return struct.pack(f"<{len(coordinates)}d", *coordinates)

    def meets(self, other: BoundingBox) -> bool:
        """Return whether the boxes share a point of the plane of X and Y, edges included."""
        return all(
            self.lower[d] <= other.upper[d] and other.lower[d] <= self.upper[d] for d in (_X, _Y)
        )


def box_of_bounds(lower: bytes, upper: bytes) -> BoundingBox | None:
    """Return the X and Y of a file's bounds, or None if they are not such bounds."""
    if len(lower) < 16 or len(upper) < 16 or len(lower) % 8 or len(upper) % 8:
        return None
    low, high = struct.unpack_from("<2d", lower), struct.unpack_from("<2d", upper)
    box = BoundingBox([*low, math.inf, math.inf], [*high, -math.inf, -math.inf])
    return box if box.has(_X) and box.has(_Y) else None


Corners = tuple[float, float, float, float]
"""The least X, the least Y, the greatest X and the greatest Y of a box."""


def _box(corners: Corners) -> BoundingBox:
    return BoundingBox([*corners[:2], math.inf, math.inf], [*corners[2:], -math.inf, -math.inf])


def wkb_meets(wkb: bytes, corners: Corners) -> bool:
    """Return whether the box of a geometry and another one share a point, edges included.

    An empty geometry meets nothing. Raise `InvalidMetadataError` if the bytes are no WKB.
    """
    box = BoundingBox()
    try:
        box.add_wkb(wkb)
    except ValueError as e:
        raise InvalidMetadataError(f"a geometry is not WKB: {e}; correct the rows") from e
    return box.meets(_box(corners))


def bounds_may_meet(lower: bytes | None, upper: bytes | None, corners: Corners) -> bool:
    """Return whether a geometry in a file with these bounds may meet a box."""
    if lower is None or upper is None:
        return True
    box = box_of_bounds(lower, upper)
    return box is None or box.meets(_box(corners))
