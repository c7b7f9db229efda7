"""An option of the compiler is a field with a paragraph: all that compiles has it, with nothing else to write."""

import json
import subprocess
import sys

from tests.caesura.test_compilation import COMPILING
from tests.support.networks import DIGITS

#: Runs commands with a compiler that has one option more; tells what each printed, and the options that each of its
#: compilations was given.
PROGRAM = '''
import contextlib, io, json, sys
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
def compile_with_report(path, params, **more):
    seen.append(more["options"].patience)
    raise compiler.CompileError("that was all")
told = []
with patch.object(api, "compile_with_report", compile_with_report):
    for command in json.loads(sys.argv[1]):
        seen, shown = [], io.StringIO()
        try:
            with contextlib.redirect_stdout(shown):
                cli.app(command, standalone_mode=False)
        except (compiler.CompileError, SystemExit):
            pass
        told.append([shown.getvalue(), seen])
print(json.dumps(told))
'''


def run(*commands):
    """Return what each of ``commands`` printed and the new option of each of its compilations, all in one process."""
    told = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run([sys.executable, "-c", PROGRAM, told], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_commands_have_its_flag(tmp_path):
    output = {"compile": ["-o", tmp_path / "m.cimg"]}
    lines = [[command, DIGITS, *output.get(command, [])] for command in COMPILING]
    asked = [[command, "--help"] for command in COMPILING]
    given = [[*line, "--patience", "9"] for line in lines]
    told = run(*asked, *given, lines[COMPILING.index("compile")])
    for command, (shown, _), (_, seen) in zip(COMPILING, told, told[len(asked) : -1], strict=False):
        assert "--patience" in shown, command
        assert "tries before giving up" in " ".join(shown.replace("│", " ").split()), command
        assert seen == [9], command
    assert told[-1][1] == [7]  # its default, too


def test_sweeps_have_it(tmp_path):
    (tmp_path / "s.toml").write_text(f'models = ["{DIGITS}"]\n[options]\npatience = [8, 9]\n')
    assert run(["sweep", tmp_path / "s.toml", "-o", tmp_path / "out", "--jobs", "1"])[0][1] == [8, 9]


def test_scenarios_have_it(tmp_path):
    stream = '[[streams]]\nname = "s"\nstages = [{ model = "a" }]\narrivals = { kind = "trace", times = [0] }\n'
    model = f'name = "one"\n[models.a]\nonnx = "{DIGITS}"\n[models.a.options]\npatience = 9\n'
    (tmp_path / "s.toml").write_text(model + stream)
    assert run(["scenario", tmp_path / "s.toml", "--backend", "model"])[0][1][0] == 9
