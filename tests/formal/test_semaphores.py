import pytest
from amaranth.hdl import Assert, Assume, Module, Signal

from hw.control.semaphores import SemaphoreFile
from hw.params import preset
from tests.formal.harness import prove, specification

UNITS = 3
PARAMS = preset("tiny").replace(semaphores=16, semaphore_max=3)


@pytest.mark.formal
def test_semaphores_conserve_and_never_underflow(tmp_path):
    """One semaphore, any of them, against a plain counter."""
    m: Module = specification()
    m.submodules.dut = dut = SemaphoreFile(PARAMS, UNITS)
    n = PARAMS.semaphores
    index, request = Signal(range(n)), Signal(UNITS)
    waits = [Signal(n, name=f"wait{u}") for u in range(UNITS)]
    signals = [Signal(n, name=f"signal{u}") for u in range(UNITS)]
    m.d.comb += [dut.index.eq(index), dut.request.eq(request)]
    m.d.comb += [port.eq(value) for port, value in zip(dut.wait, waits, strict=True)]
    m.d.comb += [port.eq(value) for port, value in zip(dut.signal, signals, strict=True)]

    previous, started = Signal(range(n)), Signal()
    m.d.sync += [previous.eq(index), started.eq(1)]
    m.d.comb += Assume(~started | (index == previous))

    added = sum(mask.bit_select(index, 1) for mask in signals)
    taken = sum(dut.grant[u] & waits[u].bit_select(index, 1) for u in range(UNITS))
    level = Signal(4)
    overflow = (level + added - taken) > PARAMS.semaphore_max
    with m.If(~overflow):
        m.d.sync += level.eq(level + added - taken)

    m.d.comb += [
        Assert(dut.count == level),
        Assert(level <= PARAMS.semaphore_max),
        Assert(taken <= level),
        Assert(dut.overflow.bit_select(index, 1) == overflow),
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~request) == 0),
    ]
    for u in range(UNITS):
        with m.If(dut.grant[u]):
            m.d.comb += Assert((waits[u] & ~dut.nonzero) == 0)
        with m.If(request[u] & ((waits[u] & ~dut.nonzero) == 0)):
            m.d.comb += Assert(dut.grant.any())
    prove(m, [index, request, *waits, *signals], tmp_path, depth=5, induction=True)
