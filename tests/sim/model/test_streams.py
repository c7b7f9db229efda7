"""What the core does ahead of time: every burst is where it is when time comes cycle by cycle."""

import hashlib
import random

import numpy as np
import pytest

from hw.contract.params import SocParams, preset
from sim.cost.exact.copies import COPY_FIELDS, BurstTable, BusCopy, CopySteps, copy_steps
from sim.dram import DramFault
from sim.model.agenda import Agenda
from sim.model.commands import HELD, Command
from sim.model.memory import MemoryModel
from sim.model.memory_units import LoadUnit, StoreUnit
from tests.support.sampled import sampled

_TINY = preset("tiny").replace(name="two engines", engines=2)
MACHINES = [
    _TINY,
    _TINY.replace(dram_bandwidth=50, dram_row_miss=60),
    _TINY.replace(axi_burst_beats=8, axi_outstanding=2, dram_latency=20, dram_banks=4, dram_row_bytes=1024),
    preset("base"),
]
_STORE = {"len": 48, "hi": 48, "n2": 1, "n1": 4, "n0": 40, "dst_s0": 48, "hi1": 4, "hi0": 40}  #: a copy of ST1
SEEDS = range(20, 32)
_LOOKED = 16  #: cycles from one look at the counts of bursts to the next
#: What is told of the traffic of all seeds, by machine.
KNOWN = ("2ee8bc290deacee4", "7822ceada02584d6", "43829c38d3fb7712", "d277c26732892583")


class _Single:
    """A client of single bursts, such as instruction fetch."""

    def __init__(self, memory: MemoryModel, told: list[tuple[str, int]]) -> None:
        self.port, self._memory, self._told, self._held = 0, memory, told, False

    def offer(self, time: int, address: int) -> None:
        if not self._held:
            free = self._memory.request(time, self, False, address, 4, self._came, None)
            self._told.append(("single asked", free))
            self._held = free == HELD

    def accepted(self, time: int) -> None:
        self._told.append(("single accepted", time))
        self._held = False

    def _came(self, time: int, _: None) -> None:
        self._told.append(("single came", time))


def _copy(rng: random.Random, params: SocParams) -> BusCopy:
    """A copy of many bursts or few, whole ones or short."""
    word, most = params.dram_word, params.axi_burst_beats
    longest = rng.choice([most, most, 2, 1])
    beats = [
        rng.choice([longest, longest, 1, rng.randint(1, longest)]) for _ in range(rng.choice([1, 3, 40, 120, 300]))
    ]
    paused = rng.random() < 0.5
    rows = [
        (number * most * word, count, rng.choice([0, 0, 3]) if paused else 0, 0) for number, count in enumerate(beats)
    ]
    bursts = BurstTable(np.array(rows), len(rows))
    lead = rng.choice([0, max(0, len(bursts) - 2), rng.randint(0, len(bursts))])
    return BusCopy(CopySteps(rng.randint(1, 8), sum(beats) + 3, 0, 0), bursts, lead, rng.choice([0, 2]))


def _traffic(params: SocParams, seed: int, *, step: int) -> tuple[list, dict, int]:
    """Return what is told of copies and single bursts, by the cycle behind each step how many bursts had been accepted
    and were outstanding, and the events planned, if the model is run for ``step`` cycles at a time."""
    rng = random.Random(seed)
    agenda = Agenda()
    memory = MemoryModel(params, agenda)
    told: list[tuple[str, int]] = []
    counts: dict[int, tuple[int, ...]] = {}
    queued: dict[object, int] = {}  # commands of a unit that it has not taken

    def transfer(unit: LoadUnit | StoreUnit, name: str) -> Command:
        def accepted(time: int) -> None:
            queued[unit] = 0
            told.append((f"{name} accepted", time))

        return Command(
            _copy(rng, params), (rng.randrange(64) * 4096, 0), accepted,
            lambda at: told.append((f"{name} done", at)), 0,
        )  # fmt: skip

    def struck(time: int, transfer: Command, number: int) -> None:
        raise AssertionError("there are no faults")

    units: list[LoadUnit | StoreUnit] = [LoadUnit(memory, agenda, port, struck) for port in (2, 5)]
    units.append(StoreUnit(memory, agenda, 0, struck))
    single = _Single(memory, told)
    if seed % 3 == 1:
        memory.set_stalls(0, 77 * seed, 48)
    if seed % 3 == 2:
        memory.set_fault(0, DramFault.FREEZE, 0, params.dram_bytes - 1, 2000, 2700)
    time = 0

    def run(last: int) -> None:
        nonlocal time
        while time < last:
            time = min(last, time + step)
            agenda.run(time)
            counts[time] = memory.bursts, *(unit.outstanding for unit in units)

    for number in range(60):
        at = time + rng.choice([1, 50, 400, 3000])
        unit = rng.choice([*units, None, single])
        if unit is single:
            agenda.at(at, single.offer, rng.randrange(1 << 18) & -256)
        elif unit is None:
            work = copy_steps(params.lv1_word, *(dict.fromkeys(COPY_FIELDS, 0) | _STORE).values())
            agenda.at(at, lambda at, what: memory.lv2_writes.store(0, at + what.steps, 64, what), work)
        elif not queued.get(unit):  # as a queue offers one instruction at a time
            queued[unit] = 1
            agenda.at(at, lambda at, what, to=unit: to.offer(at, what), transfer(unit, f"copy {number}"))
        run(at)
    run(time + 20_000)
    return told, counts, agenda.planned


@pytest.mark.parametrize("params", sampled(MACHINES, 2), ids=range(len(MACHINES)))
def test_what_is_done_ahead_of_time_is_what_comes_cycle_by_cycle(params):
    fewer = 0
    for seed in SEEDS[:6]:
        told, counts, planned = _traffic(params, seed, step=1 << 20)
        told_stepwise, stepwise, events = _traffic(params, seed, step=1)
        assert told == told_stepwise, f"seed {seed}"
        assert counts == {time: stepwise[time] for time in counts}, f"seed {seed}"
        assert len(told) > 20 and max(counts.values())[0] > 100
        fewer += planned < events
    assert fewer > 3


@pytest.mark.parametrize(("params", "known"), [*zip(MACHINES, KNOWN, strict=True)], ids=range(len(MACHINES)))
def test_all_that_is_told_is_what_it_was_when_the_rules_were_compared_with_the_rtl(params, known):
    """Whoever changes a rule compares it again, by ``caesura bench accuracy``, and writes the new digest down."""
    digest = hashlib.sha256()
    for seed in SEEDS:
        told, counts, _ = _traffic(params, seed, step=_LOOKED)
        digest.update(repr((told, counts)).encode())
    assert digest.hexdigest()[:16] == known
