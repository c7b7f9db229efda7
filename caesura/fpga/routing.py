"""The third stage: places and routes with one seed, in one go or with the placement annealed between, and reads what
became of it."""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from caesura.fpga import annealing
from caesura.fpga.boards import Part
from caesura.fpga.floor_plan import floor_plan
from caesura.fpga.paths import CellDelays, SourceLines, worst_paths
from caesura.fpga.spacing import GAP, logic, spaced, without_gaps
from caesura.fpga.synthesis import top_of
from caesura.fpga.tools import nextpnr

#: What the report counts, by nextpnr's name.
RESOURCES = {"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "bram": "DP16KD", "mult": "MULT18X18D"}

_ROUTED = ("--report", "report.json", "--textcfg", "design.config")
_IN_ROWS = ("lut", "ff")  #: of these what is counted includes what keeps rows empty

#: nextpnr's placers and routers, its own choice first.
PLACERS = ("heap", "static")
ROUTERS = ("router1", "router2")


def arguments(part: Part, seed: int, target: float, placer: str, router: str, *, rip_up: bool = False) -> list[str]:
    """Return nextpnr's arguments, those for files left out. ``target`` is in MHz; one that is not reached is no
    error. ``placer`` is one of ``PLACERS``, ``router`` one of ``ROUTERS``. ``rip_up``: the second router takes up again
    nets that are too slow for the target, too, until there are none."""
    chosen = [part.option, "--package", part.package, "--speed", part.speed]
    chosen += ["--placer", placer, "--router", router]
    chosen += ["--tmg-ripup"] if rip_up else []
    return [*chosen, "--freq", f"{target:g}", "--seed", str(seed), "--timing-allow-fail", "--lpf-allow-unconstrained"]


class Placed(NamedTuple):
    """Is a placement: the design as nextpnr writes it, and the delays of its cells and, by estimate, of its wires."""

    design: bytes
    delays: bytes


def place(mapped: bytes, options: Sequence[str], part: Part, every: int, work: Path) -> Placed:
    """Place with the ``options`` of :func:`arguments`, and each row of ``every`` left empty, see
    :func:`caesura.fpga.spacing.spaced`. Raises :class:`sim.toolchain.BuildError`."""
    _nextpnr(options, spaced(mapped, part, every), constraints(part, top_of(mapped)["ports"]), work, "--no-route")
    return Placed((work / "placed.json").read_bytes(), (work / "delays.sdf").read_bytes())


def annealed(placed: Placed, part: Part, seed: int, work: Path) -> bytes:
    """Return a placement with its cells moved about, see :mod:`caesura.fpga.annealing`."""
    (work / "delays.sdf").write_bytes(placed.delays)
    return annealing.annealed(placed.design, CellDelays.read(work / "delays.sdf"), logic(part), seed)


def route_placed(
    design: bytes, mapped: bytes, modules: Collection[str], options: Sequence[str], seed: int, work: Path
) -> tuple[dict[str, Any], bytes]:
    """Route a ``design`` that is placed, that of ``mapped``; return what :func:`route` returns. Raises
    :class:`caesura.fpga.tools.NotRoutedError`, or :class:`sim.toolchain.BuildError`."""
    _nextpnr(options, design, "", work, "--no-pack", "--no-place", *_ROUTED)
    return _result(mapped, modules, seed, work)


def route(
    mapped: bytes, modules: Collection[str], options: Sequence[str], part: Part, seed: int, every: int, work: Path
) -> tuple[dict[str, Any], bytes]:
    """Place and route, as :func:`place` and in one go; return the result and the configuration for ecppack. Raises
    :class:`caesura.fpga.tools.NotRoutedError`, or :class:`sim.toolchain.BuildError`.

    The result holds ``seed``, ``fmax`` in MHz, ``use`` (used and available of each of ``RESOURCES``), ``paths``, see
    :func:`caesura.fpga.paths.worst_paths`, and ``floor``, see :func:`caesura.fpga.floor_plan.floor_plan`, of the
    ``modules`` of the netlist.
    """
    _nextpnr(options, spaced(mapped, part, every), constraints(part, top_of(mapped)["ports"]), work, *_ROUTED)
    return _result(mapped, modules, seed, work)


def _nextpnr(options: Sequence[str], design: bytes, pins: str, work: Path, *more: str) -> None:
    (work / "design.json").write_bytes(design)
    (work / "pins.lpf").write_text(pins)
    files = ["--json", "design.json", "--lpf", "pins.lpf", "--sdf", "delays.sdf", "--write", "placed.json"]
    nextpnr([*options, *files, *more], work)


def _result(mapped: bytes, modules: Collection[str], seed: int, work: Path) -> tuple[dict[str, Any], bytes]:
    report = json.loads((work / "report.json").read_text())
    counts, placed = report["utilization"], top_of((work / "placed.json").read_bytes())
    gaps = sum(name.startswith(GAP) for name in placed["cells"]) // 2  # of each kind
    result = {
        "seed": seed,
        "fmax": round(min(clock["achieved"] for clock in report["fmax"].values()), 2),
        "use": {
            name: [counts[cell]["used"] - gaps * (name in _IN_ROWS), counts[cell]["available"]]
            for name, cell in RESOURCES.items()
        },
        "paths": worst_paths(CellDelays.read(work / "delays.sdf"), SourceLines(top_of(mapped))),
        "floor": floor_plan(without_gaps(placed), modules),
    }
    return result, (work / "design.config").read_bytes()


def constraints(part: Part, ports: Collection[str]) -> str:
    """Return constraints for those of the ``ports`` whose pins are known."""
    known = {name: pin for name, pin in part.pins.items() if name.partition("[")[0] in ports}
    lines = [f'LOCATE COMP "{name}" SITE "{pin.site}";\n' for name, pin in known.items()]
    for name, pin in known.items():
        lines += [f'IOBUF PORT "{name}" {setting}={value};\n' for setting, value in pin.settings.items()]
    return "".join(lines)
