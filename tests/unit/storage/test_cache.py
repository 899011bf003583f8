"""The cache of immutable metadata: kept entries, owners, and damaged entries."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from iceberg_pyspark.errors import InvalidRequestError, StorageError
from iceberg_pyspark.storage.files import cache
from iceberg_pyspark.storage.files.cache import MetadataCache, metadata_cache
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO
from iceberg_pyspark.storage.open_storage import RoutingFileIO

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
MANIFEST = f"s3://b/t/metadata/{UUID}-m0.avro"


class Source:
    """The bytes of a remote store, with a count of the fetches."""

    def __init__(self, data: bytes = b"manifest") -> None:
        self.data = data
        self.reads = 0

    def __call__(self, location: str) -> bytes:
        self.reads += 1
        return self.data


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    cache._memory.clear()
    yield
    cache._memory.clear()


@pytest.fixture
def disk(tmp_path: Path) -> MetadataCache:
    return MetadataCache(owner="me", folder=str(tmp_path))


def another_process() -> None:
    cache._memory.clear()


@pytest.mark.parametrize(
    "name",
    [
        f"{UUID}-m0.avro",
        f"snap-12-1-{UUID}.avro",
        f"{UUID}-m0.parquet",
        f"snap-12-1-{UUID}.parquet",
        f"00001-{UUID}.metadata.json",
        f"00001-{UUID}.gz.metadata.json",
        f"00001-{UUID}.metadata.json.gz",
    ],
)
def test_names_that_carry_a_uuid_are_kept(disk: MetadataCache, name: str) -> None:
    source = Source()
    for _ in range(3):
        assert disk.read(f"s3://b/{name}", source) == b"manifest"
    assert source.reads == 1


@pytest.mark.parametrize(
    "name",
    [
        "v3.metadata.json",
        "version-hint.text",
        "snap-12-1.avro",
        f"00000-1-{UUID}-00001.parquet",
        f"00000-1-{UUID}-00001.avro",
        f"{UUID}/v3.metadata.json",
    ],
)
def test_mutable_file_is_not_cached(disk: MetadataCache, name: str, tmp_path: Path) -> None:
    source = Source()
    for _ in range(2):
        disk.read(f"s3://b/{name}", source)
    assert source.reads == 2
    assert os.listdir(tmp_path) == []


def test_another_process_finds_the_entry_on_disk(disk: MetadataCache) -> None:
    source = Source()
    disk.read(MANIFEST, source)
    another_process()
    assert disk.read(MANIFEST, source) == b"manifest"
    assert source.reads == 1


def test_other_credentials_have_other_entries(disk: MetadataCache) -> None:
    source = Source()
    disk.read(MANIFEST, source)
    replace(disk, owner="you").read(MANIFEST, source)
    assert source.reads == 2
    mine = metadata_cache({"s3.access-key-id": "a"})
    yours = metadata_cache({"s3.access-key-id": "b"})
    assert mine is not None
    assert yours is not None
    assert mine.owner != yours.owner
    assert mine.owner != "a"


def test_damaged_cache_entry_is_read_again(disk: MetadataCache, tmp_path: Path) -> None:
    source = Source()
    disk.read(MANIFEST, source)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_bytes()
    damages = [whole[:n] for n in range(len(whole))]
    damages += [whole[:n] + bytes([whole[n] ^ 4]) + whole[n + 1 :] for n in range(len(whole))]
    for reads, damaged in enumerate(damages, start=2):
        another_process()
        entry.write_bytes(damaged)
        assert disk.read(MANIFEST, source) == b"manifest"
        assert source.reads == reads
        assert entry.read_bytes() == whole


def test_a_failed_read_is_not_kept(disk: MetadataCache) -> None:
    def fail(location: str) -> bytes:
        raise StorageError(location)

    with pytest.raises(StorageError):
        disk.read(MANIFEST, fail)
    assert disk.read(MANIFEST, Source()) == b"manifest"


def test_large_entries_are_not_kept(disk: MetadataCache, tmp_path: Path) -> None:
    source = Source(b"x" * 11)
    small = replace(disk, max_entry_bytes=10)
    small.read(MANIFEST, source)
    small.read(MANIFEST, source)
    assert source.reads == 2
    assert os.listdir(tmp_path) == []


def test_memory_drops_the_least_recently_used() -> None:
    memory = MetadataCache(owner="me", folder=os.devnull, max_total_bytes=25)
    sources = [Source(b"x" * 10) for _ in range(3)]
    locations = [f"s3://b/{UUID}-m{n}.avro" for n in range(3)]
    memory.read(locations[0], sources[0])
    memory.read(locations[1], sources[1])
    memory.read(locations[0], sources[0])
    memory.read(locations[2], sources[2])
    memory.read(locations[0], sources[0])
    memory.read(locations[1], sources[1])
    assert [s.reads for s in sources] == [1, 2, 1]


def test_the_folder_is_kept_within_its_bound(disk: MetadataCache, tmp_path: Path) -> None:
    bounded = replace(disk, max_disk_bytes=5_000)
    for n in range(200):
        bounded.read(f"s3://b/{UUID}-m{n}.avro", Source(b"x" * 1_000))
    size = sum(f.stat().st_size for f in tmp_path.iterdir())
    # Up to 32 entries are added between two evictions.
    assert size <= 5_000 + 33 * 1_008


def test_unwritable_cache_folder_is_ignored() -> None:
    nowhere = MetadataCache(owner="me", folder="/nonexistent/folder")
    assert nowhere.read(MANIFEST, Source()) == b"manifest"


def test_the_user_s_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    MetadataCache(owner="me").read(MANIFEST, Source())
    folder = tmp_path / "cache" / "iceberg-pyspark"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(os.listdir(folder)) == 1


@pytest.mark.parametrize("trap", ["open to others", "a link"])
def test_a_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if trap == "a link":
        (tmp_path / "iceberg-pyspark").symlink_to(elsewhere)
    else:
        (tmp_path / "iceberg-pyspark").mkdir()
        (tmp_path / "iceberg-pyspark").chmod(0o777)
    MetadataCache(owner="me").read(MANIFEST, Source())
    assert os.listdir(elsewhere) == []
    assert os.listdir(tmp_path / "iceberg-pyspark") == []
    assert len(os.listdir(tmp_path / "tmp" / f"iceberg-pyspark-{os.getuid()}")) == 1


def test_properties_bound_it_or_switch_it_off() -> None:
    assert metadata_cache({"io.manifest.cache-enabled": "false"}) is None
    bounded = metadata_cache(
        {"io.manifest.cache.max-total-bytes": "5", "io.manifest.cache.max-content-length": "6"}
    )
    assert bounded is not None
    assert (bounded.max_total_bytes, bounded.max_entry_bytes) == (5, 6)
    with pytest.raises(InvalidRequestError, match="lots"):
        metadata_cache({"io.manifest.cache.max-total-bytes": "lots"})


def test_cache_pickles(disk: MetadataCache) -> None:
    assert pickle.loads(pickle.dumps(disk)) == disk


def test_remote_files_are_cached_and_local_ones_are_not(disk: MetadataCache) -> None:
    io = RoutingFileIO(
        local=MemoryFileIO(), objects=MemoryFileIO(), remote=MemoryFileIO(), remote_cache=disk
    )
    for place in ("s3://b", "/wh"):
        io.write_bytes(f"{place}/{UUID}-m0.avro", b"one")
        io.read_bytes(f"{place}/{UUID}-m0.avro")
        io.write_bytes(f"{place}/{UUID}-m0.avro", b"two")
    assert io.read_bytes(f"s3://b/{UUID}-m0.avro") == b"one"
    assert io.read_bytes(f"/wh/{UUID}-m0.avro") == b"two"
