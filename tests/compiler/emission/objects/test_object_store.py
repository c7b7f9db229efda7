"""Objects on disk: read as they were written, or not at all."""

import os

import pytest

from compiler.compile import compile_with_report
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.objects.step_object import StepObject
from hw.contract.params import preset
from sim.cache_folder import BLOCK, BoundedFolder
from tests.support.networks import DIGITS

ONE, OTHER = StepObject((), ()), StepObject()


def test_an_object_comes_back(tmp_path):
    ObjectStore(tmp_path).keep("a", ONE)
    assert ObjectStore(tmp_path).find("a") == ONE and ObjectStore(tmp_path).find("b") is None


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: raw[:40] + b"\0" + raw[41:], lambda raw: b""])
def test_a_damaged_file_is_no_object_and_is_written_again(tmp_path, damage):
    store = ObjectStore(tmp_path)
    store.keep("a", ONE)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert store.find("a") is None
    store.keep("a", OTHER)
    assert store.find("a") == OTHER and len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = ObjectStore(tmp_path / "file")
    store.keep("a", ONE)
    store.prune()
    assert store.find("a") is None


def test_what_was_not_used_for_longest_goes(tmp_path):
    store = ObjectStore(tmp_path)
    for age, key in enumerate("abcd"):
        store.keep(key, ONE)
        newest = max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (1000 + age, 1000 + age))
    assert newest.stat().st_size < BLOCK, "so that it takes one"
    assert store.find("a")  # used now
    store = ObjectStore(tmp_path, 2 * BLOCK)
    store.prune()
    assert len(list(tmp_path.iterdir())) == 4, "nothing was written"
    store.keep("e", ONE)
    store.prune()
    assert [key for key in "abcde" if store.find(key)] == ["a", "e"]


def test_a_compilation_looks_through_the_store_once(monkeypatch, tmp_path):
    """That takes half a second where 100,000 objects are, and a search compiles hundreds of times."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    looks = list[BoundedFolder]()
    monkeypatch.setattr(BoundedFolder, "prune", lambda folder: looks.append(folder))
    for _ in range(2):  # the second finds all, and writes nothing
        compile_with_report(DIGITS, preset("tiny"))
        assert len(looks) == 1
