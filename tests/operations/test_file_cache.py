"""The cache of files: its bound, its readers, its failures, and the next process."""

import asyncio
import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import pytest

from horai.operations.file_cache import CachedFile, CacheFull, FileCache, StillFetching

SIZE = 1000
LONG = 10.0


def content(number: int) -> bytes:
    return bytes([number]) * SIZE


def wanted(number: int) -> CachedFile:
    return CachedFile(f"path-{number}", SIZE, hashlib.sha256(content(number)).hexdigest())


class Source:
    """A slow place that files come from."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: OSError | None = None
        self.lies = False

    async def fetch(self, file: CachedFile, to: BinaryIO) -> str:
        self.fetched.append(file.path)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        data = content(int(file.path[5:]) + self.lies)
        to.write(data)
        return hashlib.sha256(data).hexdigest()


async def read(cache: FileCache, *numbers: int) -> list[bytes]:
    async with cache.held([wanted(number) for number in numbers], LONG) as places:
        return [place.read_bytes() for place in places]


def files(root: Path) -> list[Path]:
    return [place for place in root.rglob("*") if place.is_file() and place.name != ".lock"]


async def test_a_file_is_fetched_once_and_only_this_user_can_read_it(tmp_path: Path) -> None:
    source, root = Source(), tmp_path / "cache"
    cache = FileCache(root, 10 * SIZE, source.fetch)

    both = await asyncio.gather(read(cache, 1, 2), read(cache, 2, 1))

    assert both == [[content(1), content(2)], [content(2), content(1)]]
    assert sorted(source.fetched) == ["path-1", "path-2"]
    assert {place.stat().st_mode & 0o777 for place in files(root)} == {0o600}
    assert {place.stat().st_mode & 0o777 for place in (root, cache.directory)} == {0o700}
    await cache.close()


async def test_a_directory_that_others_can_enter_is_not_used_and_the_one_above_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    cache = FileCache(tmp_path, 10 * SIZE, Source().fetch)
    place = cache.directory
    await cache.close()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    place.chmod(0o750)
    with pytest.raises(PermissionError, match="must belong to the user of the node"):
        await read(FileCache(tmp_path, 10 * SIZE, Source().fetch), 1)


async def test_the_file_that_was_used_least_recently_goes_first_and_the_bound_holds(tmp_path: Path) -> None:
    source = Source()
    cache = FileCache(tmp_path, 3 * SIZE, source.fetch)
    for number in (1, 2, 3, 1, 4):
        await read(cache, number)
        assert cache.used == sum(place.stat().st_size for place in files(tmp_path)) <= 3 * SIZE

    await read(cache, 1)
    assert source.fetched == ["path-1", "path-2", "path-3", "path-4"], "1 was used after 2"
    await read(cache, 2)
    assert source.fetched[-1] == "path-2"
    await cache.close()


async def test_a_file_that_is_read_stays_and_a_read_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    source = Source()
    cache = FileCache(tmp_path, 2 * SIZE, source.fetch)
    with pytest.raises(CacheFull, match="larger than the cache"):
        await read(cache, 1, 2, 3)
    async with cache.held([wanted(1), wanted(2)], LONG) as places:
        with pytest.raises(CacheFull, match="other reads"):
            await read(cache, 3)
        assert [place.read_bytes() for place in places] == [content(1), content(2)]
    assert await read(cache, 3) == [content(3)]
    await cache.close()


async def test_a_file_that_takes_long_arrives_for_the_next_read(tmp_path: Path) -> None:
    source = Source()
    source.gate.clear()
    cache = FileCache(tmp_path, 10 * SIZE, source.fetch)
    with pytest.raises(StillFetching):
        async with cache.held([wanted(1)], 0.01):
            raise AssertionError("it is not there")
    source.gate.set()
    assert await read(cache, 1) == [content(1)]
    assert source.fetched == ["path-1"]
    await cache.close()


async def test_a_failure_reaches_every_reader_leaves_no_file_and_is_tried_again(tmp_path: Path) -> None:
    source = Source()
    source.failure = OSError("the disk is full")
    cache = FileCache(tmp_path, 10 * SIZE, source.fetch)
    failed = await asyncio.gather(read(cache, 1), read(cache, 1), return_exceptions=True)
    assert [str(each) for each in failed] == ["the disk is full"] * 2
    assert (files(tmp_path), cache.used) == ([], 0)
    source.failure, source.lies = None, True
    with pytest.raises(OSError, match="has the SHA-256"):
        await read(cache, 1)
    assert files(tmp_path) == []
    source.lies = False
    assert await read(cache, 1) == [content(1)]
    await cache.close()


async def test_the_next_process_takes_over_the_files_and_removes_unfinished_ones(tmp_path: Path) -> None:
    source = Source()
    first = FileCache(tmp_path, 2 * SIZE, source.fetch)
    await read(first, 1)
    second = FileCache(tmp_path, 2 * SIZE, source.fetch)
    await read(second, 1)
    assert first.directory != second.directory
    (first.directory / "abc.part").write_bytes(b"half")
    os.utime(first.directory / wanted(1).sha256, (1, 1))
    left = first.directory
    await first.close()

    third = FileCache(tmp_path, 2 * SIZE, source.fetch)
    assert third.directory == left
    assert await read(third, 1) == [content(1)]
    assert source.fetched == ["path-1", "path-1"]
    assert not (left / "abc.part").exists()
    await second.close()
    await third.close()


async def test_a_file_with_another_size_than_recorded_is_fetched_again(tmp_path: Path) -> None:
    source = Source()
    first = FileCache(tmp_path, 5 * SIZE, source.fetch)
    await read(first, 1)
    (first.directory / wanted(1).sha256).write_bytes(b"cut")
    await first.close()
    second = FileCache(tmp_path, 5 * SIZE, source.fetch)
    assert await read(second, 1) == [content(1)]
    await second.close()
