"""What the machine costs beside its work, in cycles, on the RTL and on the fast model: bodies that do nothing.

The durations are those that the accounts of time add to the work of layers and jobs. Host accesses cost nothing but the
bus cycles that they take (``REGISTER_ACCESS``).
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from hw.contract.bus import Bus, HostCosts
from hw.contract.isa import Insn, Op, Unit, VecOp
from hw.contract.job import JobFlag
from hw.contract.params import preset
from hw.contract.regs import EngineState, global_reg
from hw.contract.timing import COPY_LANDED, COPY_PLANNED
from sim.cost import overheads
from sim.cost.bound import worst_intervals
from sim.cost.dram import WorstDram
from sim.cost.exact.pipelines import vec_words
from sim.cost.rivals import Others
from sim.model import prepare
from sim.model.bus import ModelBus
from sim.rtl import open_bus
from tests.hw.soc_bench import END, SocBench, copy
from tests.sim.model.bench import record

_ENABLE, _RESET, _PAUSE = 1, 2, 4
_JOBS = 6
_POINT = Insn(Op.CANCEL, {"point": 1})
_LONG = 1500  #: cycles that are enough for everything
Measured = dict[str, int | list[int]]


def doorbell(soc: SocBench) -> Measured:
    """From the write of the doorbell, of jobs that wait for nothing, to the first body; and from each body to the
    next."""
    jobs = [soc.job([END]) for _ in range(_JOBS)]
    rung = soc.bus.cycle
    starts, ends = _ended(soc, jobs)
    return {"doorbell to body": starts[0] - rung, "body to body": _gaps(starts, ends)}


def event(soc: SocBench) -> Measured:
    """From the end of a body whose job signals an event to the body that waits for it, on the same engine."""
    jobs = [soc.job([END], flags=JobFlag.SIGNAL, signal_id=3)]
    for value in range(1, _JOBS):
        flags = JobFlag.WAIT0 | JobFlag.SIGNAL
        jobs.append(soc.job([END], flags=flags, wait0_id=3, wait0_value=value, signal_id=3))
    return {"behind an event": _gaps(*_ended(soc, jobs))}


def event_of_the_host(soc: SocBench) -> Measured:
    """From the host's write of an event to the body that waits for it."""
    job = soc.job([END], flags=JobFlag.WAIT0, wait0_id=9, wait0_value=1)
    soc.ring()
    soc.bus.advance(_LONG)
    told = soc.bus.cycle
    soc.bus.write_reg(global_reg("EVENT", 9), 1)
    soc.bus.advance(_LONG)
    return {"event of the host to body": soc.completion(job)["start"] - told}


def event_of_another_engine(soc: SocBench) -> Measured:
    """The same, where the body that signals is another engine's."""
    if soc.params.engines == 1:
        return {}
    waits = soc.job([END], engine=1, flags=JobFlag.WAIT0, wait0_id=5, wait0_value=1)
    soc.ring(1)
    soc.bus.advance(_LONG)
    signals = soc.job([END], flags=JobFlag.SIGNAL, signal_id=5)
    soc.ring()
    soc.bus.advance(_LONG)
    return {"behind another engine": soc.completion(waits, 1)["start"] - soc.completion(signals)["end"]}


def retirement(soc: SocBench) -> Measured:
    """From the end of a body to the interrupt that tells of its completion."""
    job = soc.job([END])
    soc.ring()
    return {"end to interrupt": _interrupted(soc) - soc.completion(job)["end"]}


def pause(soc: SocBench) -> Measured:
    """From the write of a pause to the interrupt of HALTED, in a body of nothing but points; and from that of its
    withdrawal to the end of the body."""
    job = soc.job([_POINT] * 100 + [END])
    soc.ring()
    soc.bus.advance(400)
    paused = soc.bus.cycle
    soc.write("CONTROL", _ENABLE | _PAUSE)
    halted = _interrupted(soc)
    soc.bus.advance(_LONG)
    resumed = soc.bus.cycle
    soc.write("CONTROL", _ENABLE)
    soc.bus.advance(_LONG)
    return {"pause to HALTED": halted - paused, "withdrawal to end": soc.completion(job)["end"] - resumed}


def pause_of_an_idle_engine(soc: SocBench) -> Measured:
    """From the write of a pause to the interrupt of HALTED, of an engine without a job."""
    paused = soc.bus.cycle
    soc.write("CONTROL", _ENABLE | _PAUSE)
    return {"pause to HALTED, idle": _interrupted(soc) - paused}


