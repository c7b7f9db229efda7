"""The third stage: places and routes with one seed, and reads what became of it."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from caesura.fpga.boards import Part
from caesura.fpga.floor_plan import floor_plan
from caesura.fpga.paths import CellDelays, SourceLines, worst_paths
from caesura.fpga.synthesis import top_of
from caesura.fpga.tools import nextpnr

#: What the report counts, by nextpnr's name.
RESOURCES = {"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "bram": "DP16KD", "mult": "MULT18X18D"}


#: nextpnr's placers and routers, its own choice first.
PLACERS = ("heap", "static")
ROUTERS = ("router1", "router2")


def arguments(part: Part, seed: int, target: float, placer: str, router: str) -> list[str]:
    """Return nextpnr's arguments, those for files left out. ``target`` is in MHz; one that is not reached is no
    error. ``placer`` is one of ``PLACERS``, ``router`` one of ``ROUTERS``."""
    chosen = [part.option, "--package", part.package, "--speed", part.speed]
    chosen += ["--placer", placer, "--router", router]
    return [*chosen, "--freq", f"{target:g}", "--seed", str(seed), "--timing-allow-fail", "--lpf-allow-unconstrained"]


def route(
    mapped: bytes, modules: Collection[str], options: Sequence[str], part: Part, seed: int, work: Path
) -> tuple[dict[str, Any], bytes]:
    """Place and route with the ``options`` of :func:`arguments`; return the result and the configuration for ecppack.
    Raises :class:`sim.toolchain.BuildError`.

    The result holds ``seed``, ``fmax`` in MHz, ``use`` (used and available of each of ``RESOURCES``), ``paths``, see
    :func:`caesura.fpga.paths.worst_paths`, and ``floor``, see :func:`caesura.fpga.floor_plan.floor_plan`, of the
    ``modules`` of the netlist.
    """
    (work / "mapped.json").write_bytes(mapped)
    (work / "pins.lpf").write_text(_pins(part))
    files = ["--json", "mapped.json", "--lpf", "pins.lpf", "--report", "report.json", "--sdf", "delays.sdf"]
    nextpnr([*options, *files, "--write", "placed.json", "--textcfg", "design.config"], work)
    report = json.loads((work / "report.json").read_text())
    counts = report["utilization"]
    result = {
        "seed": seed,
        "fmax": round(min(clock["achieved"] for clock in report["fmax"].values()), 2),
        "use": {name: [counts[cell]["used"], counts[cell]["available"]] for name, cell in RESOURCES.items()},
        "paths": worst_paths(CellDelays.read(work / "delays.sdf"), SourceLines(top_of(mapped))),
        "floor": floor_plan(top_of((work / "placed.json").read_bytes()), modules),
    }
    return result, (work / "design.config").read_bytes()


def _pins(part: Part) -> str:
    if not part.clock:
        return ""
    return f'LOCATE COMP "clk" SITE "{part.clock}";\nIOBUF PORT "clk" IO_TYPE=LVCMOS33;\n'
