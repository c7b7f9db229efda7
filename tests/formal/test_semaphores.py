from functools import reduce
from operator import or_

import pytest
from amaranth.hdl import Assert, Assume, Cat, Module, Signal

from hw.contract.params import preset
from hw.control.semaphores import SemaphoreFile
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
    clear, load, group, counts = Signal(), Signal(), Signal(2), Signal(64)
    m.d.comb += [dut.index.eq(index), dut.request.eq(request)]
    m.d.comb += [
        dut.setup.clear.eq(clear),
        dut.setup.load.eq(load),
        dut.setup.group.eq(group),
        dut.setup.counts.eq(counts),
    ]
    m.d.comb += [port.eq(value) for port, value in zip(dut.wait, waits, strict=True)]
    m.d.comb += [port.eq(value) for port, value in zip(dut.signal, signals, strict=True)]

    previous, started = Signal(range(n)), Signal()
    m.d.sync += [previous.eq(index), started.eq(1)]
    m.d.comb += Assume(~started | (index == previous))

    added = sum(mask.bit_select(index, 1) for mask in signals)
    taken = sum(dut.grant[u] & waits[u].bit_select(index, 1) for u in range(UNITS))
    level = Signal(4)
    overflow = (level + added - taken) > PARAMS.semaphore_max
    # A body begins with everything cleared; the counts of a resumed one come before anything waits or signals.
    mine, count = load & (group == index[3:]), counts.word_select(index[:3], 8)
    busy = request.any() | Cat(signals).any()
    m.d.comb += [Assume(~load | (~clear & ~busy)), Assume(~mine | ((level == 0) & (count <= PARAMS.semaphore_max)))]
    with m.If(clear):
        m.d.sync += level.eq(0)
    with m.Elif(mine):
        m.d.sync += level.eq(count)
    with m.Else():
        m.d.sync += level.eq(level + added - taken)

    # An overflow ends the job. Counts mean nothing from then on, until a body begins.
    lost = Signal()
    m.d.sync += lost.eq(~clear & (lost | dut.overflow.any()))
    counts_hold = [
        dut.count == level,
        level <= PARAMS.semaphore_max,
        taken <= level,
        dut.overflow.bit_select(index, 1) == overflow,
        dut._nonzero == reduce(or_, dut._planes),
    ]
    m.d.comb += [
        Assert((dut.grant & (dut.grant - 1)) == 0),
        Assert((dut.grant & ~request) == 0),
        *(Assert(lost | claim) for claim in counts_hold),
    ]
    for u in range(UNITS):
        with m.If(dut.grant[u]):
            m.d.comb += Assert((waits[u] & ~dut.setup.nonzero) == 0)
        with m.If(request[u] & ((waits[u] & ~dut.setup.nonzero) == 0)):
            m.d.comb += Assert(dut.grant.any())
    prove(m, [index, request, clear, load, group, counts, *waits, *signals], tmp_path, depth=5, induction=True)
