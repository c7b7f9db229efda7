"""Simulates the netlist by way of Yosys and CXXRTL: Yosys writes C++, which is cut up and compiled."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hw.contract.bus import HostCosts, Progress
from hw.contract.params import SocParams
from sim.rtl import rtlil, yosys
from sim.rtl.compiled import CompiledBus
from sim.rtl.cxxrtl.partition import partition, register_table
from sim.rtl.top import SimTop
from sim.rtl.yosys import cxxrtl_headers, require_yosys, run_yosys, yosys_version
from sim.toolchain.compiled_libraries import Files, Recipe, library
from sim.toolchain.compilers import CXX, BuildError, Source, compile_all, link, tool_environment
from sim.toolchain.stages import Stages

FOLDER = Path(__file__).parent
RUN_LOOP = FOLDER / "simulator.cc"
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-w")
#: Yosys commands before the C++ is written. Hierarchy costs speed. Anything that cleans up wires may split and join
#: them across signals, which CXXRTL then takes for combinational feedback.
SYNTHESIS = ("proc -noopt", "flatten")
#: Files the netlist is cut into, compiled side by side.
FILES = 6
FEEDBACK = re.compile(r"contains feedback arcs through wires:\n((?:  .*\n)+)")
DRAM_MEMBER = re.compile(r"memory<\d+> (memory_p_dram_2e_memory) \{")
#: Seconds per byte of RTLIL or C++ on one core of 2020, for a machine that has built nothing yet.
YOSYS_SPEED, COMPILER_SPEED = 1.5e-5, 1.5e-5


def cxxrtl_bus(
    params: SocParams, make: Callable[[], SimTop], *, costs: HostCosts | None = None,
    vcd: str | os.PathLike | None = None, progress: Progress | None = None, source: str | None = None,
) -> CompiledBus:  # fmt: skip
    """Return a bus over CXXRTL's simulation of the design ``make()``, which takes minutes to compile at the first use
    of its netlist, and is cached. ``vcd``: a file for waveforms of all signals, but not of memories, which needs
    another, slower build. ``source`` identifies what the design is made from: where its library is cached, it is not
    even made. Raises :class:`sim.toolchain.compilers.BuildError`."""
    built = library(recipe(make, params, vcd=vcd is not None), source=source)
    return CompiledBus(params, built, backend="cxxrtl", costs=costs, vcd=vcd, progress=progress)


def recipe(make: Callable[[], SimTop], params: SocParams, *, vcd: bool) -> Recipe:
    """Return how the library for the design ``make()`` is made; with ``vcd`` it can write waveforms."""
    require_yosys("the backend cxxrtl")

    def prepare(stages: Stages) -> Files:
        with stages.stage("elaboration", size=params.macs, seconds=0.3 * params.macs):
            top = make()
            return {"netlist.il": rtlil.to_rtlil(top, name="sim_top", clock=top.domain.clk)}

    def build(files: Files, work: Path, log: Path, stages: Stages) -> Path:
        return _build(files["netlist.il"], vcd, work, log, stages)

    sources = (*sorted(FOLDER.glob("*.py")), RUN_LOOP, Path(rtlil.__file__), Path(yosys.__file__))
    tools = (CXX.version, yosys_version(), *(path.read_text() for path in sources), f"vcd={vcd}")
    return Recipe("cxxrtl", tools, prepare, build)


def _build(netlist: str, vcd: bool, work: Path, log: Path, stages: Stages) -> Path:
    (work / "netlist.il").write_text(netlist)
    size = len(netlist)
    with stages.stage("synthesis with Yosys", size=size, seconds=YOSYS_SPEED * size), _linker_prepared(work):
        _synthesise(work, vcd, log)
    source = (work / "netlist.cc").read_text()
    size = len(source)
    with stages.stage("compilation of C++", size=size, seconds=COMPILER_SPEED * size):
        return _compile(source, vcd, work, log)


def _synthesise(work: Path, vcd: bool, log: Path) -> None:
    debug = "-g4" if vcd else "-g0"
    run_yosys(("read_rtlil netlist.il", *SYNTHESIS, f"write_cxxrtl -O6 {debug} netlist.cc"), work, log)
    loops = FEEDBACK.findall(log.read_text())
    if loops:
        wires = ", ".join(loops[0].split())
        raise BuildError(f"the design has combinational feedback, which a single evaluation cannot settle: {wires}")


def _compile(netlist: str, vcd: bool, work: Path, log: Path) -> Path:
    """Compile all files of the netlist and the run loop, and link them."""
    member = DRAM_MEMBER.search(netlist)
    if not member:
        raise BuildError("the netlist has no DRAM memory; is it a SimTop?")
    cut = partition(netlist, FILES)
    # netlist.cc is included by the run loop.
    (work / "netlist.h").write_text(cut.header)
    (work / "netlist.cc").write_text(cut.main)
    texts = {f"part{i}.cc": text for i, text in enumerate(cut.parts)}
    slow = {"debug.cc": cut.debug, "registers.cc": register_table(cut.header)}
    for name, text in (texts | slow).items():
        (work / name).write_text(text)
    sources = [Source(RUN_LOOP), *(Source(work / name) for name in texts)]
    sources += [Source(work / name, ("-O0",)) for name in slow]
    defines = (f"-DMEMORY={member[1]}", *(("-DVCD",) if vcd else ()))
    flags = [*FLAGS, *defines, f"-I{work}", f"-I{cxxrtl_headers()}"]
    return link(CXX, compile_all(CXX, sources, flags, work, log), (), work, log)


@contextmanager
def _linker_prepared(work: Path) -> Iterator[None]:
    """Let zig build a C++ library meanwhile, which on a fresh machine it does for half a minute before it links.

    It builds one for each combination of flags, so these are those of :func:`sim.toolchain.compilers.link`.
    """
    if os.environ.get(CXX.variable):
        yield
        return
    probe = work / "probe.cc"
    probe.write_text("#include <map>\n#include <string>\nstd::map<std::string, int> probe;\n")
    command = f'set -e; "$@" {" ".join(FLAGS)} -c -o probe.o probe.cc; "$@" -shared -s -o probe.so probe.o'
    quiet = subprocess.DEVNULL
    shell = ["sh", "-c", command, "sh", *CXX.command]
    with subprocess.Popen(shell, cwd=work, env=tool_environment(), stdout=quiet, stderr=quiet):
        yield
