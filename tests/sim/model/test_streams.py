"""Reads that the memory goes on with by itself: every burst is where it is when each is asked for by an event."""

import random

import pytest

from hw.contract.params import SocParams, preset
from sim.model.agenda import Agenda
from sim.model.dram import MemoryModel
from sim.model.load_unit import LoadUnit
from sim.model.requests import HELD
from sim.model.store_unit import StoreUnit
from sim.model.transfer import Transfer
from sim.timing.copies import Burst, BusCopy, CopySteps

_TINY = preset("tiny")
MACHINES = [
    _TINY,
    _TINY.replace(dram_bandwidth=50, dram_row_miss=60),
    _TINY.replace(axi_burst_beats=8, axi_outstanding=2, dram_latency=20, dram_banks=4, dram_row_bytes=1024),
    preset("base"),
]
SEEDS = range(20, 32)


class _Single:
    """A client of single bursts, such as instruction fetch."""

    def __init__(self, memory: MemoryModel, agenda: Agenda) -> None:
        self.moved = 0
        self.port, self._memory, self._agenda, self._held = 0, memory, agenda, False

    def offer(self, time: int, address: int) -> None:
        if not self._held:
            self._held = self._memory.request(time, self, False, address, 4, lambda at, _: None, None) == HELD

    def accepted(self, time: int) -> None:
        self._held = False


def _copy(rng: random.Random, params: SocParams) -> BusCopy:
    """A copy of many bursts or few, whole ones or short."""
    word, most = params.dram_word, params.axi_burst_beats
    longest = rng.choice([most, most, 2, 1])
    beats = [
        rng.choice([longest, longest, 1, rng.randint(1, longest)]) for _ in range(rng.choice([1, 3, 40, 120, 300]))
    ]
    paused = rng.random() < 0.5
    bursts = tuple(
        Burst(number * most * word, count, rng.choice([0, 0, 3]) if paused else 0) for number, count in enumerate(beats)
    )
    lead = rng.choice([0, max(0, len(bursts) - 2), rng.randint(0, len(bursts))])
    return BusCopy(CopySteps(rng.randint(1, 8), sum(beats) + 3, 0, 0), bursts, lead, rng.choice([0, 2]))


def _traffic(params: SocParams, seed: int) -> tuple[list, list, list, int]:
    """Bursts, their ends, when copies were accepted and done, and how many reads the memory went on with."""
    rng = random.Random(seed)
    agenda = Agenda()
    memory = MemoryModel(params, agenda)
    memory.log, memory.served = [], []
    streamed = []
    stream = memory.stream
    memory.stream = lambda *args: streamed.append(stream(*args)) or streamed[-1]  # type: ignore[method-assign]
    told: list[tuple[str, int]] = []

    def transfer(name: str) -> Transfer:
        return Transfer(
            _copy(rng, params), (rng.randrange(64) * 4096, 0), lambda at: told.append((f"{name} accepted", at)),
            lambda at: told.append((f"{name} done", at)), 0,
        )  # fmt: skip

    def struck(time: int, transfer: Transfer, number: int) -> None:
        raise AssertionError("there are no faults")

    units = [LoadUnit(params, memory, agenda, port, struck) for port in (2, 5)]
    store, single = StoreUnit(params, memory, agenda, 0, struck), _Single(memory, agenda)
    time = 0
    for number in range(60):
        time += rng.choice([1, 50, 400, 3000])
        kind = rng.choice(["load", "load", "single", "store"])
        if kind == "load":
            unit = rng.choice(units)
            if unit._offers[0] is None:  # as a queue offers one instruction at a time
                agenda.at(time, lambda at, what, to=unit: to.offer(at, what), transfer(f"load {number}"))
        elif kind == "store":
            agenda.at(time, lambda at, what: store.offer(at, what), transfer(f"store {number}"))
        else:
            agenda.at(time, single.offer, rng.randrange(1 << 18) & -256)
        agenda.run(time)
    agenda.run(time + 1_000_000)
    return [entry[2:] for entry in memory.log], memory.served, told, sum(asked for asked, _ in streamed)


@pytest.mark.parametrize("params", MACHINES, ids=range(len(MACHINES)))
def test_streamed_reads_are_where_they_are_without_streams(params, monkeypatch):
    total = 0
    for seed in SEEDS:
        with monkeypatch.context() as without:
            bursts, ends, told, streamed = _traffic(params, seed)
            without.setattr(MemoryModel, "stream", lambda *_: (0, 0))
            assert (bursts, ends, told, 0) == _traffic(params, seed), f"seed {seed}"
        total += streamed
    assert total > 100
