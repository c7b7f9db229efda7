"""All backends on the same calls: same data, same cycles, same errors."""

import random
import re

import pytest

from hw.contract.bus import Bus, BusError, BusTimeout, HostCosts
from hw.contract.params import preset
from sim.rtl import PysimBus, SimTop
from sim.rtl.cxxrtl import cxxrtl_bus
from sim.rtl.native.build import native_bus
from tests.sim.rtl.stub_soc import (
    BAD,
    BEATS,
    BURSTS,
    DEAD,
    DESTINATION,
    DONE,
    SOURCE,
    START,
    StubSoc,
)  # fmt: skip

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024, dram_refresh_interval=700, dram_refresh_cycles=90)


def interpreted(**options):
    return PysimBus(top(), **options)


def native(**options):
    return native_bus(PARAMS, top, **options)


def cxxrtl(**options):
    return cxxrtl_bus(PARAMS, top, **options)


COMPILED = [native, cxxrtl]
BACKENDS = [interpreted, *COMPILED]


def top():
    return SimTop(PARAMS, StubSoc(PARAMS))


@pytest.fixture(params=BACKENDS)
def bus(request):
    with request.param() as bus:
        yield bus


def random_traffic(bus, seed):
    """Random calls; returns everything the host sees."""
    rng = random.Random(seed)
    seen = []
    for _ in range(40):
        action = rng.randrange(7)
        address = rng.randrange(PARAMS.dram_bytes - 300)
        if action == 0:
            seen.append(bus.read_reg(4 * rng.randrange(16)))
        elif action == 1:
            bus.write_reg(4 * rng.randrange(5, 16), rng.choice((0, rng.getrandbits(32))))
        elif action == 2:
            bus.write_mem(address, rng.randbytes(rng.randrange(300)), charge=rng.random() < 0.5)
        elif action == 3:
            seen.append(bus.read_mem(address, rng.randrange(300), charge=rng.random() < 0.5))
        elif action == 4:
            bus.advance(rng.randrange(200))
        elif action == 5:
            seen.append(bus.wait_irq(rng.randrange(300)))
        else:
            for register, value in (
                (SOURCE, rng.randrange(8) * 4096),
                (DESTINATION, rng.randrange(8, 16) * 4096),
                (BEATS, rng.choice((1, 3, 16))),
                (BURSTS, rng.randrange(1, 6)),
                (START, 1),
            ):
                bus.write_reg(register, value)
        seen.append(bus.cycle)
    seen.append(bus.read_mem(0, PARAMS.dram_bytes))
    return seen


@pytest.mark.parametrize(
    ("per_256", "costs", "seeds"),
    [
        pytest.param(64, HostCosts(), 1, id="64-costs"),
        pytest.param(None, HostCosts.free(), 3, id="None-free"),
        *(
            pytest.param(per_256, costs, 3, id=f"{per_256}-{name}-slow", marks=pytest.mark.slow)
            for per_256, costs, name in [
                (None, HostCosts(), "costs"),
                (64, HostCosts(), "costs"),
                (200, HostCosts(), "costs"),
                (64, HostCosts.free(), "free"),
                (200, HostCosts.free(), "free"),
            ]
        ),
    ],
)
def test_backends_agree_cycle_for_cycle(per_256, costs, seeds):
    with interpreted(costs=costs) as reference, native(costs=costs) as ours, cxxrtl(costs=costs) as theirs:
        for seed in range(seeds):
            seen = []
            for bus in (reference, ours, theirs):
                if per_256 is not None:
                    bus.set_stalls(seed + 1, per_256)
                seen.append(random_traffic(bus, seed))
            assert seen[0] == seen[1] == seen[2]


def dma_cycles(bus):
    start = bus.cycle
    for register, value in ((BEATS, 16), (BURSTS, 30), (DESTINATION, 0x1000), (START, 1)):
        bus.write_reg(register, value)
    assert bus.wait_irq(100_000)
    cycles = bus.cycle - start
    bus.write_reg(DONE, 0)
    return cycles


def test_stalls_cost_time_depend_on_the_seed_and_can_be_switched_off():
    def run(*settings):
        with native(costs=HostCosts.free()) as bus:
            bus.advance(12 - len(settings))
            for seed, per_256 in settings:
                bus.set_stalls(seed, per_256)
            return dma_cycles(bus)

    undisturbed = run()
    assert run((1, 0)) == run((1, 200), (1, 0)) == undisturbed
    assert run((1, 200)) == run((2, 100), (1, 200)) > 1.3 * undisturbed
    assert run((2, 200)) != run((1, 200))


