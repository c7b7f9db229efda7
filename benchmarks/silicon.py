"""How fast blocks of the RTL are on an ECP5, placed and routed, kept in ``silicon.json``: a change that makes a path
slow is noticed.

    python -m benchmarks.silicon [BLOCK ...]           # exit code 1 if a block is slower or larger than recorded
    python -m benchmarks.silicon --write [BLOCK ...]   # record what was measured, slower or not
    python -m benchmarks.silicon --machines [--write] [NAME ...]  # what whole machines take, and their clock (an hour)

A block is placed again only where its netlist is another than the recorded one, or with ``--all``.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hw
from caesura.fpga import (
    MACHINE_TOOLS,
    PARTS,
    Flow,
    Netlist,
    Part,
    blocks_of_products,
    by_module,
    elaborated,
    top_of,
    version,
)
from hw.contract.params import preset
from sim.toolchain import BuildError, Stages

FILE = Path(__file__).with_name("silicon.json")
PART = PARTS["lfe5um5g-25f"]  #: the smallest: placed soonest, on the same fabric as the others
PRESET = "tiny"
TARGET = 150.0  #: MHz that blocks aim at: beyond what any block reaches, as they rest once they are there
SEEDS = (1, 2, 3)


class SiliconMachine(NamedTuple):
    """Is a whole machine that is to fit a ``part``: how many ``multipliers`` it may take of it, and the ``seeds`` with
    which it is placed and routed, none where that does not succeed. ``clock``, in MHz, is what it reaches at least if
    it is routed, and ``target`` what the tools aim at: the router takes up what is too slow for it again and again, by
    an analysis of its own, which may be less strict than the last one. ``logic``: see
    :func:`caesura.fpga.synthesis.synthesise`."""

    part: Part
    multipliers: int
    clock: float
    target: float
    seeds: tuple[int, ...]
    logic: int | None = None


MACHINES = {
    "ecp5": SiliconMachine(PARTS["lfe5um5g-85f"], 150, 75.0, 75.0, (), 7_000),
    "nano": SiliconMachine(PARTS["lfe5um5g-85f"], 44, 62.0, 64.0, (1,)),
}
#: What the tools alone may change between two netlists that are nearly the same, as a share.
FMAX_TOLERANCE, LUT_TOLERANCE = 0.07, 0.05
PAGE = Path(__file__).parents[1] / "docs" / "fpga.md"
_MARKED = re.compile(r"(<!-- silicon -->)\n.*?(<!-- /silicon -->)", re.DOTALL)
HINT = "if the change is meant, `python -m benchmarks.silicon --write` records it: commit it with the change"

Row = dict[str, Any]


def flow(stages: Stages | None = None) -> Flow:
    """Return the flow by which all blocks are measured."""
    return Flow(PART, TARGET, stages or Stages(quiet=True))


def block(name: str) -> Netlist:
    """Return the netlist of a block of the preset."""
    return elaborated(preset(PRESET), name)


def measure(netlist: Netlist, stages: Stages | None = None) -> Row:
    """Place and route with all seeds. Raises :class:`sim.toolchain.BuildError`.

    The row holds ``fmax_worst`` and ``fmax_median`` in MHz, ``mult``, ``lut``, ``lut_percent`` of the part, ``seeds``,
    ``worst_path`` from line to line, and ``netlist``, which tells netlists apart.
    """
    result, _ = flow(stages).run(netlist, SEEDS)
    use = result["use"]
    return {
        "mult": use["mult"]["used"],
        "lut": use["lut"]["used"],
        "lut_percent": round(100 * use["lut"]["used"] / use["lut"]["available"], 1),
        "netlist": netlist.digest,
        **_clocks(netlist, result),
    }


def taken(name: str, stages: Stages) -> Row:
    """Synthesise the machine of the preset ``name``, and place and route it where that succeeds. Raises
    :class:`sim.toolchain.BuildError`.

    The row holds what it takes: ``mult``, ``lut``, ``lut_percent`` of the part, ``ff``, ``bram``; ``products``, the
    multipliers that its products would take if there were as many; and ``tool``. Of one that was routed, ``fmax_worst``
    and ``fmax_median`` in MHz, ``seeds``, ``worst_path`` and ``router``, the tool.
    """
    part, most, _, target, seeds, logic = MACHINES[name]
    netlist = elaborated(preset(name))
    flow = Flow(part, target, stages, most, *MACHINE_TOOLS, logic=logic, rip_up=True)
    mapped = flow.mapped(netlist)
    cells = by_module(top_of(mapped), (), 0)[0]
    row: Row = {kind: cells[kind] for kind in ("mult", "lut", "ff", "bram")}
    row |= {
        "lut_percent": round(100 * row["lut"] / part.luts, 1),
        "products": blocks_of_products(netlist.text),
        "tool": version("synthesis"),
    }
    if seeds:
        result, _ = flow.with_room(mapped).run(netlist, seeds)
        row |= {**_clocks(netlist, result), "router": version("place and route")}
    return row


def _clocks(netlist: Netlist, result: Mapping[str, Any]) -> Row:
    """Return what a row says of clocks, which are those of all seeds or none."""
    for seed, told in result["unrouted"].items():
        raise BuildError(f"{netlist.name} was not routed by seed {seed}: {told}")
    path = result["paths"][0]
    return {
        "fmax_worst": result["fmax"]["worst"],
        "fmax_median": result["fmax"]["median"],
        "seeds": len(result["seeds"]),
        "worst_path": f"{path['start']} -> {path['end']}",
    }


def worse(name: str, old: Row, new: Row) -> list[str]:
    """Return in which ways a block has become worse by more than the tools alone explain."""
    found = []
    for figure in ("fmax_worst", "fmax_median"):
        least = old[figure] * (1 - FMAX_TOLERANCE)
        if new[figure] < least:
            found.append(
                f"{name}: {figure} {old[figure]:.1f} -> {new[figure]:.1f} MHz, must be {least:.1f}: {new['worst_path']}"
            )
    if new["mult"] > old["mult"]:
        found.append(f"{name}: multipliers {old['mult']} -> {new['mult']}")
    if new["lut"] > old["lut"] * (1 + LUT_TOLERANCE):
        found.append(f"{name}: LUTs {old['lut']:,} -> {new['lut']:,}")
    return found


def read() -> dict[str, dict[str, Any]]:
    """Return what is recorded: rows of ``presets`` and ``blocks``, and the ``tools``, ``part`` and ``target`` that they
    were measured with."""
    return json.loads(FILE.read_text())


def changed(name: str, netlist: Netlist, recorded: Mapping[str, Row]) -> bool:
    """Return whether a block is another than the recorded one, or was never recorded."""
    return recorded.get(name, {}).get("netlist") != netlist.digest


def page(text: str, recorded: Mapping[str, Any]) -> str:
    """Return ``text``, the page :data:`PAGE`, with what is recorded between its markers."""
    head = ["block", "MHz, worst", "median", "multipliers", "LUTs", "of the part", "worst path"]
    lines = [f"| {' | '.join(head)} |", "|---|---:|---:|---:|---:|---:|---|"]
    for name in hw.BLOCKS:
        row = recorded["blocks"].get(name)
        if row:
            lines.append(
                f"| {name} | {row['fmax_worst']:.1f} | {row['fmax_median']:.1f} | {row['mult']} | {row['lut']:,} "
                f"| {row['lut_percent']} % | `{row['worst_path']}` |"
            )
    about = recorded.get("measured")
    told = (
        f"{about['device']}, speed grade {about['speed']}, seeds 1 to {len(SEEDS)}, "
        f"target {about['target_mhz']:g} MHz, "
        f"{' and '.join(about['tools'])}."
        if about
        else ""
    )
    return _MARKED.sub(lambda found: "\n".join([found[1], *lines, "", told, found[2]]), text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="How fast blocks of the RTL are on an ECP5.")
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join(hw.BLOCKS)}, or with --machines of presets; all by default"
    )
    parser.add_argument("--write", action="store_true", help="record what was measured")
    parser.add_argument(
        "--machines", action="store_true", help="tell what whole machines take and reach, instead of blocks"
    )
    parser.add_argument("--all", action="store_true", help="place blocks that have not changed, too")
    given = parser.parse_args(arguments)
    known = MACHINES if given.machines else hw.BLOCKS
    if unknown := set(given.names) - set(known):
        parser.error(f"no {', '.join(sorted(unknown))} among {', '.join(known)}")
    chosen = given.names or known
    recorded = read()
    stages, bad = Stages(subject="silicon", announcement="placing and routing what has changed"), []
    for name in chosen if given.machines else ():
        machine = taken(name, stages)
        print(f"{name}: {machine}")
        if given.write:
            recorded["presets"][name] = machine
            FILE.write_text(json.dumps(recorded, indent=1) + "\n")
    for name in () if given.machines else chosen:
        netlist = block(name)
        if not given.all and not changed(name, netlist, recorded["blocks"]):
            print(f"{name}: as recorded")
            continue
        row = measure(netlist, stages)
        old = recorded["blocks"].get(name)
        bad += worse(name, old, row) if old else []
        print(
            f"{name}: {row['fmax_worst']:.1f} MHz, {row['lut']:,} LUTs, {row['mult']} multipliers: {row['worst_path']}"
        )
        if given.write:
            recorded["blocks"][name] = row
            recorded["measured"] = {
                "device": PART.device, "speed": PART.speed, "target_mhz": TARGET, "preset": PRESET,
                "tools": [version("synthesis"), version("place and route")],
            }  # fmt: skip
            FILE.write_text(json.dumps(recorded, indent=1) + "\n")
            PAGE.write_text(page(PAGE.read_text(), recorded))
    print(*bad, *([HINT] if bad and not given.write else []), sep="\n")
    return int(bool(bad) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
