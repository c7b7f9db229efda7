"""Blocks of the machine before and after synthesis: the same outputs in every cycle, for the same random inputs."""

import json

import pytest

from caesura.fpga import synthesise, with_own_ports
from hw import BLOCKS
from hw.contract.params import preset
from sim.gates import GateNetlist
from tests.support.gates import any_value, co_simulate

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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["requantiser", "semaphores"])
def test_a_block_does_the_same_after_synthesis(mapped, name):
    netlist = GateNetlist(mapped(name))
    for seed in range(3):
        assert co_simulate(lambda: BLOCKS[name](PARAMS), netlist, 2000, seed, seldom) > 500


@pytest.mark.slow
@pytest.mark.parametrize("name", ["requantiser", "semaphores"])
def test_wrong_look_up_tables_are_found(mapped, name):
    """One bit of a look-up table turned over, in one of many: of some nothing can be seen, as that row never comes."""
    design = json.loads(mapped(name))
    cells = design["modules"]["top"]["cells"]
    tables = sorted(one for one, cell in cells.items() if cell["type"] == "LUT4")
    found = 0
    for number, one in enumerate(tables[:: len(tables) // 10]):
        parameters, whole = cells[one]["parameters"], cells[one]["parameters"]["INIT"]
        at = number % len(whole)
        parameters["INIT"] = f"{whole[:at]}{1 - int(whole[at])}{whole[at + 1 :]}"
        try:
            co_simulate(lambda: BLOCKS[name](PARAMS), GateNetlist(json.dumps(design).encode()), 1000, 1, seldom)
        except AssertionError:
            found += 1
        parameters["INIT"] = whole
    assert found >= 3