def reset(soc: SocBench) -> Measured:
    """From the write of a reset until the engine is DISABLED, if it is idle and if it loads: the fewest cycles to wait
    between the write and the read of STATUS."""
    return {"reset": _reset(soc, []), "reset of a load": _reset(soc, [copy(Op.LD2, len=4096), END])}


def _reset(soc: SocBench, body: list[Insn]) -> int:
    for cycles in range(200):
        soc.setup()
        if body:
            soc.code[0] = 0
            soc.job(body)
            soc.ring()
            soc.bus.advance(250)
        soc.write("CONTROL", _RESET)
        soc.bus.advance(cycles)
        state = soc.read("STATUS") & 15
        soc.bus.advance(_LONG)
        if state == EngineState.DISABLED:
            return cycles
    raise AssertionError("the engine does not come out of reset")


def instructions(soc: SocBench) -> Measured:
    """Cycles of eighty instructions that do nothing, in a long body; and of a body of one copy of a word."""
    jobs = [soc.job([_POINT] * count + [END]) for count in (20, 100)]
    starts, ends = _ended(soc, jobs)
    took = [end - start for start, end in zip(starts, ends, strict=True)]
    return {"eighty instructions": took[1] - took[0]}


def body(soc: SocBench) -> Measured:
    """Of an empty body alone, and of one copy of a word."""
    took = []
    for insns in ([END], [copy(Op.LD1, len=8), END]):
        (start,), (end,) = _ended(soc, [soc.job(insns)])
        took.append(end - start)
        soc.bus.advance(_LONG)
    return {"an empty body": took[0], "a copy of a word": took[1]}


def _ended(soc: SocBench, jobs: list[int]) -> tuple[list[int], list[int]]:
    """Starts and ends of the bodies of ``jobs``, which are all that are queued."""
    soc.ring()
    soc.wait(jobs[-1] + 1)
    found = [soc.completion(job) for job in jobs]
    return [one["start"] for one in found], [one["end"] for one in found]


def _gaps(starts: list[int], ends: list[int]) -> list[int]:
    return [start - end for start, end in zip(starts[1:], ends, strict=False)]


def _interrupted(soc: SocBench) -> int:
    """The cycle of the next interrupt."""
    assert soc.bus.wait_irq(_LONG)
    return soc.bus.cycle


MEASUREMENTS: tuple[Callable[[SocBench], Measured], ...] = (
    doorbell, event, event_of_the_host, event_of_another_engine, retirement, pause, pause_of_an_idle_engine, reset,
    instructions, body,
)  # fmt: skip

#: What the RTL takes: a number, or one for each of the bodies behind the first.
KNOWN: dict[str, Measured] = {
    "tiny": {
        "doorbell to body": 121,
        "body to body": [63, 63, 63, 63, 63],
        "behind an event": [140, 116, 126, 114, 124],
        "event of the host to body": 10,
        "end to interrupt": 133,
        "pause to HALTED": 16,
        "withdrawal to end": 674,
        "pause to HALTED, idle": 7,
        "reset": 0,
        "reset of a load": 173,
        "eighty instructions": 723,
        "an empty body": 74,
        "a copy of a word": 69,
    },
    "base": {
        "doorbell to body": 181,
        "body to body": [63, 63, 63, 63, 63],
        "behind an event": [110, 102, 93, 96, 95],
        "event of the host to body": 14,
        "behind another engine": 117,
        "end to interrupt": 105,
        "pause to HALTED": 31,
        "withdrawal to end": 703,
        "pause to HALTED, idle": 7,
        "reset": 0,
        "reset of a load": 64,
        "eighty instructions": 567,
        "an empty body": 130,
        "a copy of a word": 125,
    },
}
#: By how many cycles the fast model may be off, where it is not exact: bursts that meet others take turns in DRAM.
OFF = {("tiny", "withdrawal to end"): 7, ("base", "withdrawal to end"): 3, ("base", "behind an event"): 10}

#: What the accounts of today take for the time between two layers, which holds the filling of the units and their
#: draining, too. None of them may be less than what the machine takes without any work.
BETWEEN_LAYERS = {"LAYER_TO_FULL_WORK": 1000, "LAYER_TO_RESULT": 700, "LAYER_TO_LOAD": 400}


def measured(measure: Callable[[SocBench], Measured], bus: Bus) -> Measured:
    """What ``measure`` finds on a machine that was just powered on."""
    with closing(bus):
        soc = SocBench(bus.params, bus=bus)
        for engine in range(bus.params.engines):
            soc.setup(engine)
        return measure(soc)


def on_the_model(measure: Callable[[SocBench], Measured], name: str) -> Measured:
    """What ``measure`` finds on the fast model."""
    return measured(measure, ModelBus(preset(name), costs=HostCosts.free()))


