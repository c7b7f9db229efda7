"""Lockstep on the stub SoC: equal backends stay equal, and what it says of backends that are made to differ."""

import pytest

from hw.contract.bus import HostCosts
from sim.rtl.side_by_side import DisagreementError
from tests.sim.rtl.stub_soc import BEATS, BURSTS, DESTINATION, START
from tests.sim.rtl.test_backends import cxxrtl, native, random_traffic
from tests.support.lockstep import LockstepBus, LockstepError


def lockstep(**options):
    return LockstepBus(native(**options), cxxrtl(**options))


@pytest.fixture
def bus():
    with lockstep(costs=HostCosts.free()) as bus:
        yield bus


@pytest.mark.parametrize("per_256", [0, 64, 200])
@pytest.mark.parametrize("costs", [HostCosts(), HostCosts.free()], ids=["costs", "free"])
def test_every_register_agrees_in_every_cycle(per_256, costs):
    with lockstep(costs=costs) as bus:
        assert len(bus.compared) > 30 and not bus.unmatched
        bus.set_stalls(7, per_256)
        random_traffic(bus, 7)


def copy(bus):
    for register, value in ((BEATS, 16), (BURSTS, 3), (DESTINATION, 0x1000), (START, 1)):
        bus.write_reg(register, value)
    assert bus.wait_irq(1000)


def test_equal_backends_say_nothing(bus):
    bus.write_mem(0, bytes(range(256)))
    copy(bus)
    assert bus.read_mem(0x1000, 128) == bytes(range(128))


def test_a_difference_names_cycle_register_and_values(bus):
    bus.advance(10)
    bus.buses["cxxrtl"]._set("stall", 0, 7)
    with pytest.raises(LockstepError, match=r"after cycle 11: dram\.state \(32 bits\): native 0x0, cxxrtl 0x7"):
        bus.advance(5)


def test_different_memory_is_told(bus):
    bus.buses["cxxrtl"]._store(0x23, b"\x11")
    with pytest.raises(DisagreementError, match=r"DRAM at 0x23 differs in cycle 0: native 0, cxxrtl 17"):
        bus.read_mem(0, 64)


def test_wide_differences_are_put_together(bus):
    bus.buses["cxxrtl"]._store(0, bytes(range(1, 9)))
    with pytest.raises(LockstepError, match=r"\(\d\d bits\): native 0x[0-9a-f]+, cxxrtl 0x[0-9a-f]*807060504030201"):
        copy(bus)


def test_too_few_common_names_are_refused():
    ours, theirs = native(), cxxrtl()
    theirs.__class__ = type("OneName", (type(theirs),), {"register_names": [(1, "host.rsp_valid")]})
    with pytest.raises(LockstepError, match=r"only 1 of \d+ registers of native have one of the same name and width"):
        LockstepBus(ours, theirs)
    ours.close()
    theirs.close()
