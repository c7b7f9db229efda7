"""The walks of docs/architecture.md: each fits on a screen, and its files are there."""

import re

import pytest

from tests.docs.pages import ROOT, section

PAGE = "docs/architecture.md"
WALKS = ("A weight byte", "A doorbell", "A preemption", "A cycle figure")
SCREEN = 40  #: lines
STEP = re.compile(r"^(\d+)\. (.+?): ")


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_is_short_and_names_files_that_exist(walk):
    lines = section(PAGE, f"### {walk}").strip().splitlines()
    steps = [step for line in lines if (step := STEP.match(line))]
    assert len(lines) <= SCREEN and [int(number) for number, _ in (step.groups() for step in steps)] == list(
        range(1, len(steps) + 1)
    )
    files = [path for step in steps for path in re.findall(r"`([\w/.]+)`", step[2])]
    assert len(files) >= len(steps) > 15
    assert [path for path in files if not (ROOT / path).is_file()] == []


def test_there_are_no_other_walks():
    assert tuple(re.findall(r"^### (.*)$", section(PAGE, "## Four walks"), re.MULTILINE)) == WALKS