def off(found: Measured, name: str) -> list[str]:
    """What the fast model takes another time for than is known, by more than :data:`OFF`."""
    return [
        what
        for what, cycles in found.items()
        if cycles != pytest.approx(KNOWN[name][what], rel=0, abs=OFF.get((name, what), 0))
    ]


@pytest.mark.parametrize("measure", MEASUREMENTS, ids=lambda measure: measure.__name__)
@pytest.mark.parametrize("name", ["tiny", pytest.param("base", marks=pytest.mark.slow)])
def test_the_rtl_takes_what_is_known(name, measure):
    found = measured(measure, open_bus(preset(name), costs=HostCosts.free()))
    assert found == {what: cycles for what, cycles in KNOWN[name].items() if what in found}


@pytest.mark.parametrize("name", KNOWN)
def test_the_fast_model_takes_as_long(name):
    found: Measured = {}
    for measure in MEASUREMENTS:
        found |= on_the_model(measure, name)
    assert not off(found, name)
    assert sorted(found) == sorted(KNOWN[name])


def test_a_wrong_constant_of_the_model_is_noticed(monkeypatch):
    """From a job that the loader hands over until its body may be fetched, a cycle more."""
    monkeypatch.setattr(prepare, "JOB_READ", prepare.JOB_READ + 1)
    assert off(on_the_model(doorbell, "tiny"), "tiny")


def instruction_overheads(name: str) -> Iterator[tuple[overheads.Overhead, int, int]]:
    """Yield overheads of instructions, with what the RTL takes and what the fast model takes."""
    params = preset(name)
    store, load, twice = (copy(Op.ST1, len=8, wait=1), copy(Op.LD1, len=8, signal=1), copy(Op.LD2, len=8, wait=1))
    parameters, _ = vec_words(params, VecOp.LIN, 0, 1)
    body = [load, store, Insn(Op.MAC, {"p0": 20}), Insn(Op.VEC, {"src_acc": 1, "n2": 20})]
    rtl, model = (runs for runs, _ in record(params, [body, [copy(Op.LD2, len=8, signal=1), twice]]))

    def took(unit: Unit, number: int = 0) -> list[int]:
        return [end - begin for begin, end in (runs[0, unit][number] for runs in (rtl, model))]

    def beside(overhead: overheads.Overhead, work: int, *found: int) -> tuple[overheads.Overhead, int, int]:
        real, modelled = found
        return overhead, real - work, modelled - work

    yield beside(overheads.COPY, 1, *took(Unit.LD1))
    yield beside(overheads.MAC, params.rows + 20, *took(Unit.MAC))
    yield beside(overheads.VEC, parameters + 20, *took(Unit.VEC))
    yield beside(overheads.GRANT, 0, *(runs[0, Unit.ST1][0][0] - runs[0, Unit.LD1][0][1] for runs in (rtl, model)))
    around = COPY_PLANNED + params.dram_latency + 1 + COPY_LANDED - 1
    yield beside(overheads.BUS, around, *took(Unit.LD2, 1))


@pytest.mark.parametrize("name", ["tiny", pytest.param("base", marks=pytest.mark.slow)])
def test_exact_overheads_of_instructions_are_what_the_rtl_takes(name):
    for overhead, real, modelled in instruction_overheads(name):
        assert overhead.exact == real == modelled, overhead


def test_exact_overheads_of_jobs_are_what_the_rtl_takes():
    """The next body begins when the completion of the last was copied, a cycle before that is asked to be written."""
    for name, known in KNOWN.items():
        assert set(known["body to body"]) == {overheads.BODY_TO_BODY}, name
        assert overheads.BODY_TO_BODY + 1 == overheads.RETIREMENT.exact < known["end to interrupt"], name


def test_no_overhead_is_less_at_the_worst_than_exactly():
    found = [one for one in vars(overheads).values() if isinstance(one, overheads.Overhead)]
    assert len(found) >= 8
    for one in found:
        assert one.exact is None or one.exact <= one.worst, one


def test_no_account_takes_less_between_layers_than_the_machine():
    most = max(max(known["body to body"] + known["behind an event"]) for known in KNOWN.values())
    for name, cycles in BETWEEN_LAYERS.items():
        assert getattr(overheads, name) == cycles > most, name


@pytest.mark.parametrize("name", KNOWN)
def test_the_worst_account_takes_no_less_than_the_machine(name):
    params, known = preset(name), KNOWN[name]
    bounds = worst_intervals([_POINT] * 100 + [END], params, Others(params.engines - 1))
    assert known["pause to HALTED"] <= max(bounds.points)
    assert known["end to interrupt"] <= WorstDram(params).completion
