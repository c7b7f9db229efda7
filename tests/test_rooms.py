"""`make test ROOM=...` runs the tests of one room, and CONTRIBUTING names rooms that there are."""

import os
import re
import shutil
import subprocess

import pytest

from tests.test_imports import ROOT

TABLE = re.compile(r"^\|[^|]*\|((?: *`[\w/]+`)+) *\| *[\d, ]+\|$", re.MULTILINE)
ROOMS = [room for row in TABLE.findall((ROOT / "CONTRIBUTING.md").read_text()) for room in re.findall(r"`(.+?)`", row)]

make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def dry_run(*rooms: str) -> subprocess.CompletedProcess[str]:
    """What `make test` would run, asked outside of the `make` that may run this test."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--dry-run", "test", f"ROOM={' '.join(rooms)}"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_table_has_rooms():
    assert len(ROOMS) == len(set(ROOMS)) > 20


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_the_table_is_a_folder_with_tests(room):
    assert list((ROOT / "tests" / room).rglob("test_*.py"))
    assert room in ("support", "docs") or list((ROOT / room).rglob("*.py"))


def test_the_table_has_every_room_of_the_product():
    """A room below a floor, such as `sim/model`, or a room that it is in."""
    floors = ("hw", "sim", "sw", "compiler", "caesura", "benchmarks")
    rooms = {
        path.parent.relative_to(ROOT / "tests")
        for floor in floors
        for path in (ROOT / "tests" / floor).rglob("test_*.py")
    }
    missing = [
        str(room) for room in rooms if len(room.parts) > 1 and not {str(room), *map(str, room.parents)} & {*ROOMS}
    ]
    assert sorted(missing) == []


@make
def test_a_room_runs_its_tests_without_lint():
    run = dry_run("sw/driver", "sim/model/")
    assert run.returncode == 0 and "ruff check" not in run.stdout
    assert '-m "not slow" tests/sw/driver tests/sim/model/\n' in run.stdout
    everything = dry_run().stdout
    assert "ruff check" in everything and re.search(r'-m "not slow" *\n', everything)


@make
@pytest.mark.parametrize("rooms", [["nowhere"], ["sw/nothing"], ["sw/driver", "hw/nothing"], [".."], ["%"]])
def test_what_is_no_room_is_told_with_those_there_are(rooms):
    run = dry_run(*rooms)
    assert run.returncode != 0 and not run.stdout
    assert f"no tests for ROOM={rooms[-1]}" in run.stderr
    assert set(ROOMS) <= set(run.stderr.split("The rooms are: ")[1].replace(".  Stop.", "").split())
