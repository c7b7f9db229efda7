"""The order of bundles within a cycle: registers change in place wherever some order allows it."""

from amaranth.hdl import Module, Signal
from amaranth.lib.memory import Memory

from sim.rtl import SimTop
from sim.rtl.native.bundles import make_bundles
from sim.rtl.native.cells import read_cells
from sim.rtl.native.lower import lower
from sim.rtl.native.order import Schedule, make_schedule
from tests.sim.rtl.native.test_refusals import PARAMS, Part

STAGES = 6


def _stages(m: Module, widths: list[int]) -> list[Signal]:
    """A register in a module of its own for each width; each may be read by the others."""
    stages = [Signal(width, name=f"stage{k}") for k, width in enumerate(widths)]
    for k in range(len(stages)):
        m.submodules[f"part{k}"] = Module()
    return stages


def pipeline_into_a_ring(m: Module) -> Signal:
    """The last two read each other, and are wider than what comes before: whoever goes by bits lets that go first."""
    stages = _stages(m, [4 * k for k in range(1, STAGES + 1)])
    for k in range(STAGES):
        later = stages[-1] if k == STAGES - 2 else 0
        getattr(m.submodules, f"part{k}").d.sync += stages[k].eq((stages[k - 1] if k else stages[0]) * 3 + 1 + later)
    return stages[-1].xor()


def ring(m: Module) -> Signal:
    """Each reads the one before it, and the first one the last."""
    stages = _stages(m, [8] * STAGES)
    for k in range(STAGES):
        getattr(m.submodules, f"part{k}").d.sync += stages[k].eq(stages[k - 1] + 5)
    return stages[-1].xor()


def memory_behind_its_reader(m: Module) -> Signal:
    """Who writes comes first by name and number."""
    rows, row, seen = Signal(8), Signal(8), Signal(8)
    m.submodules.memory = memory = Memory(shape=8, depth=16, init=[])
    write, read = memory.write_port(), memory.read_port(domain="comb")
    m.submodules.writer, m.submodules.reader = writer, reader = Module(), Module()
    writer.d.sync += rows.eq(rows + 3)
    m.d.comb += [write.en.eq(rows[0]), write.addr.eq(rows[:4]), write.data.eq(rows), read.addr.eq(row[:4])]
    reader.d.sync += [row.eq(row + 1), seen.eq(seen ^ read.data)]
    return seen.xor()


def _schedule(build) -> tuple[Schedule, set[str]]:
    """The order, and the registers of ``build`` that change at the end of a cycle."""
    design = lower(read_cells(SimTop(PARAMS, Part(build))), [])
    schedule = make_schedule(design, make_bundles(design))
    late = {design.nodes[one.node].info[0] for one in design.registers if one.node not in schedule.in_place}
    return schedule, {name.split(".")[-1] for name in late if "stage" in name}


def test_a_pipeline_changes_in_place_whatever_it_leads_to():
    assert _schedule(pipeline_into_a_ring)[1] < {f"stage{STAGES - 2}", f"stage{STAGES - 1}"}


def test_of_a_ring_one_register_waits():
    assert len(_schedule(ring)[1]) == 1


def test_a_memory_is_written_at_once_behind_its_reader():
    assert len(_schedule(memory_behind_its_reader)[0].written_at_once) == 1
