"""Shells complete commands, options and what options take."""

import os
import shutil
import subprocess
import sys

import pytest

from hw.contract.params import PRESETS
from sim import BACKENDS
from tests.support.documented import ROOT

RUN = "import sys; sys.argv[0] = 'caesura'; from caesura.cli import main; main()"


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def completed(line):
    """What bash is told at the end of ``line``."""
    words = line.split(" ")
    env = environment(COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), _CAESURA_COMPLETE="complete_bash")
    ran = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("caesura ru", ["run"]),
        ("caesura verilog --pres", ["--preset"]),
        ("caesura run --preset t", ["tiny"]),
        ("caesura run --preset ", list(PRESETS)),
        ("caesura serve --backend ", list(BACKENDS)),
        ("caesura scenario --backend s", ["synthetic"]),
        ("caesura scenario --policy queue", ["queue_time"]),
        ("caesura serve --placement earliest", ["earliest_finish"]),
        ("caesura kernels ma", ["match"]),
    ],
)
def test_what_a_shell_is_told(line, found):
    assert sorted(completed(line)) == sorted(found)


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
