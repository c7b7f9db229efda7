"""Runs the stages one after the other, those that are kept already left out, and gathers the result."""

import inspect
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from caesura.fpga import annealing, floor_plan, paths, routing, spacing, synthesis, tools
from caesura.fpga.bitstream import pack
from caesura.fpga.boards import Part
from caesura.fpga.netlist import Netlist
from sim.toolchain import BuildError, KeptStages, Stages, key_of

#: Placer and router of blocks, and of whole machines: nextpnr's own, and those that route a large design.
BLOCK_TOOLS = (routing.PLACERS[0], routing.ROUTERS[0])
MACHINE_TOOLS = (routing.PLACERS[1], routing.ROUTERS[1])
_FOLDER = "fpga"  #: of the cache
#: Expected seconds per byte where this machine has not done it before: of RTLIL for synthesis, of the mapped netlist.
_SYNTHESIS_RATE, _ROUTING_RATE = 1.5e-4, 1e-5


@dataclass(frozen=True)
class Flow:
    """Takes a netlist to a part: ``target`` is the clock that tools aim at, in MHz. ``multipliers`` is how many the
    netlist may take, by default as many as the part has; ``placer`` and ``router`` are of ``routing.PLACERS`` and
    ``routing.ROUTERS``. Each row of ``spacing`` stays empty; 0 for none. ``logic``: see
    :func:`caesura.fpga.synthesis.synthesise`; ``rip_up``: :func:`caesura.fpga.routing.arguments`. With ``anneal`` the
    placement is annealed before it is routed, see :mod:`caesura.fpga.annealing`."""

    part: Part
    target: float
    stages: Stages
    multipliers: int | None = None
    placer: str = BLOCK_TOOLS[0]
    router: str = BLOCK_TOOLS[1]
    spacing: int = 0
    logic: int | None = None
    rip_up: bool = False
    anneal: bool = False

    def with_room(self, mapped: bytes) -> "Flow":
        """Return a flow that leaves as many rows empty as a ``mapped`` netlist has room for on the part. Raises
        :class:`sim.toolchain.BuildError` without nextpnr, whose tables say where rows are."""
        tools.require("place and route")
        return replace(self, spacing=spacing.closest_spacing(mapped, self.part))

    def mapped(self, netlist: Netlist) -> bytes:
        """Return the netlist in cells of the part. Raises :class:`sim.toolchain.BuildError`."""
        about, logic = (netlist.text, synthesis.DEPENDS_ON, self.logic, tools.version("synthesis")), self.logic
        mapped = self._synthesised(
            netlist, key_of("mapped", *about), lambda of, work: synthesis.synthesise(of, work, logic)
        )
        most = self.part.multipliers if self.multipliers is None else self.multipliers
        excess = synthesis.multipliers(mapped) - most
        if excess <= 0:
            return mapped
        return self._synthesised(
            netlist, key_of("fewer", excess, *about),
            lambda of, work: synthesis.synthesise_without(of, excess, work, logic),
        )  # fmt: skip

    def _synthesised(self, netlist: Netlist, key: str, make: Callable[[Netlist, Path], bytes]) -> bytes:
        kept = KeptStages(_FOLDER)
        raw = kept.find(key)
        if raw is None:
            tools.require("synthesis")
            size = len(netlist.text)
            with self.stages.stage(f"{netlist.name}: synthesis", size=size, seconds=size * _SYNTHESIS_RATE):
                raw = kept.worked(key, lambda work: make(netlist, work))
            kept.keep(key, raw)
        return raw

    def routed(self, netlist: Netlist, mapped: bytes, seed: int) -> tuple[dict[str, Any], bytes]:
        """Return the result of one seed of the ``mapped`` netlist, see :func:`caesura.fpga.routing.route`, and its
        configuration. Raises :class:`caesura.fpga.tools.NotRoutedError`, or :class:`sim.toolchain.BuildError`."""
        kept = KeptStages(_FOLDER)
        options = routing.arguments(self.part, seed, self.target, self.placer, self.router, rip_up=self.rip_up)
        about = (mapped, self.spacing, options, self.part.pins, tools.version("place and route"))
        moved = annealing.DEPENDS_ON if self.anneal else ()
        key = key_of("routed", *about, *moved, *map(inspect.getsource, (routing, paths, floor_plan, spacing)))
        raw, config, unrouted = kept.find(key), kept.find(f"{key}-config"), kept.find(f"{key}-unrouted")
        if unrouted is not None:
            raise tools.NotRoutedError(unrouted.decode())
        if raw is None or config is None:
            tools.require("place and route")
            design = self._annealed(netlist, mapped, seed) if self.anneal else None
            try:
                with self._stage(netlist, mapped, "routing" if self.anneal else "place and route"):
                    result, config = kept.worked(
                        key, lambda work: self._route(netlist, mapped, design, options, seed, work)
                    )
            except tools.NotRoutedError as error:
                kept.keep(f"{key}-unrouted", str(error).encode())
                raise
            raw = json.dumps(result).encode()
            kept.keep(f"{key}-config", config)
            kept.keep(key, raw)
        return json.loads(raw), config

    def _route(
        self, netlist: Netlist, mapped: bytes, design: bytes | None, options: Sequence[str], seed: int, work: Path
    ) -> tuple[dict[str, Any], bytes]:
        if design is None:
            return routing.route(mapped, netlist.modules, options, self.part, seed, self.spacing, work)
        return routing.route_placed(design, mapped, netlist.modules, options, seed, work)

    def _annealed(self, netlist: Netlist, mapped: bytes, seed: int) -> bytes:
        """Return the annealed placement of one seed, the same whether the router is to rip up or not."""
        kept = KeptStages(_FOLDER)
        options = routing.arguments(self.part, seed, self.target, self.placer, self.router)
        about = (mapped, self.spacing, options, self.part.pins, tools.version("place and route"))
        key = key_of("placed", *about, *map(inspect.getsource, (routing, spacing)))
        after = key_of("annealed", key, *annealing.DEPENDS_ON)
        if (design := kept.find(after)) is not None:
            return design
        found, delays = kept.find(key), kept.find(f"{key}-delays")
        if found is None or delays is None:
            with self._stage(netlist, mapped, "placement"):
                placed = kept.worked(key, lambda work: routing.place(mapped, options, self.part, self.spacing, work))
            kept.keep(key, placed.design)
            kept.keep(f"{key}-delays", placed.delays)
        else:
            placed = routing.Placed(found, delays)
        with self._stage(netlist, mapped, "annealing"):
            design = kept.worked(after, lambda work: routing.annealed(placed, self.part, seed, work))
        kept.keep(after, design)
        return design

    def _stage(self, netlist: Netlist, mapped: bytes, what: str) -> AbstractContextManager[None]:
        size = len(mapped)
        return self.stages.stage(f"{netlist.name}: {what}", size=size, seconds=size * _ROUTING_RATE)

    def run(self, netlist: Netlist, seeds: Sequence[int]) -> tuple[dict[str, Any], bytes]:
        """Return what became of ``netlist``, as :func:`summary` puts it, and the bitstream of the fastest seed. Raises
        :class:`sim.toolchain.BuildError`, also where no seed is routed."""
        mapped, runs, unrouted = self.mapped(netlist), [], {}
        for seed in seeds:
            try:
                runs.append(self.routed(netlist, mapped, seed))
            except tools.NotRoutedError as error:
                unrouted[str(seed)] = str(error)
        if not runs:
            told = "; ".join(f"seed {seed}: {what}" for seed, what in unrouted.items())
            slower = ", a lower --target" if self.rip_up else ""
            raise BuildError(
                f"{netlist.name} was not routed on {self.part.device} ({told}): try more seeds{slower}, other rows "
                "left empty (--spacing) or a larger part; --area says what it takes"
            )
        _, config = max(runs, key=lambda run: run[0]["fmax"])
        kept = KeptStages(_FOLDER)
        key = key_of("bitstream", config, tools.version("place and route"))
        bits = kept.find(key)
        if bits is None:
            with self.stages.stage(f"{netlist.name}: bitstream", size=len(config), seconds=5):
                bits = kept.worked(key, lambda work: pack(config, work))
            kept.keep(key, bits)
        return summary([result for result, _ in runs], unrouted), bits


def summary(results: Sequence[dict[str, Any]], unrouted: Mapping[str, str]) -> dict[str, Any]:
    """Return what several seeds together say: ``fmax`` in MHz (``worst``, ``median``, ``best``), ``seeds`` with the
    clock of each, and ``use``, ``paths`` and ``floor`` of the slowest. All of it is of those that were routed;
    ``unrouted`` says of the others what the router had come to."""
    clocks = [result["fmax"] for result in results]
    slowest = min(results, key=lambda result: result["fmax"])
    return {
        "fmax": {"worst": min(clocks), "median": round(statistics.median(clocks), 2), "best": max(clocks)},
        "seeds": {str(result["seed"]): result["fmax"] for result in results},
        "unrouted": dict(unrouted),
        "use": {name: {"used": used, "available": available} for name, (used, available) in slowest["use"].items()},
        "paths": slowest["paths"],
        "floor": slowest["floor"],
    }


def write_files(folder: Path, manifest: dict[str, Any], bits: bytes) -> None:
    """Write ``manifest.json`` and ``design.bit``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    (folder / "design.bit").write_bytes(bits)
