"""The `FileIO` contract for every store that needs no service."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from iceberg_pyspark.storage.files.file_io import FileIO
from iceberg_pyspark.storage.files.local import LocalFileIO
from iceberg_pyspark.storage.files.memory_files import MemoryFileIO, open_process_memory
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.own_folders import OwnFolders
from iceberg_pyspark.storage.restricted_io import RestrictedFileIO
from tests.support.file_io_contract import FileIOContract


class TestMemory(FileIOContract):
    @pytest.fixture
    def store(self) -> FileIO:
        return MemoryFileIO()

    @pytest.fixture
    def folder(self) -> str:
        return "mem:/t"


class TestLocalPath(FileIOContract):
    @pytest.fixture
    def store(self) -> FileIO:
        return LocalFileIO()

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(tmp_path / "t")


class TestLocalUri(TestLocalPath):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return f"file:{tmp_path}/t"


class TestLocalUriWithEmptyHost(TestLocalPath):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/t"


class TestRoutedToMemory(FileIOContract):
    @pytest.fixture
    def store(self, folder: str) -> FileIO:
        open_process_memory(folder)
        return open_storage(folder, {})

    @pytest.fixture
    def folder(self) -> str:
        return f"memory://{uuid.uuid4()}/t"


class TestRestricted(TestLocalPath):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileIO:
        inside = open_storage(str(tmp_path), {})
        folder = str(tmp_path)
        return RestrictedFileIO(
            io=inside,
            known_location=folder,
            folders=(folder,),
            hint="table db.t",
            own=OwnFolders((folder,)),
        )
