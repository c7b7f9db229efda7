"""The cache folder is this user's alone, and nothing in it makes a reader wait."""

import hashlib
import os
import pickle
import shutil
import signal
import socket
import stat
import zlib
from pathlib import Path

import numpy as np
import pytest

import caesura
from benchmarks.workloads.cache import cached
from caesura import cli
from caesura.duration_store import DurationStore
from caesura.lengths.kernel_source import KernelFiles
from compiler.emission.objects.object_store import ObjectStore
from compiler.emission.objects.step_object import StepObject
from hw.contract.params import preset
from hw.image.kernel_attributes import KernelAttributes
from hw.image.range_image import RangeImage, Stretch
from sim.c_library import c_library
from sim.cache_folder import BoundedFolder, ForeignCacheError, cache_dir, read_kept, write_kept
from sim.toolchain.compiled_libraries import Recipe, library
from sim.toolchain.compilers import BuildError
from sim.toolchain.stages import Stages
from sw.runtime import PastDurations
from tests.support.images import copy_image
from tests.support.networks import DIGITS

TINY = preset("tiny")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def soon():
    """Whoever waits for a pipe is told so."""

    def waited(*_):
        raise AssertionError("this waits for something in the cache")

    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_it_is_made_for_this_user_alone(home):
    umask = os.umask(0)
    try:
        assert stat.S_IMODE(cache_dir().stat().st_mode) == 0o700
        shutil.rmtree(cache_dir())
        ObjectStore().keep("a", StepObject((), ()))
        assert stat.S_IMODE((home / "caesura").stat().st_mode) == 0o700
    finally:
        os.umask(umask)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_one_that_others_may_write_to_is_refused(mode, monkeypatch, capsys):
    cache_dir().chmod(mode)
    for use in (cache_dir, ObjectStore, lambda: c_library(Path(__file__)), lambda: caesura.compile(DIGITS)):
        with pytest.raises(ForeignCacheError, match=r"others may write .*set XDG_CACHE_HOME .*or remove it"):
            use()
    monkeypatch.setattr("sys.argv", ["caesura", "compile", str(DIGITS), "-o", "/dev/null"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and "error: others may write to the cache folder" in capsys.readouterr().err


def test_one_of_another_user_is_refused(monkeypatch):
    folder = cache_dir()
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(ForeignCacheError, match=r"belongs to user \d+: .*set XDG_CACHE_HOME"):
        cache_dir()


def odd(path, kind):
    """Something in place of a file that no reader should wait for."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        os.chdir(path.parent)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    else:
        path.symlink_to("/dev/zero")


@pytest.fixture(params=["pipe", "folder", "socket", "device"])
def kind(request, monkeypatch, home):
    monkeypatch.chdir(home)
    return request.param


def test_what_is_no_plain_file_is_not_read(kind, home):
    odd(home / "x", kind)
    with pytest.raises(OSError):
        read_kept(home / "x")
    if kind != "folder":
        write_kept(home / "x", b"new")
        assert read_kept(home / "x") == b"new"
        assert not list(home.glob("*.tmp"))


def test_objects_of_layers(kind):
    store = ObjectStore()
    store.keep("a", StepObject((), ()))
    (path,) = (cache_dir() / "objects").iterdir()
    odd(path, kind)
    assert store.find("a") is None
    store.keep("a", StepObject((), ()))
    assert (store.find("a") is None) == (kind == "folder")
    store.prune()


def test_kernels(kind):
    files = KernelFiles(cache_dir() / "kernels")
    about, covered = (KernelAttributes.of({"model": "copy"}, "length", value) for value in (5, "5..6"))
    image = copy_image(TINY)
    image.meta.kernel_attributes = about.to_dict()
    files.keep("origin", image)
    files.keep_range("origin", RangeImage(covered, (Stretch.of({5: image, 6: image}),)))
    assert files.find("origin", about) and files.find_range("origin", covered, range(5, 7))
    for path in list(files.folder.iterdir()):
        odd(path, kind)
    assert files.find("origin", about) is None and files.find_range("origin", covered, range(5, 7)) is None


def test_durations(kind):
    image, store = copy_image(TINY), DurationStore(TINY, "model")
    store.remember(image)
    (path,) = (cache_dir() / "durations").glob("*/*")
    odd(path, kind)
    store.recall(image)
    store.teach(PastDurations(), None)
    store.remember(image)


def test_generated_models(kind):
    write = lambda path: path.write_bytes(b"model")  # noqa: E731
    path = cached("x", 1, write)
    odd(path, kind)
    if kind == "folder":
        with pytest.raises(OSError):
            cached("x", 1, write)
    else:
        assert cached("x", 1, write).read_bytes() == b"model"


@pytest.mark.parametrize("name", ["so", "sum", "ref", "lock", "durations"])
def test_libraries(kind, name):
    """They are made again, or cannot be kept, which says why."""

    def build(files, work, log, stages):
        with stages.stage("build", size=1, seconds=1):
            (work / "simulator.so").write_text("library")
        return work / "simulator.so"

    recipe = Recipe("fake", (), lambda stages: {"a": "b"}, build)
    made = library(recipe, source="s", stages=Stages(quiet=True))
    folder = cache_dir()
    places = {"so": [made], "sum": [made.with_suffix(".sum")], "ref": list(folder.glob("*.ref"))}
    places |= {"lock": list(folder.glob("*.lock")), "durations": [folder / "durations.json"]}
    assert places[name]
    for path in places[name]:
        odd(path, kind)
    if name == "lock":
        made.unlink()  # or nobody would lock
    try:
        made = library(recipe, source="s", stages=Stages(quiet=True))
    except BuildError as error:
        assert "cannot be kept in the cache folder" in str(error) and (kind == "folder" or name == "lock")
    else:
        assert made.read_text() == "library"


class Attack:
    """What a pickle can do when it is read."""

    def __init__(self, made):
        self._made = made

    def __reduce__(self):
        return self._made


@pytest.mark.parametrize(
    "made",
    [
        (os.system, ("touch attacked",)),
        (getattr, ("text", "upper")),
        (cached, ("attacked", 1, os.mkdir)),
        (BoundedFolder, ("attacked", 1)),
        (np.array, ([1],)),
        (ObjectStore, ("attacked",)),
    ],
)
def test_to_read_an_object_runs_no_code(made, home, monkeypatch):
    monkeypatch.chdir(home)
    store = ObjectStore()
    store.keep("a", StepObject((), ()))
    (path,) = (cache_dir() / "objects").iterdir()
    for value in (Attack(made), StepObject((), (Attack(made),))):
        packed = zlib.compress(pickle.dumps(value))
        path.write_bytes(hashlib.sha256(packed).digest() + packed)
        assert store.find("a") is None
        assert not (home / "attacked").exists()


def test_objects_of_models_are_values():
    """All that a compilation keeps is found by the next."""
    caesura.compile(DIGITS)
    files = sorted((cache_dir() / "objects").iterdir())
    assert files
    for path in files:
        path.touch()
        os.utime(path, (1, 1))
    caesura.compile(DIGITS)
    assert files == sorted((cache_dir() / "objects").iterdir())
    assert all(path.stat().st_mtime > 1 for path in files), "each was of use"
