"""The cache of compiled simulators."""

import multiprocessing
import os
import time

import pytest

from sim.toolchain import compiled_libraries, compilers, stages
from sim.toolchain.compiled_libraries import Recipe, intact, library
from sim.toolchain.stages import Stages


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    root = tmp_path / "cache"
    for module in (compiled_libraries, stages, compilers):
        monkeypatch.setattr(module, "cache_dir", lambda: root)
    return root


class Counted:
    """A recipe whose builds leave marks."""

    def __init__(self, folder, *, seconds=0.0):
        self.marks, self.seconds = folder.parent / "marks", seconds

    def recipe(self, text="design", *tools):
        return Recipe("fake", tools, lambda stages: self._mark("prepared") or {"netlist": text}, self._build)

    def _mark(self, what):
        with self.marks.open("a") as file:
            file.write(f"{what} {os.getpid()}\n")

    def _build(self, files, work, log, stages):
        self._mark("built")
        time.sleep(self.seconds)
        (work / "simulator.so").write_text(files["netlist"] * 1000)
        return work / "simulator.so"

    def count(self, what):
        return self.marks.read_text().count(what)


@pytest.fixture
def counted(folder):
    return Counted(folder)


def test_a_design_is_built_once(counted, folder):
    first = library(counted.recipe())
    assert library(counted.recipe()) == first and intact(first)
    assert counted.count("built") == 1
    assert library(counted.recipe("other")) != first
    assert library(counted.recipe("design", "-O3")) != first
    assert counted.count("built") == 3
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_a_known_source_is_not_prepared(counted):
    first = library(counted.recipe(), source="one")
    assert library(counted.recipe(), source="one") == first
    assert (counted.count("prepared"), counted.count("built")) == (1, 1)
    assert library(counted.recipe(), source="two") == first
    assert (counted.count("prepared"), counted.count("built")) == (2, 1)
    first.unlink()
    assert library(counted.recipe(), source="one").exists()
    assert counted.count("built") == 2


def cut_short(path):
    os.truncate(path, 1000)


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[500] ^= 1
    path.write_bytes(raw)


def drop_the_sum(path):
    path.with_suffix(".sum").unlink()


def empty_the_reference(path):
    for reference in path.parent.glob("*.ref"):
        reference.write_text("")


@pytest.mark.parametrize("damage", [cut_short, flip, drop_the_sum])
@pytest.mark.parametrize("source", [None, "known"])
def test_a_damaged_library_is_built_again(counted, damage, source):
    target = library(counted.recipe(), source=source)
    sound = target.read_bytes()
    damage(target)
    assert library(counted.recipe(), source=source) == target
    assert target.read_bytes() == sound and counted.count("built") == 2


@pytest.mark.parametrize("text", ["", "nonsense", "..", "\0"])
def test_a_damaged_reference_is_written_again(counted, text):
    target = library(counted.recipe(), source="known")
    (reference,) = target.parent.glob("*.ref")
    sound = reference.read_text()
    reference.write_text(text)
    assert library(counted.recipe(), source="known") == target
    assert reference.read_text() == sound and counted.count("built") == 1


def test_a_build_that_was_killed_leaves_nothing_in_the_way(counted, folder):
    target = library(counted.recipe())
    target.unlink()
    work = target.with_suffix("")
    work.mkdir()
    (work / "simulator.so").write_text("half")
    assert intact(library(counted.recipe())) and not work.exists()


@pytest.mark.parametrize("source", [None, "known"])
def test_concurrent_processes_build_once_and_say_whom_they_wait_for(folder, source, capfd):
    slow = Counted(folder, seconds=1.0)

    def open_it():
        library(slow.recipe(), source=source)

    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=open_it) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert slow.count("built") == 1
    (builder,) = (line.split()[1] for line in slow.marks.read_text().splitlines() if line.startswith("built"))
    assert f"waiting for process {builder}, which builds the same simulator (fake)" in capfd.readouterr().err


def test_a_build_that_fails_keeps_its_folder_and_is_tried_again(counted, folder):
    def fail(files, work, log, stages):
        log.write_text("no such luck")
        raise compilers.BuildError(str(log))

    recipe = Recipe("fake", (), lambda stages: {"netlist": "design"}, fail)
    with pytest.raises(compilers.BuildError) as error:
        library(recipe)
    with open(str(error.value)) as log:
        assert log.read() == "no such luck"
    assert intact(library(counted.recipe()))


def test_stages_tell_the_time_of_the_last_run_scaled_by_size(capfd):
    def run(size):
        with Stages().stage("cutting", size=size, seconds=77):
            time.sleep(0.6)
        return capfd.readouterr().err

    compiled_libraries.cache_dir().mkdir()
    assert "simulator: cutting, 0 s of about 77 s" in run(10)
    assert "simulator: cutting, 0 s of about 2 s" in run(33)
    assert "simulator: cutting, 0 s of about 77 s" in run(1000)
    (compiled_libraries.cache_dir() / stages.DURATIONS).write_text("{")
    assert "of about 77 s" in run(10)


def test_long_stages_are_reported_on_off_a_terminal(capfd, monkeypatch):
    monkeypatch.setattr(stages, "INTERVAL", 0.3)
    with Stages().stage("cutting", size=1, seconds=2):
        time.sleep(1.2)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].startswith("compiling the simulator") and len(lines) >= 4
    assert lines[-1] == "simulator: cutting, 1 s of about 2 s"


def test_a_quiet_build_says_nothing(capfd):
    with Stages(quiet=True).stage("cutting", size=1, seconds=2):
        pass
    assert capfd.readouterr() == ("", "")


def test_stages_of_something_else_are_told_by_its_name(capfd):
    with Stages(subject="fpga", announcement="from RTL to the part").stage("cutting", size=1, seconds=2):
        pass
    assert capfd.readouterr().err.splitlines()[:2] == ["from RTL to the part", "fpga: cutting, 0 s of about 2 s"]


def test_a_folder_that_cannot_be_used_is_named_with_the_way_out(folder):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file stands in its place")
    with pytest.raises(compilers.BuildError, match=rf"cache folder {folder}.*XDG_CACHE_HOME"):
        library(Counted(folder).recipe())
