"""Cells that are moved about: by the rules of a tile, to shorter paths and fewer wires, and the design stays what it
is."""

import json
import re
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from caesura.fpga import boards, routing, spacing, tools
from caesura.fpga.annealing.design import PlacedDesign
from caesura.fpga.annealing.schedule import anneal
from caesura.fpga.annealing.tile_cells import PLAIN, TIED, TOGETHER
from caesura.fpga.flow import MACHINE_TOOLS, Flow
from caesura.fpga.netlist import in_harness
from caesura.fpga.paths import CellDelays
from caesura.fpga.spacing import GAP
from caesura.fpga.synthesis import top_of
from sim.toolchain import Stages

pytestmark = pytest.mark.skipif(
    any(tools.found(need) is None for need in tools.PACKAGES), reason="pip install 'caesura-npu[fpga]'"
)
PART = boards.PARTS["lfe5um5g-25f"]
SEED = 3
WIRELESS = {"FCI", "FXA", "FXB", "F1", "DI"}
_BEL = re.compile(r"(X(\d+)/Y(\d+))/SLICE([A-D])\.(K|FF|RAMW)(\d?)")


class Everything(wiring.Component):
    """All that lies in tiles of logic: chains longer than a tile, tables that select, RAM, enables, and resets."""

    def __init__(self) -> None:
        super().__init__({"x": In(40), "y": Out(40)})

    def elaborate(self, platform):
        m = Module()
        sums = [Signal(40, name=f"sum{k}") for k in range(8)]
        words = [Signal(16, name=f"word{k}") for k in range(32)]
        chosen = Signal(16)
        m.submodules.memory = memory = Memory(shape=24, depth=16, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [write.en.eq(self.x[0]), write.addr.eq(self.x[1:5]), write.data.eq(sums[0])]
        m.d.comb += read.addr.eq(sums[1])
        for k, total in enumerate(sums):
            with m.If(self.x[k + 3] & self.x[8]):
                m.d.sync += total.eq(Mux(self.x[k], 0, total + (sums[k - 1] ^ self.x)))
        for k, word in enumerate(words):
            with m.If(self.x[k % 7] ^ sums[k % 8][5]):
                m.d.sync += word.eq(Cat(sums[k % 8][:8], self.x[k % 5 :]) ^ word.rotate_left(k % 16))
        m.d.sync += [chosen.eq(Array(words)[sums[3][:5]]), self.y.eq(Cat(chosen, read.data))]
        return m


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return Flow(PART, 100.0, Stages(quiet=True)).mapped(in_harness("everything", Everything()))


OPTIONS = routing.arguments(PART, SEED, 100.0, *MACHINE_TOOLS)


@pytest.fixture(scope="module")
def placed(mapped, tmp_path_factory):
    return routing.place(mapped, OPTIONS, PART, 5, tmp_path_factory.mktemp("placed"))


@pytest.fixture
def design(placed, tmp_path):
    (tmp_path / "delays.sdf").write_bytes(placed.delays)
    return PlacedDesign(placed.design, CellDelays.read(tmp_path / "delays.sdf"), spacing.logic(PART))


def broken_rules(placed):
    """What a placement breaks of the rules of ``nextpnr-ecp5`` for a tile of logic, in words of its own."""
    cells = top_of(placed)["cells"]
    tiles, where, source = defaultdict(dict), {}, {}
    broken, logic = [], spacing.logic(PART)
    for name, cell in cells.items():
        if place := _BEL.fullmatch(cell["attributes"]["NEXTPNR_BEL"]):
            tile, x, y, half, kind, number = place.groups()
            key = kind, 2 * "ABCD".index(half) + int(number or 0)
            if key in tiles[tile]:
                broken.append(f"two cells in {tile} {key}")
            tiles[tile][key] = cell
            where[name] = int(x), int(y), key[1]
            if int(x) not in logic.get(int(y), ()):
                broken.append(f"no logic in {tile}")
        for port, way in cell["port_directions"].items():
            if way == "output" and cell["connections"][port]:
                source[cell["connections"][port][0]] = name
    for name, cell in cells.items():
        if name not in where or name.startswith(GAP):
            continue
        x, y, half = where[name]
        from_ = {port: where.get(source.get(bits[0])) for port, bits in cell["connections"].items() if bits}
        rules = {
            "DI": (x, y, half), "F1": (x, y, half ^ 1), "WD": (x, y, 4), "WAD0": (x, y, 4),
            "FCI": (x, y, half - 1) if half else (x - 1, y, 7),
        }  # fmt: skip
        broken += [f"{port} of {name}" for port, place in rules.items() if port in from_ and from_[port] != place]
        if "FXA" in from_:
            selected = [(x, y, half + step) for step in ((-2, 2) if half == 3 else (-1, 1))]
            if half not in (1, 3, 5) or sorted(from_[port] for port in ("FXA", "FXB")) != selected:
                broken.append(f"FXA or FXB of {name}")
    for tile, at in tiles.items():
        registers = {half: cell for (kind, half), cell in at.items() if kind == "FF" and "CLK" in cell["connections"]}
        joined = [_common(cell, ("CLK", "LSR"), ("CLKMUX", "LSRMUX", "SRMODE")) for cell in registers.values()]
        if len(set(joined)) > 1:
            broken.append(f"clocks and resets in {tile}")
        for low in range(0, 8, 2):
            pair = [registers[half] for half in (low, low + 1) if half in registers]
            if len({_common(cell, ("CE",), ("CEMUX", "GSR")) for cell in pair}) > 1:
                broken.append(f"enables in {tile}")
        for half, register in registers.items():
            table = at.get(("K", half))
            if register["connections"].get("M") and table and table["connections"].get("M"):
                broken.append(f"M of {tile} {half}")
    return broken


def _common(cell, ports, names):
    return tuple(str(cell["connections"].get(port)) for port in ports) + tuple(
        str(cell["parameters"].get(name)) for name in names
    )


def places_of(placed):
    return {name: cell["attributes"]["NEXTPNR_BEL"] for name, cell in top_of(placed)["cells"].items()}


def without_places(placed):
    cells = top_of(placed)["cells"]
    for cell in cells.values():
        cell["attributes"].pop("NEXTPNR_BEL")
    return cells


def test_the_design_has_all_that_lies_in_tiles(design):
    kinds = design.arrays["kind"]
    assert all(np.count_nonzero(kinds & kind) > 20 for kind in (PLAIN, TIED, TOGETHER))
    assert design.arrays["goes_on"].sum() > 10 and (design.arrays["writer"] >= 0).sum() > 3
    cells = top_of(design.written())["cells"].values()
    assert any(cell["connections"].get("FXA") for cell in cells)
    assert any(cell["connections"].get("F1") and not cell["connections"].get("FXA") for cell in cells)


def test_cells_come_to_lie_where_they_may_and_it_is_better(design, placed):
    assert broken_rules(placed.design) == [] and design.written() and broken_rules(design.written()) == []
    before, after = anneal(design, SEED)
    moved = design.written()
    assert broken_rules(moved) == []
    assert without_places(moved) == without_places(placed.design)
    assert after.path < 0.97 * before.path or after.wires < 0.9 * before.wires
    assert after.path <= before.path and after.wires <= before.wires

    # All kinds of cells were moved, and what keeps rows empty was not.
    at, now_at = map(places_of, (placed.design, moved))
    changed = {name for name in at if at[name] != now_at[name]}
    kinds = dict(zip(design.names, design.arrays["kind"].tolist(), strict=True))
    for kind in (PLAIN, TIED, TOGETHER):
        assert sum(bool(kinds[name] & kind) for name in changed) > 10
    assert not any(name.startswith(GAP) for name in changed)
    assert any(at[name].endswith("RAMW") for name in changed)


def test_rules_are_kept_while_it_is_hot(placed, tmp_path):
    """Where it ends early, much has been moved that would not have stayed."""
    (tmp_path / "delays.sdf").write_bytes(placed.delays)
    delays, logic = CellDelays.read(tmp_path / "delays.sdf"), spacing.logic(PART)
    for seed in (1, 2):
        design = PlacedDesign(placed.design, delays, logic)
        anneal(design, seed, stages=20)
        assert broken_rules(design.written()) == []


def test_a_seed_gives_one_placement(placed, tmp_path):
    (tmp_path / "delays.sdf").write_bytes(placed.delays)
    delays, logic = CellDelays.read(tmp_path / "delays.sdf"), spacing.logic(PART)

    def result(seed):
        design = PlacedDesign(placed.design, delays, logic)
        anneal(design, seed, moves=2, stages=3)
        return design.written()

    assert result(1) == result(1) != result(2)


def test_the_longest_path_is_that_of_the_delays(design, placed, tmp_path):
    """By nextpnr's estimate of wires, but for long ones, and for those within a tile that are there for it."""
    (tmp_path / "delays.sdf").write_bytes(placed.delays)
    delays = CellDelays.read(tmp_path / "delays.sdf")
    places = zip(*(design.arrays[name].tolist() for name in ("column", "row", "half")), strict=True)
    at = dict(zip(design.names, places, strict=True))
    within = []

    def wire(one, to, pin):
        (*tile, half), (*other, other_half) = at[one[0]], at[to]
        far = [abs(a - b) for a, b in zip(tile, other, strict=True)]
        near = sum(min(5, step) for step in far)
        if pin in "ABCD" and tile == other and (half == other_half if one[1] == "Q" else half not in (1, 6)):
            within.append(to)
            return 0
        return 0 if pin in WIRELESS else design.unit * (6 + 2 * near + 0.7 * (sum(far) - near))

    ways = {
        pin: [(to, wire(pin, *to) if to[0] != pin[0] else delay) for to, delay in after]
        for pin, after in delays.ways.items()
    }
    when, _ = replace(delays, ways=ways).arrivals()
    expected = max(when[pin] + max(0, need) for pin, need in delays.setups.items() if pin in when)
    assert within and anneal(design, SEED, 0, 0)[0].path == pytest.approx(expected / 1000, abs=1e-3)


@pytest.mark.parametrize(
    ("one", "what"),
    [
        (("K", "DI"), "DI of"),
        (("K", "FCI"), "FCI of"),
        (("K", "F1"), "F1 of"),
        (("RAMW", "A0"), "WD of"),
        (("FF", "LSR"), "clocks and resets"),
        (("FF", "CE"), "enables"),
    ],
)
def test_a_rule_that_is_broken_is_seen(placed, one, what):
    """The check of these tests itself: two cells are swapped that must not be."""
    design = json.loads(placed.design)
    cells = {n: c for n, c in design["modules"]["top"]["cells"].items() if not n.startswith(GAP)}
    kind, port = one
    source = {
        bits[0]: name for name, cell in cells.items() for p, bits in cell["connections"].items()
        if bits and cell["port_directions"][p] == "output"
    }  # fmt: skip

    def bel(name):
        return cells[name]["attributes"]["NEXTPNR_BEL"]

    joined = [name for name in cells if _BEL.fullmatch(bel(name)) and cells[name]["connections"].get(port)]
    if kind == "K":
        joined = [source[cells[name]["connections"][port][0]] for name in joined]
        joined = [name for name in joined if _BEL.fullmatch(bel(name))]
    first = joined[0]
    ways = {"K": r"\.K", "FF": r"\.FF", "RAMW": "RAMW"}[kind]
    tile = bel(first).rpartition("/")[0]
    others = [name for name in cells if re.search(ways, bel(name)) and not bel(name).startswith(f"{tile}/")]
    if kind == "FF":
        mine = cells[first]["connections"][port]
        others = [name for name in others if cells[name]["connections"].get(port) != mine]
    for name in others:
        one, two = cells[first]["attributes"], cells[name]["attributes"]
        one["NEXTPNR_BEL"], two["NEXTPNR_BEL"] = two["NEXTPNR_BEL"], one["NEXTPNR_BEL"]
        if any(what in line for line in broken_rules(json.dumps(design).encode())):
            return
        one["NEXTPNR_BEL"], two["NEXTPNR_BEL"] = two["NEXTPNR_BEL"], one["NEXTPNR_BEL"]
    pytest.fail("no swap breaks it")


def test_nextpnr_takes_what_was_moved(mapped, placed, tmp_path):
    """It checks a placement by itself, and routes this one."""
    moved = routing.annealed(placed, PART, SEED, tmp_path)
    result, config = routing.route_placed(moved, mapped, (), OPTIONS, SEED, tmp_path)
    assert config and result["fmax"] > 50
    before, after = places_of(moved), places_of((tmp_path / "placed.json").read_bytes())
    assert {name: after[name] for name in before} == before
