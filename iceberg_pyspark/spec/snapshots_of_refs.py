"""The snapshots of a table, of which only those of branches and tags are loaded at first.

Open API specification of the REST catalog, `loadTable` with `snapshots=refs`. A request for another
snapshot, or for all of them, loads the rest once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

from iceberg_pyspark.spec.snapshots import Snapshot

D = TypeVar("D")


class SnapshotsOfRefs(Sequence[Snapshot]):
    """All snapshots of a table; `loaded` need no load. Threads share it."""

    def __init__(
        self, loaded: Sequence[Snapshot], load: Callable[[], tuple[Snapshot, ...]]
    ) -> None:
        self.loaded = {s.snapshot_id: s for s in loaded}
        self._load = load
        self._lock = threading.Lock()
        self._all: tuple[Snapshot, ...] | None = None

    def all(self) -> tuple[Snapshot, ...]:
        """Every snapshot, as the catalog has them."""
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
        snapshots = self.loaded.values() if self._all is None else self._all
        return f"SnapshotsOfRefs({', '.join(str(s.snapshot_id) for s in snapshots)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # what loads them does not travel
        return tuple, (self.all(),)


class KnownFirst(Mapping[int, Snapshot]):
    """Snapshots by id: those of `loaded`, and from `all_by_id` any other."""

    def __init__(
        self, loaded: Mapping[int, Snapshot], all_by_id: Callable[[], Mapping[int, Snapshot]]
    ) -> None:
        self._loaded = loaded
        self._all_by_id = all_by_id

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        snapshot = self._loaded.get(snapshot_id)
        return self._all_by_id()[snapshot_id] if snapshot is None else snapshot

    @overload
    def get(self, key: int, /) -> Snapshot | None: ...

    @overload
    def get(self, key: int, /, default: Snapshot | D) -> Snapshot | D: ...

    def get(self, key: int, /, default: Any = None) -> Any:
        """A snapshot, or the default."""
        snapshot = self._loaded.get(key)
        return self._all_by_id().get(key, default) if snapshot is None else snapshot

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._loaded or snapshot_id in self._all_by_id()

    def __iter__(self) -> Iterator[int]:
        return iter(self._all_by_id())

    def __len__(self) -> int:
        return len(self._all_by_id())

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self._all_by_id(),)


def _same(by_id: Mapping[int, Snapshot]) -> Mapping[int, Snapshot]:
    return by_id
