"""The snapshots of a table whose metadata was loaded with the snapshots of branches and tags only.

Open API specification of the REST catalog, `loadTable` with `snapshots=refs`. The first access to
another snapshot, or to all snapshots, loads the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from iceberg_pyspark.spec.snapshots import Snapshot

D = TypeVar("D")


class SnapshotsOfRefs(Sequence[Snapshot]):
    """All snapshots of a table; `loaded_snapshots` are available without a load. Thread-safe."""

    def __init__(
        self, loaded_snapshots: Sequence[Snapshot], load: Callable[[], tuple[Snapshot, ...]]
    ) -> None:
        self.loaded_by_id = {s.snapshot_id: s for s in loaded_snapshots}
        self._load = load
        self._lock = threading.Lock()
        self._all: tuple[Snapshot, ...] | None = None

    def all(self) -> tuple[Snapshot, ...]:
        """Return every snapshot in the catalog's order; the first call loads them."""
        with self._lock:
            if self._all is None:
                self._all = self._load()
            return self._all

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Snapshot]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | Sequence[Snapshot]:
        return self.all()[index]

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())

    def __eq__(self, other: object) -> bool:
        return self.all() == (other.all() if isinstance(other, SnapshotsOfRefs) else other)

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        snapshots = self.loaded_by_id.values() if self._all is None else self._all
        return f"SnapshotsOfRefs({', '.join(str(s.snapshot_id) for s in snapshots)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # the load function cannot be pickled, so a plain tuple of all snapshots is
        return tuple, (self.all(),)


class KnownFirst(Mapping[int, Snapshot]):
    """Snapshots by id: from `loaded_by_id`, or else from `all_by_id()`, which may load."""

    def __init__(
        self,
        loaded_by_id: Mapping[int, Snapshot],
        all_by_id: Callable[[], Mapping[int, Snapshot]],
    ) -> None:
        self._loaded_by_id = loaded_by_id
        self._all_by_id = all_by_id

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        snapshot = self._loaded_by_id.get(snapshot_id)
        return self._all_by_id()[snapshot_id] if snapshot is None else snapshot

    @overload
    def get(self, key: int, /) -> Snapshot | None: ...

    @overload
    def get(self, key: int, /, default: Snapshot | D) -> Snapshot | D: ...

    def get(self, key: int, /, default: Any = None) -> Any:
        """Return the snapshot with the id, or the default."""
        snapshot = self._loaded_by_id.get(key)
        return self._all_by_id().get(key, default) if snapshot is None else snapshot

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._loaded_by_id or snapshot_id in self._all_by_id()

    def __iter__(self) -> Iterator[int]:
        return iter(self._all_by_id())

    def __len__(self) -> int:
        return len(self._all_by_id())

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self._all_by_id(),)


def _same(by_id: Mapping[int, Snapshot]) -> Mapping[int, Snapshot]:
    return by_id
