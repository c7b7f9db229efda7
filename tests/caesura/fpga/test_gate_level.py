"""Blocks of the machine before and after synthesis: the same outputs in every cycle, for the same random inputs."""

import json

import pytest

from caesura.fpga import synthesise, with_own_ports
from hw import BLOCKS
from hw.board.sdram_memory import SdramMemory
from hw.contract.isa import Op
from hw.contract.params import KIB, preset
from hw.contract.sdram import SdramTiming
from hw.interfaces import COMMAND
from sim.gates import GateNetlist
from tests.hw.mac.harness import random_insn
from tests.support.gates import any_value, co_simulate
from tests.support.random_copies import SEGMENT, random_copy

pytest.importorskip("pyosys")
PARAMS = preset("tiny")


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """The netlist of a block, once."""
    made: dict[str, bytes] = {}

    def of(name: str) -> bytes:
        if name not in made:
            made[name] = synthesise(with_own_ports(name, BLOCKS[name](PARAMS)), tmp_path_factory.mktemp(name))
        return made[name]

    return of


def seldom(rng, name, bits):
    """Single bits that end something or start it anew are high now and then; all else is any value."""
    if bits == 1 and any(word in name for word in ("clear", "reset", "flush", "stop", "abort", "restore", "load")):
        return int(rng.random() < 0.02)
    return any_value(rng, name, bits)


def commanded(made):
    """Stimuli of a unit: commands that it can carry out, and ports that are mostly ready; seldom it ends for good."""

    def choice(rng, name, bits):
        if name == "unit__cmd__payload":
            insn = int.from_bytes(made(rng).encode(), "little")
            fields = {"insn": insn, "pc": rng.getrandbits(8), "src_limit": SEGMENT, "dst_limit": SEGMENT}
            return sum(value << COMMAND[key].offset for key, value in fields.items())
        if name == "unit__abort":
            return int(rng.random() < 0.0003)
        if bits == 1:
            return int(rng.random() < 0.9)
        return any_value(rng, name, bits)

    return choice


def with_table():
    """Stimuli of a lane whose table is written before anything is computed: the part does not say what is read of a
    word while it is written."""
    cycle = 0

    def choice(rng, name, bits):
        nonlocal cycle
        cycle += name == "en"
        if name == "table_write":
            return int(cycle < TABLE)
        return any_value(rng, name, bits)

    return choice


def short_command(rng):
    """A command of up to 96 cycles; a MAC unit takes two at a time."""
    while True:
        insn = random_insn(rng, PARAMS)
        if insn["n2"] * insn["n1"] * insn["n0"] <= 4:
            return insn


def in_turns():
    """Stimuli of a MAC unit: LD0 fills memories and accumulators, MAC runs, and when it is through VEC reads what there
    is, over and over: the part does not say what is read of a row while it is written."""
    made, cycle = commanded(short_command), 0

    def choice(rng, name, bits):
        nonlocal cycle
        cycle += name == "unit__abort"
        at = cycle % TURN
        allowed = {"lv0__valid": at < FILLED, "unit__cmd__valid": FILLED <= at < GIVEN, "acc__req__valid": at >= DONE}
        return made(rng, name, bits) if allowed.get(name, True) else 0

    return choice


FILLED, GIVEN, DONE, TURN = 60, 200, 420, 500  #: cycles of a MAC unit's turn
TABLE = 300
#: By block: what makes its stimuli, and the first cycle in which outputs mean something. Random inputs do not get the
#: executor to where a wrong table would be seen: it is left out.
BLOCKS_TESTED = {
    "requantiser": (lambda: seldom, 0),
    "semaphores": (lambda: seldom, 0),
    "lane": (with_table, TABLE + 40),
    "dma": (lambda: commanded(lambda rng: random_copy(rng, Op.LD1, PARAMS)), 0),
    "mac": (in_turns, 0),
}


def compared(name, netlist, cycles, seed):
    stimuli, begin = BLOCKS_TESTED[name]
    return co_simulate(lambda: BLOCKS[name](PARAMS), netlist, begin + cycles, seed, stimuli(), begin=begin)


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS_TESTED)
def test_a_block_does_the_same_after_synthesis(mapped, name):
    netlist = GateNetlist(mapped(name))
    for seed in range(3):
        assert compared(name, netlist, 4000 if name == "mac" else 2000, seed) > 150


def of_bursts(rng, name, bits):
    """Stimuli of a memory: short bursts within a few rows."""
    if name.endswith("addr"):
        return rng.getrandbits(13) << 3
    if name.endswith("len"):
        return rng.randrange(8)
    return int(rng.random() < 0.7) if bits == 1 else any_value(rng, name, bits)


def test_a_memory_of_sdram_does_the_same_after_synthesis(tmp_path):
    """Data pins say anything; commands, data and answers are compared."""

    def made():
        return SdramMemory(preset("nano").replace(dram_bytes=64 * KIB), SdramTiming.at(3))

    netlist = GateNetlist(synthesise(with_own_ports("memory", made()), tmp_path))
    begin = SdramTiming.at(3).start
    assert co_simulate(made, netlist, begin + 1500, 1, of_bursts, begin=begin) > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKS_TESTED)
def test_wrong_look_up_tables_are_found(mapped, name):
    """One bit of a look-up table turned over, in one of many: of some nothing can be seen, as that row never comes."""
    design = json.loads(mapped(name))
    cells = design["modules"]["top"]["cells"]
    tables = sorted(one for one, cell in cells.items() if cell["type"] == "LUT4")
    found = 0
    for number, one in enumerate(tables[:: len(tables) // 30]):
        parameters, whole = cells[one]["parameters"], cells[one]["parameters"]["INIT"]
        at = number % len(whole)
        parameters["INIT"] = f"{whole[:at]}{1 - int(whole[at])}{whole[at + 1 :]}"
        try:
            compared(name, GateNetlist(json.dumps(design).encode()), 1000, 1)
        except AssertionError:
            found += 1
        parameters["INIT"] = whole
    assert found >= 3, found
