"""The cache of stored files: whole or not there, within its bound, and never taken from who uses it."""

import gc
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from touchstone.file_cache import FileCache, FileDamaged

ONE_KB = 1000
CHILD = """
import sys, time
from pathlib import Path
from touchstone.file_cache import FileCache
cache = FileCache(Path(sys.argv[1]), 2000)
held = cache.get("a", lambda target: (target.write(b"a" * 1000), "")[1])
print(held, flush=True)
sys.stdin.read()
"""


class Store:
    """A store of files of 1,000 bytes each, named by their only letter; it counts what is fetched."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def get(self, cache: FileCache, name: str) -> Path:
        def fetch(target):
            self.fetched.append(name)
            target.write(name.encode() * ONE_KB)
            return hashlib.sha256(name.encode() * ONE_KB).hexdigest()

        return cache.get(name, fetch)


@pytest.fixture
def store() -> Store:
    return Store()


def names(root: Path) -> list[str]:
    return sorted(path.read_text()[0] for path in root.glob("files/??/*"))


def test_a_file_is_fetched_once_and_again_only_where_its_copy_is_damaged_or_gone(tmp_path, store):
    cache = FileCache(tmp_path, 10 * ONE_KB)
    assert store.get(cache, "a").read_text() == "a" * ONE_KB
    assert store.get(cache, "a").read_text() == "a" * ONE_KB
    assert store.fetched == ["a"]
    place = Path(str(store.get(cache, "a")))

    damaged = tmp_path / "damaged"
    damaged.write_text("b" * ONE_KB)
    damaged.replace(place)
    assert store.get(cache, "a").read_text() == "a" * ONE_KB
    place.unlink()
    assert store.get(cache, "a").read_text() == "a" * ONE_KB
    assert store.fetched == ["a", "a", "a"]


def test_a_second_process_finds_the_copy_and_hashes_it_before_it_is_used(tmp_path, store):
    place = Path(str(store.get(FileCache(tmp_path, 10 * ONE_KB), "a")))
    store.get(FileCache(tmp_path, 10 * ONE_KB), "a")
    assert store.fetched == ["a"]
    place.write_text("half")  # a power cut, or a disk that fails
    assert store.get(FileCache(tmp_path, 10 * ONE_KB), "a").read_text() == "a" * ONE_KB
    assert store.fetched == ["a", "a"]


def test_other_bytes_than_were_stored_are_refused_and_not_kept(tmp_path):
    def fetch(target):
        target.write(b"other")
        return hashlib.sha256(b"stored").hexdigest()

    with pytest.raises(FileDamaged, match=r"not the one that was stored.*'a'"):
        FileCache(tmp_path, ONE_KB).get("a", fetch)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "in-use"]


def test_a_fetch_that_fails_leaves_nothing(tmp_path, store):
    def fetch(target):
        target.write(b"the beginning")
        raise ConnectionError("cut off")

    cache = FileCache(tmp_path, ONE_KB)
    with pytest.raises(ConnectionError):
        cache.get("a", fetch)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "in-use"]
    assert store.get(cache, "a").read_text() == "a" * ONE_KB  # the control


def test_what_was_not_used_for_the_longest_time_gives_way_to_what_is_new(tmp_path, store):
    cache = FileCache(tmp_path, 2 * ONE_KB)
    for age, name in ((300, "a"), (200, "b")):
        os.utime(store.get(cache, name), (time.time() - age,) * 2)
    gc.collect()
    store.get(cache, "a")  # used again: now b is the oldest
    store.get(cache, "c")
    assert names(tmp_path) == ["a", "c"]
    assert len(list((tmp_path / "names").iterdir())) == 2
    store.get(cache, "b")
    assert store.fetched == ["a", "b", "c", "b"]


def test_what_is_used_stays_even_over_the_bound(tmp_path, store):
    cache = FileCache(tmp_path, ONE_KB)
    held = store.get(cache, "a")
    store.get(cache, "b")
    store.get(cache, "c")
    assert names(tmp_path) == ["a"] or names(tmp_path) == ["a", "c"]
    assert held.read_text() == "a" * ONE_KB
    del held
    gc.collect()
    store.get(cache, "d")
    assert "a" not in names(tmp_path)  # the control: without its user it gives way


def test_what_another_process_uses_stays_until_that_process_ends_however_it_ends(tmp_path, store):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "platform")}
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        place = Path(child.stdout.readline().strip())
        os.utime(place, (1, 1))  # the oldest by far
        cache = FileCache(tmp_path, ONE_KB)
        store.get(cache, "b")
        store.get(cache, "c")
        assert place.read_text() == "a" * ONE_KB
    finally:
        child.kill()
        child.communicate()
    store.get(cache, "d")
    assert not place.exists()


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # Python 3.12 fears threads of the test runner
def test_a_child_that_was_forked_goes_on_keeping_what_it_has_of_its_parent(tmp_path, store):
    cache = FileCache(tmp_path, ONE_KB)
    held = store.get(cache, "a")
    told, tell = os.pipe()
    ended, end = os.pipe()
    child = os.fork()
    if not child:
        os.close(end)
        os.write(tell, b"ready")
        os.read(ended, 1)  # until the parent closes it
        os._exit(0 if held.exists() else 1)
    os.close(ended)
    assert os.read(told, 5) == b"ready"
    place = Path(str(held))
    os.utime(place, (1, 1))
    del held
    gc.collect()
    store.get(cache, "b")
    kept = place.exists()
    os.close(end)
    assert os.waitpid(child, 0)[1] == 0
    assert kept
    store.get(cache, "c")
    assert not place.exists()


def test_space_that_is_to_stay_free_limits_the_cache_as_well(tmp_path, store):
    cache = FileCache(tmp_path, 10**9, floor=10**18)
    held = store.get(cache, "a")
    store.get(cache, "b")
    gc.collect()
    store.get(cache, "c")
    assert names(tmp_path)[0] == "a"
    assert "b" not in names(tmp_path)
    assert held.exists()


def test_what_a_killed_process_was_fetching_goes_after_a_day(tmp_path, store):
    cache = FileCache(tmp_path, 10 * ONE_KB)
    old, new = tmp_path / "drafts" / "old", tmp_path / "drafts" / "new"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (1, 1))
    store.get(cache, "a")
    assert (old.exists(), new.exists()) == (False, True)
