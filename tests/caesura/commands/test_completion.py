"""Shells complete commands, options and what options take."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from hw.contract.params import PRESETS
from sim import BACKENDS
from tests.support.documented import ROOT

RUN = "import sys; sys.argv[0] = 'caesura'; from caesura.cli import main; main()"
#: What bash is told at the end of each of these lines.
FOUND = {
    "caesura ru": ["run"],
    "caesura verilog --pres": ["--preset"],
    "caesura run --preset t": ["tiny"],
    "caesura run --preset ": list(PRESETS),
    "caesura serve --backend ": list(BACKENDS),
    "caesura scenario --backend s": ["synthetic"],
    "caesura scenario --policy queue": ["queue_time"],
    "caesura serve --placement earliest": ["earliest_finish"],
    "caesura kernels ma": ["match"],
}
#: Answers as the command does, line after line in one process; prints the words of each.
ANSWERS = """
import contextlib, io, json, os, sys
from caesura.cli import main
sys.argv, told = ["caesura"], []
for line in json.loads(os.environ["LINES_ASKED"]):
    os.environ |= {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        main()
    told.append(shown.getvalue().split())
print(json.dumps(told))
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@pytest.fixture(scope="module")
def answers():
    """What is told at the end of each line of ``FOUND``."""
    env = environment(LINES_ASKED=json.dumps(list(FOUND)), _CAESURA_COMPLETE="complete_bash")
    ran = subprocess.run([sys.executable, "-c", ANSWERS], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return dict(zip(FOUND, json.loads(ran.stdout), strict=True))


@pytest.mark.parametrize("line", FOUND)
def test_what_a_shell_is_told(line, answers):
    assert sorted(answers[line]) == sorted(FOUND[line])


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.slow
def test_bash_takes_the_script(tmp_path):
    """The script that ``--show-completion`` prints, in a shell."""
    command = tmp_path / "caesura"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{RUN}" "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(_CAESURA_COMPLETE=source_bash caesura)"; COMP_WORDS=(caesura run --preset b); COMP_CWORD=3; '
        '_caesura_completion caesura; echo "found ${COMPREPLY[@]}"; complete -p caesura'
    )
    env = environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    ran = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
    assert ran.stdout.splitlines()[0] == "found base", ran.stderr
    assert "_caesura_completion caesura" in ran.stdout
