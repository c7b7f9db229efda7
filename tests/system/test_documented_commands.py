"""Every command that stands behind a ``$`` in a block of README, docs and examples is run, in order, and what the block
shows below it is what it prints. A block of output without a command is run by the test that is named here."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import caesura
from tests.docs.pages import PAST, pages
from tests.support.documented import ROOT, check_documented

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Pages whose blocks build on each other, and who runs them.
WHOLE = {"docs/tutorial.md": "tests/system/test_tutorial.py"}
WIDTH = "120"  #: columns of the terminal
#: How blocks begin that show output and no command, and who runs them, or what they are.
ELSEWHERE = {
    "Caesura is an open NPU": "tests/system/test_documented_output.py",
    "digits on tiny (native)": "tests/system/test_documented_output.py",
    "digits.onnx on 'tiny'": "tests/system/test_documented_output.py",
    "with preemption\n": "tests/examples/test_driving.py",
    "$ python -m examples.words.demo": "tests/examples/test_words_demo.py",
    "serving two: cycle": "a picture of a moment, which tests/caesura/views/test_live.py draws others of",
    "<!-- figures": "markers",
    "for i2 < n2": "what an instruction does",
    "caesura kernels build net.onnx": "commands alone",
}


class Command(NamedTuple):
    line: str
    output: list[str]  #: what the block shows below it


def blocks(page):
    """The blocks of a page that show commands with a ``$`` or output."""
    found = BLOCK.findall((ROOT / page).read_text())
    return [block for language, block in found if language in ("text", "console", "")]


def is_elsewhere(block):
    return any(block.startswith(beginning) for beginning in ELSEWHERE)


def commands(block):
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        else:
            found[-1].output.append(line)
    return found


PAGES = [page for page in pages() if not page.startswith(PAST)]
BLOCKS = [
    pytest.param(block, id=f"{page}:{number}")
    for page in PAGES
    if page not in WHOLE
    for number, block in enumerate(blocks(page))
    if block.startswith("$ ") and not is_elsewhere(block)
]


NAMED = re.compile(r'"([\w./]+\.(?:onnx|cimg|toml|npz|ckl))"')  #: files in Python
PROGRAMS = [
    pytest.param(block, id=f"{page}:{number}")
    for page in PAGES
    if page not in WHOLE
    for number, (language, block) in enumerate(BLOCK.findall((ROOT / page).read_text()))
    if language == "python" and "import" in block and all((ROOT / file).exists() for file in NAMED.findall(block))
]


@pytest.fixture
def folder(tmp_path):
    """Where commands run: examples are there, models of one's own, and what they write."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "A.onnx").symlink_to(ROOT / "examples" / "digits" / "digits.onnx")
    base = caesura.PRESETS["base"]
    caesura.compile(ROOT / "examples" / "digits" / "digits.onnx", base, engines=1).save(tmp_path / "B.cimg")
    return tmp_path


def ran(line: str, folder: Path, root: Path = ROOT) -> str:
    """What a command prints, which must succeed; ``> FILE`` is honoured. ``root``: the sources it runs on."""
    program, *rest = shlex.split(line)
    target = rest.pop() if ">" in rest else ""
    rest = [word for word in rest if word != ">"]
    prefix = {"caesura": [sys.executable, "-m", "caesura"], "python": [sys.executable]}[program]
    env = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": WIDTH}
    done = subprocess.run([*prefix, *rest], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stderr}{done.stdout}"
    if target:
        (folder / target).write_text(done.stdout)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_shows_what_its_commands_print(block, folder):
    for command in commands(block):
        printed = ran(command.line, folder)
        check_documented(command.output, printed)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_whose_files_exist_runs(program, folder):
    ran(f"python -c {shlex.quote(program)}", folder)


@pytest.mark.parametrize("page", PAGES)
def test_a_block_of_output_has_a_command(page):
    alone = [b for b in blocks(page) if not b.startswith("$ ") and not is_elsewhere(b)]
    assert [block.splitlines()[0] for block in alone] == []


def test_what_is_run_elsewhere_is_shown():
    shown = [block for page in PAGES for block in blocks(page)]
    assert [one for one in ELSEWHERE if not any(block.startswith(one) for block in shown)] == []
    named = [where for where in (*ELSEWHERE.values(), *WHOLE.values()) if where.endswith(".py")]
    assert all((ROOT / where).is_file() for where in named)
    assert len(PROGRAMS) >= 4
    assert sum(len(commands(*parameter.values)) for parameter in BLOCKS) >= 14


def test_commands_of_a_block():
    assert commands("$ caesura a > b\n$ caesura c\none\ntwo\n") == [
        ("caesura a > b", []),
        ("caesura c", ["one", "two"]),
    ]
