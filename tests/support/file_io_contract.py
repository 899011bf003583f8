"""Tests that every store must pass; each store runs them by a subclass."""

from __future__ import annotations

import uuid

import pytest

from iceberg_pyspark.errors import FileAlreadyExistsError, FileNotWrittenError, StorageError
from iceberg_pyspark.storage.files.file_io import FileIO, delete_files
from tests.support.threads import at_once

ODD_NAMES = (
    "a b",
    "a%20b",
    "p=%2F",
    "100%",
    "ä-日本-🧊",
    "e\u0301",
    "q'uote\"",
    "star*[x]?",
    "a#b?c=d",
    "semi;colon&and=eq",
    "back\\slash",
    "new\nline",
    "-dash",
    "~tilde",
    "$HOME",
    "{brace}",
)
ALIKE_NAMES = ("a+b", "a%2Bb", "A B", "a  b", "a b ", "<a&amp;b>", "<a&b>", "c/d", "c%2Fd")


class FileIOContract:
    """The contract of `FileIO`; subclasses give two fixtures, `store` and an empty `folder` in it.

    `refused_names` lists names that the store reports it cannot serve.
    """

    refused_names: tuple[str, ...] = ()
    creates_exclusively = True
    """Whether the store lets one of several writers create a name."""

    def put(self, store: FileIO, location: str, data: bytes) -> None:
        """Create a file that no other writer creates."""
        if self.creates_exclusively:
            store.create_exclusive(location, data)
            return
        with store.open_output(location) as stream:
            stream.write(data)

    def test_a_written_file_reads_back(self, store: FileIO, folder: str) -> None:
        with store.open_output(f"{folder}/f") as stream:
            stream.write(b"hello ")
            stream.write(b"world")
        assert store.read_bytes(f"{folder}/f") == b"hello world"
        assert store.size(f"{folder}/f") == 11
        assert store.exists(f"{folder}/f")

    def test_an_empty_file_reads_back(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/f", b"")
        assert store.read_bytes(f"{folder}/f") == b""
        assert store.size(f"{folder}/f") == 0
        assert store.read_range(f"{folder}/f", 0, 0) == b""

    def test_a_large_file_reads_back(self, store: FileIO, folder: str) -> None:
        data = bytes(range(256)) * 40_000
        with store.open_output(f"{folder}/f") as stream:
            for start in range(0, len(data), 777_777):
                stream.write(data[start : start + 777_777])
        assert store.read_bytes(f"{folder}/f") == data
        assert store.read_range(f"{folder}/f", 5_000_001, 3) == data[5_000_001:5_000_004]

    def test_an_input_stream_seeks(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/f", b"0123456789")
        with store.open_input(f"{folder}/f") as stream:
            assert stream.seek(-3, 2) == 7
            assert stream.read() == b"789"
            stream.seek(2)
            assert stream.read(2) == b"23"
            assert stream.tell() == 4
            assert stream.read() == b"456789"
            assert stream.read() == b""
        assert stream.closed

    def test_two_input_streams_have_their_own_positions(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/f", b"0123456789")
        with store.open_input(f"{folder}/f") as one, store.open_input(f"{folder}/f") as two:
            assert one.read(5) == b"01234"
            assert two.read(5) == b"01234"
            assert one.read(1) == b"5"

    def test_a_range_is_exact(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/f", b"0123456789")
        assert store.read_range(f"{folder}/f", 0, 10) == b"0123456789"
        assert store.read_range(f"{folder}/f", 9, 1) == b"9"

    @pytest.mark.parametrize(
        ("offset", "length"), [(8, 3), (11, 1), (-1, 1), (0, -1), (0, 2**62), (2**62, 1)]
    )
    def test_a_range_outside_the_file_is_an_error(
        self, store: FileIO, folder: str, offset: int, length: int
    ) -> None:
        self.put(store, f"{folder}/f", b"0123456789")
        with pytest.raises(StorageError, match="/f"):
            store.read_range(f"{folder}/f", offset, length)

    def test_a_missing_file_is_an_error_that_names_it(self, store: FileIO, folder: str) -> None:
        for read in (store.open_input, store.read_bytes, store.size):
            with pytest.raises(StorageError, match="gone"):
                read(f"{folder}/gone")
        with pytest.raises(StorageError, match="gone"):
            store.read_range(f"{folder}/gone", 0, 1)
        assert not store.exists(f"{folder}/gone")

    def test_a_folder_is_not_a_file(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/sub/f", b"x")
        assert not store.exists(f"{folder}/sub")
        with pytest.raises(StorageError):
            store.size(f"{folder}/sub")
        with pytest.raises(StorageError):
            store.read_bytes(f"{folder}/sub")

    def test_create_exclusive_refuses_a_taken_name(self, store: FileIO, folder: str) -> None:
        own = f"{folder}/00001-{uuid.uuid4()}.metadata.json"
        store.create_exclusive(own, b"own name")
        assert store.read_bytes(own) == b"own name"
        store.delete(own)
        if not self.creates_exclusively:
            with pytest.raises(FileNotWrittenError, match="cannot create a file exclusively"):
                store.create_exclusive(f"{folder}/f", b"new")
            assert not store.exists(f"{folder}/f")
            return
        store.create_exclusive(f"{folder}/f", b"old")
        with pytest.raises(FileAlreadyExistsError, match="/f"):
            store.create_exclusive(f"{folder}/f", b"new")
        assert store.read_bytes(f"{folder}/f") == b"old"
        assert [f.location for f in store.list_files(folder)] == [f"{folder}/f"]

    def test_open_output_refuses_a_taken_name(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/f", b"old")
        with pytest.raises(FileAlreadyExistsError, match="/f"):
            store.open_output(f"{folder}/f")
        assert store.read_bytes(f"{folder}/f") == b"old"

    def test_of_racing_threads_one_creates(self, store: FileIO, folder: str) -> None:
        def create(number: int) -> bool:
            try:
                store.create_exclusive(f"{folder}/v1", f"{number}".encode())
            except FileAlreadyExistsError:
                return False
            return True

        if not self.creates_exclusively:
            with pytest.raises(FileNotWrittenError):
                create(0)
            return
        created = at_once(8, create)
        assert created.count(True) == 1
        assert store.read_bytes(f"{folder}/v1") == f"{created.index(True)}".encode()

    def test_write_bytes_replaces(self, store: FileIO, folder: str) -> None:
        store.write_bytes(f"{folder}/deep/hint", b"1")
        store.write_bytes(f"{folder}/deep/hint", b"22")
        assert store.read_bytes(f"{folder}/deep/hint") == b"22"

    def test_file_can_be_deleted_twice(self, store: FileIO, folder: str) -> None:
        self.put(store, f"{folder}/f", b"x")
        store.delete(f"{folder}/f")
        store.delete(f"{folder}/f")
        assert not store.exists(f"{folder}/f")
        self.put(store, f"{folder}/f", b"again")

    def test_many_files_are_deleted_and_no_other(self, store: FileIO, folder: str) -> None:
        """Every second file is deleted, among names that a store could mistake for each other."""
        names = [n for n in (*ODD_NAMES, *ALIKE_NAMES) if n not in self.refused_names]
        locations = [f"{folder}/t/{name}" for name in names]
        for location in locations:
            self.put(store, location, b"x")
        for start in (0, 1):
            deleted = [*locations[start::2], f"{folder}/t/missing", locations[start]]
            refused = [f"{folder}/t/{name}" for name in self.refused_names]
            failures = delete_files(store, deleted + refused)
            assert sorted(failures) == sorted(refused)
            remaining = locations[1::2] if start == 0 else []
            assert sorted(f.location for f in store.list_files(folder)) == sorted(remaining)
        assert delete_files(store, []) == {}

    def test_listing_is_recursive_and_keeps_to_the_folder(self, store: FileIO, folder: str) -> None:
        for name in ("t/a", "t/b/c", "t/b/d/e", "t2/x", "tail"):
            self.put(store, f"{folder}/{name}", name.encode())
        expected = {f"{folder}/t/a": 3, f"{folder}/t/b/c": 5, f"{folder}/t/b/d/e": 7}
        assert {f.location: f.size for f in store.list_files(f"{folder}/t")} == expected
        assert {f.location: f.size for f in store.list_files(f"{folder}/t/")} == expected

    def test_listing_a_missing_folder_is_empty(self, store: FileIO, folder: str) -> None:
        assert list(store.list_files(f"{folder}/nothing")) == []

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_names_round_trip(self, store: FileIO, folder: str, name: str) -> None:
        location = f"{folder}/{name}/{name}"
        if name in self.refused_names:
            for act in (store.read_bytes, store.exists, store.open_output, store.delete):
                with pytest.raises(StorageError, match="a control character are"):
                    act(location)
            return
        self.put(store, location, name.encode())
        assert store.read_bytes(location) == name.encode()
        assert store.exists(location)
        assert [f.location for f in store.list_files(folder)] == [location]
        store.delete(location)
        assert not store.exists(location)

    def test_odd_names_do_not_collide(self, store: FileIO, folder: str) -> None:
        names = ("a b", "a%20b", "a+b", "a%2Fb", "A B")
        for name in names:
            self.put(store, f"{folder}/{name}", name.encode())
        for name in names:
            assert store.read_bytes(f"{folder}/{name}") == name.encode()