@pytest.mark.parametrize("settings", [(0, 1), (1 << 32, 1), (1, 256), (1, -1)])
def test_impossible_stalls_are_named(bus, settings):
    with pytest.raises(ValueError, match=f"not {settings[0]} and {settings[1]}"):
        bus.set_stalls(*settings)


@pytest.mark.parametrize("backend", COMPILED)
def test_the_outputs_agree_in_every_single_cycle(backend):
    with PysimBus(top(), costs=HostCosts.free()) as reference, backend(costs=HostCosts.free()) as compiled:
        lines = []
        for bus in (reference, compiled):
            bus.write_mem(0, bytes(range(256)))
            for register, value in ((BEATS, 4), (BURSTS, 3), (DESTINATION, 0x1000), (START, 1)):
                bus.write_reg(register, value)
            line = []
            for _ in range(200):
                line.append((bus._irq(), bus._response()))
                bus.advance(1)
            lines.append(line)
        assert lines[0] == lines[1]
        assert lines[0][0][0] is False and lines[0][-1][0] is True


def test_it_is_a_bus_with_the_documented_costs(bus):
    assert isinstance(bus, Bus)
    costs = HostCosts()
    bus.write_reg(4 * 15, 0x12345678)
    assert bus.read_reg(4 * 15) == 0x12345678
    assert bus.cycle == 2 * costs.register_access
    bus.write_mem(60, bytes(8))
    assert bus.cycle == 2 * costs.register_access + 2 * costs.memory_line
    bus.write_mem(0, bytes(8000), charge=False)
    assert bus.cycle == 2 * costs.register_access + 2 * costs.memory_line


def test_wait_irq_returns_at_once_if_the_line_is_high_and_gives_up_at_the_limit(bus):
    assert not bus.wait_irq(123)
    assert bus.cycle == 123
    bus.write_reg(DONE, 1)
    before = bus.cycle
    assert bus.wait_irq(123)
    assert bus.cycle == before + HostCosts().interrupt


def test_dma_through_the_dram_model(bus):
    rng = random.Random(5)
    data = rng.randbytes(1024)
    bus.write_mem(0, data, charge=False)
    for register, value in ((BEATS, 16), (BURSTS, 8), (DESTINATION, 0x2000), (START, 1)):
        bus.write_reg(register, value)
    assert bus.wait_irq(1000)
    assert bus.read_mem(0x2000, 1024) == data
    assert bus.read_reg(DONE) == 8


@pytest.mark.parametrize("access", ["read", "write"])
def test_refused_and_unanswered_register_accesses(bus, access):
    def perform(address):
        return bus.read_reg(address) if access == "read" else bus.write_reg(address, 1)

    with pytest.raises(BusError, match=r"register 0x0e00.*error"):
        perform(BAD)
    with pytest.raises(BusError, match="multiple of 4"):
        perform(2)
    with pytest.raises(BusTimeout, match=r"register 0x0f00.*no answer within 10000 cycles"):
        perform(DEAD)


@pytest.mark.parametrize(("address", "size"), [(PARAMS.dram_bytes, 1), (PARAMS.dram_bytes - 4, 5), (-1, 1)])
def test_memory_accesses_beyond_the_dram_name_address_and_size(bus, address, size):
    with pytest.raises(BusError, match=re.escape(f"{size} bytes at {address:#x}")):
        bus.read_mem(address, size)
    with pytest.raises(BusError, match=re.escape(f"{size} bytes at {address:#x}")):
        bus.write_mem(address, bytes(size))


def test_a_closed_bus_refuses_everything(bus):
    bus.close()
    bus.close()
    for call in (
        lambda: bus.read_reg(0),
        lambda: bus.write_reg(0, 0),
        lambda: bus.read_mem(0, 1),
        lambda: bus.write_mem(0, b"x"),
        lambda: bus.wait_irq(1),
        lambda: bus.advance(1),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()


@pytest.mark.parametrize("backend", [interpreted, cxxrtl])
def test_waveforms_are_written(backend, tmp_path):
    path = tmp_path / "wave.vcd"
    with backend(vcd=path) as bus:
        bus.write_reg(4 * 15, 0xFEEDF00D)
    text = path.read_text()
    assert f"{0xFEEDF00D:032b}" in text
    assert re.search(r"\$var (wire|reg) +32 \S+ reg15", text)


def test_progress_is_reported():
    seen = []
    with PysimBus(top(), progress=seen.append) as bus:
        bus.advance(3000)
    assert seen == [1000, 2000, 3000]
