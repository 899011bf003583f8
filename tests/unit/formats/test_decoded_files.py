from iceberg_pyspark.formats.encoding.decoded_files import DecodedCache
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO


class Reads:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bytes:
        self.count += 1
        return b"x" * 10


def test_values_are_kept_until_the_limit_and_the_oldest_leave_first() -> None:
    cache: DecodedCache[bytes] = DecodedCache(20, len)
    io, read = MemoryFileIO(), Reads()
    for key in ("a", "b", "a", "c", "a"):
        cache.get_or_read(io, key, read)
    assert read.count == 3
    cache.get_or_read(io, "b", read)
    assert read.count == 4


def test_values_beyond_the_limit_are_not_kept() -> None:
    cache: DecodedCache[bytes] = DecodedCache(9, len)
    read = Reads()
    for _ in range(2):
        assert cache.get_or_read(MemoryFileIO(), "a", read) == b"x" * 10
    assert read.count == 2


def test_another_store_reads_for_itself() -> None:
    cache: DecodedCache[bytes] = DecodedCache(15, len)
    one, other, read = MemoryFileIO(), MemoryFileIO(), Reads()
    cache.get_or_read(one, "a", read)
    cache.get_or_read(other, "a", read)
    cache.get_or_read(other, "a", read)
    assert read.count == 2
