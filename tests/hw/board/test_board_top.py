"""The whole board in Amaranth's simulator, which the compiled one has to equal."""

import pytest

from hw.contract.params import KIB, preset
from hw.contract.regs import ID_VALUE, global_reg
from sw.serial import SerialBus
from tests.support.far_end import simulated_line

PARAMS = preset("nano").replace(dram_bytes=256 * KIB)


def accesses(native: bool) -> list:
    bus = SerialBus(simulated_line(PARAMS, native=native), PARAMS)
    bus.write_mem(0x105, b"some bytes")
    found = [bus.cycle, bus.read_reg(global_reg("ID")), bus.read_mem(0x104, 12), bus.read_reg(global_reg("CYCLE_LO"))]
    bus.close()
    return found


@pytest.mark.slow
def test_both_simulators_agree_cycle_for_cycle():
    found = accesses(native=False)
    assert found[1:3] == [ID_VALUE, b"\0some bytes\0"]
    assert found == accesses(native=True)
