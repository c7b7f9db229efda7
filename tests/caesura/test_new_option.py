"""An option of the compiler is a field with a paragraph: all that compiles has it, with nothing else to write."""

import json
import subprocess
import sys

import pytest

from tests.caesura.test_compilation import COMPILING
from tests.support.networks import DIGITS

#: Runs a command with a compiler that has one option more; tells the options that each compilation is given.
PROGRAM = '''
import json, sys
from dataclasses import dataclass
from unittest.mock import patch
from compiler.plan import options

class Options(options.Options):
    patience: int = 7
Options.__doc__ = options.Options.__doc__ + """
    ``patience``: tries before giving up. There are always some.
    """
options.Options = dataclass(frozen=True)(Options)

import compiler
from caesura import api, cli
seen = []
def compile_with_report(path, params, **more):
    seen.append(more["options"].patience)
    raise compiler.CompileError("that was all")
with patch.object(api, "compile_with_report", compile_with_report):
    try:
        cli.app(sys.argv[1:], standalone_mode=False)
    except (compiler.CompileError, SystemExit) as error:
        pass
print(json.dumps(seen), file=sys.stderr)
'''


def run(*arguments):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("command", COMPILING)
def test_commands_have_its_flag(command, tmp_path):
    output = ["-o", tmp_path / "m.cimg"] if command == "compile" else []
    shown, _ = run(command, "--help")
    assert "--patience" in shown and "tries before giving up" in " ".join(shown.replace("│", " ").split())
    assert run(command, DIGITS, *output, "--patience", "9")[1] == [9]
    if command == "compile":  # its default, too
        assert run(command, DIGITS, *output)[1] == [7]


def test_sweeps_have_it(tmp_path):
    (tmp_path / "s.toml").write_text(f'models = ["{DIGITS}"]\n[options]\npatience = [8, 9]\n')
    assert run("sweep", tmp_path / "s.toml", "-o", tmp_path / "out", "--jobs", "1")[1] == [8, 9]


def test_scenarios_have_it(tmp_path):
    stream = '[[streams]]\nname = "s"\nstages = [{ model = "a" }]\narrivals = { kind = "trace", times = [0] }\n'
    model = f'name = "one"\n[models.a]\nonnx = "{DIGITS}"\n[models.a.options]\npatience = 9\n'
    (tmp_path / "s.toml").write_text(model + stream)
    assert run("scenario", tmp_path / "s.toml", "--backend", "model")[1][0] == 9
