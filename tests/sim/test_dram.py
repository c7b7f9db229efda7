"""Timing and contents of the DRAM model."""

import gc
import random
from itertools import pairwise

import pytest
from amaranth.sim import Simulator

from hw.contract.params import preset
from sim.dram import Dram
from tests.support.sampled import sampled

PARAMS = preset("tiny").replace(dram_bytes=64 * 1024, dram_refresh_interval=2000, dram_refresh_cycles=100)
WORD = PARAMS.dram_word
BANK_STRIDE = PARAMS.dram_row_bytes * PARAMS.dram_banks  # two rows of the same bank


class Master:
    """Issues bursts and keeps what came back with the cycle it came in."""

    def __init__(self, dut, bursts=(), writes=(), *, pause=lambda: False, stall_rate=0, timing=None):
        self.axi = dut.axi
        self.bursts, self.writes, self.pause = list(bursts), list(writes), pause
        self.stall_rate = stall_rate
        self.timing = timing or {}
        self.cycle = 0
        self.accepted: list[int] = []
        self.beats: list[tuple[int, int, int, int, int]] = []  # cycle, id, data, resp, last
        self.responses: list[tuple[int, int, int]] = []  # cycle, id, resp

    async def _clock(self, ctx):
        while True:
            await ctx.tick()
            self.cycle += 1

    async def _send(self, ctx, channel, values):
        while self.pause():
            await ctx.tick()
        for name, value in values.items():
            ctx.set(getattr(self.axi, channel + name), value)
        ctx.set(getattr(self.axi, f"{channel}valid"), 1)
        while True:
            cycle = self.cycle
            if (await ctx.tick().sample(getattr(self.axi, f"{channel}ready")))[2]:
                ctx.set(getattr(self.axi, f"{channel}valid"), 0)
                return cycle

    async def _read_requests(self, ctx):
        for addr, beats, ident in self.bursts:
            self.accepted.append(await self._send(ctx, "ar", {"id": ident, "addr": addr, "len": beats - 1}))

    async def _write_requests(self, ctx):
        for addr, beats, ident in self.writes:
            await self._send(ctx, "aw", {"id": ident, "addr": addr, "len": len(beats) - 1})

    async def _write_data(self, ctx):
        for _, beats, _ in self.writes:
            for i, (data, strb) in enumerate(beats):
                await self._send(ctx, "w", {"data": data, "strb": strb, "last": i == len(beats) - 1})

    async def _collect(self, ctx, channel, fields, into, count):
        ready, valid = getattr(self.axi, f"{channel}ready"), getattr(self.axi, f"{channel}valid")
        while len(into) < count:
            ctx.set(ready, not self.pause())
            cycle = self.cycle
            sampled = await ctx.tick().sample(ready, valid, *(getattr(self.axi, channel + f) for f in fields))
            if sampled[2] and sampled[3]:
                into.append((cycle, *sampled[4:]))

    def run(self, dut, limit=20_000):
        sim = Simulator(dut)
        sim.add_clock(1e-8)
        sim.add_testbench(self._clock, background=True)
        for bench in (self._read_requests, self._write_requests, self._write_data):
            sim.add_testbench(bench, background=True)

        async def reads(ctx):
            ctx.set(dut.stall_rate, self.stall_rate)
            for name, value in self.timing.items():
                ctx.set(getattr(dut, name), value)
            await self._collect(
                ctx, "r", ("id", "data", "resp", "last"), self.beats, sum(beats for _, beats, _ in self.bursts)
            )

        async def responses(ctx):
            await self._collect(ctx, "b", ("id", "resp"), self.responses, len(self.writes))

        async def watchdog(ctx):
            for _ in range(limit):
                await ctx.tick()
            pytest.fail(f"not finished after {limit} cycles")

        sim.add_testbench(reads)
        sim.add_testbench(responses)
        sim.add_testbench(watchdog, background=True)
        sim.run()
        return self


def first_beats(master):
    """Cycles from acceptance to first data, burst by burst."""
    index, result = 0, []
    for accepted, (_, beats, _) in zip(master.accepted, master.bursts, strict=True):
        result.append(master.beats[index][0] - accepted)
        index += beats
    return result


def test_a_row_miss_costs_more_than_a_hit():
    dut = Dram(PARAMS)
    master = Master(dut, [(0, 1, 0)]).run(dut)
    assert first_beats(master) == [PARAMS.dram_latency + PARAMS.dram_row_miss]

    class OneAtATime(Master):
        async def _read_requests(self, ctx):
            for addr, beats, ident in self.bursts:
                self.accepted.append(await self._send(ctx, "ar", {"id": ident, "addr": addr, "len": beats - 1}))
                for _ in range(100):
                    await ctx.tick()

    hit, miss = PARAMS.dram_latency, PARAMS.dram_latency + PARAMS.dram_row_miss
    dut = Dram(PARAMS)
    addresses = [0, 64, 1024, BANK_STRIDE, BANK_STRIDE + 64, 0, PARAMS.dram_row_bytes, 0]
    master = OneAtATime(dut, [(a, 4, 0) for a in addresses]).run(dut)
    assert first_beats(master) == [miss, hit, hit, miss, hit, miss, miss, hit]


@pytest.mark.parametrize(("latency", "row_miss"), [(4, 1), (40, 20), (300, 70)])
def test_latency_and_row_miss_are_those_set_at_run_time(latency, row_miss):
    dut = Dram(PARAMS)
    timing = {"latency": latency, "row_miss": row_miss}
    master = Master(dut, [(BANK_STRIDE, 4, 0)], timing=timing).run(dut)
    assert first_beats(master) == [latency + row_miss]


@pytest.mark.parametrize("bandwidth", [100, 99, 75, 50, 30, 7, 1])
def test_beats_of_a_burst_follow_the_bandwidth(bandwidth):
    params = PARAMS.replace(dram_bandwidth=bandwidth, dram_refresh_interval=20_000)
    dut = Dram(params)
    master = Master(dut, [(0, 16, 0)]).run(dut)
    cycles = [beat[0] for beat in master.beats]
    assert first_beats(master) == [params.dram_latency + params.dram_row_miss]
    assert [cycle - cycles[0] for cycle in cycles] == [100 * k // bandwidth for k in range(16)]


@pytest.mark.parametrize("bandwidth", [80, 33])
def test_reads_and_writes_share_the_bandwidth(bandwidth):
    dut = Dram(PARAMS.replace(dram_bandwidth=bandwidth, dram_refresh_interval=20_000))
    bursts = [(128 * i, 16, 1) for i in range(20)]
    writes = [(4 * PARAMS.dram_row_bytes + 128 * i, [(i, 255)] * 16, 2) for i in range(20)]
    master = Master(dut, bursts, writes).run(dut)
    taken = max(master.beats[-1][0], master.responses[-1][0])
    assert 2 * 20 * 16 * 100 / bandwidth <= taken + 100 / bandwidth
    assert taken <= 2 * 20 * 16 * 100 / bandwidth + 2 * PARAMS.dram_latency + PARAMS.dram_row_miss


@pytest.mark.parametrize("seed", sampled(range(3), 1))
def test_timing_set_at_run_time_equals_timing_elaborated(seed):
    rng = random.Random(seed)
    timing = {"latency": rng.randrange(4, 200), "row_miss": rng.randrange(1, 60), "bandwidth": rng.randrange(10, 101)}
    bursts = [(128 * rng.randrange(400), rng.choice((1, 4, 16)), 0) for _ in range(30)]
    writes = [(128 * rng.randrange(400), [(1, 255)] * rng.choice((1, 4, 16)), 0) for _ in range(30)]

    def outcome(dut, **changes):
        master = Master(dut, bursts, writes, **changes).run(dut)
        return master.accepted, master.beats, master.responses

    elaborated = Dram(PARAMS.replace(**{f"dram_{name}": value for name, value in timing.items()}))
    assert outcome(Dram(PARAMS), timing=timing) == outcome(elaborated)


def test_sequential_bursts_fill_the_bus_between_refreshes():
    dut = Dram(PARAMS)
    master = Master(dut, [(128 * i, 16, i % 64) for i in range(100)]).run(dut)
    cycles = [beat[0] for beat in master.beats]
    assert 1600 / (cycles[-1] - cycles[0] + 1) >= 0.95
    assert [beat[1] for beat in master.beats[::16]] == [i % 64 for i in range(100)]


def test_stalls_hold_back_the_given_share_of_the_beats():
    dut = Dram(PARAMS.replace(dram_refresh_interval=20_000))
    master = Master(dut, [(128 * i, 16, 0) for i in range(100)], stall_rate=64).run(dut)
    cycles = [beat[0] for beat in master.beats]
    assert 0.70 <= 1600 / (cycles[-1] - cycles[0] + 1) <= 0.78


def test_single_beats_fill_the_bus_as_far_as_the_queue_covers_the_latency():
    dut = Dram(PARAMS.replace(dram_latency=12))
    master = Master(dut, [(WORD * i, 1, 0) for i in range(200)]).run(dut)
    cycles = [beat[0] for beat in master.beats]
    assert 200 / (cycles[-1] - cycles[0] + 1) >= 0.95


def test_rows_of_one_bank_exclude_each_other_and_banks_overlap():
    def cycles(stride):
        dut = Dram(PARAMS)
        master = Master(dut, [(stride * (i % 2), 16, 0) for i in range(20)]).run(dut)
        return master.beats[-1][0] - master.beats[0][0] + 1

    assert cycles(BANK_STRIDE) >= 20 * 16 + 19 * PARAMS.dram_row_miss
    assert cycles(PARAMS.dram_row_bytes) <= 20 * 16 + PARAMS.dram_row_miss


def test_refresh_stops_the_bus_and_closes_the_rows():
    params = PARAMS.replace(dram_refresh_interval=500)
    dut = Dram(params)
    master = Master(dut, [(0, 16, 0)] * 80).run(dut)
    cycles = [beat[0] for beat in master.beats]
    gaps = [b - a for a, b in pairwise(cycles) if b - a > 1]
    assert len(gaps) == len(range(cycles[0] // 500, cycles[-1] // 500))
    assert all(
        params.dram_refresh_cycles < gap <= params.dram_refresh_cycles + params.dram_latency + 40 for gap in gaps
    )


def test_reads_and_writes_share_the_bus_fairly():
    dut = Dram(PARAMS.replace(dram_refresh_interval=10_000))
    bursts = [(128 * i, 16, 1) for i in range(40)]
    writes = [(4 * PARAMS.dram_row_bytes + 128 * i, [(i, 255)] * 16, 2) for i in range(40)]
    master = Master(dut, bursts, writes).run(dut)
    last_read, last_write = master.beats[-1][0], master.responses[-1][0]
    assert abs(last_read - last_write) < 100
    assert 2 * 40 * 16 / max(last_read, last_write) >= 0.85  # latency of the first burst included


def test_addresses_beyond_the_end_answer_decerr():
    dut = Dram(PARAMS)
    end = PARAMS.dram_bytes
    writes = [(end - WORD, [(7, 255)], 1), (end, [(8, 255)], 1), (2 * end - WORD, [(9, 255)], 1)]
    master = Master(dut, [], writes).run(dut)
    assert [resp for _, _, resp in master.responses] == [0, 3, 3]

    dut = Dram(PARAMS)
    master = Master(dut, [(end - WORD, 1, 0), (end, 2, 0), (0, 1, 0)]).run(dut)
    assert [beat[3] for beat in master.beats] == [0, 3, 3, 0]


@pytest.mark.parametrize(("seed", "stall_rate"), [(1, 0), (2, 64), (3, 200)])
def test_random_traffic_reads_what_was_written(seed, stall_rate):
    rng = random.Random(seed)
    model = bytearray(PARAMS.dram_bytes)
    writes = []
    for _ in range(60):
        beats = rng.choice((1, 2, 5, 16))
        addr = rng.randrange(16) * 4096 + rng.randrange(4096 // WORD - beats + 1) * WORD
        burst = [(rng.getrandbits(8 * WORD), rng.getrandbits(WORD)) for _ in range(beats)]
        writes.append((addr, burst, rng.randrange(4)))
        for i, (value, strb) in enumerate(burst):
            for byte in range(WORD):
                if strb >> byte & 1:
                    model[addr + i * WORD + byte] = value >> (8 * byte) & 255
    bursts = [(addr, len(burst), ident) for addr, burst, ident in writes]

    dut = Dram(PARAMS)

    class WriteThenRead(Master):
        async def _read_requests(self, ctx):
            while len(self.responses) < len(self.writes):
                await ctx.tick()
            await super()._read_requests(ctx)

    master = WriteThenRead(dut, bursts, writes, pause=lambda: rng.random() < 0.3, stall_rate=stall_rate).run(dut)
    expected = []
    for addr, beats, ident in bursts:
        for i in range(beats):
            at = addr + i * WORD
            expected.append((ident, int.from_bytes(model[at : at + WORD], "little"), 0, i == beats - 1))
    assert [beat[1:] for beat in master.beats] == expected
    assert [ident for _, ident, _ in master.responses] == [ident for _, _, ident in writes]


@pytest.mark.filterwarnings("ignore:.*created but never used")
@pytest.mark.parametrize("change", [{"dram_refresh_cycles": 2000}, {"dram_refresh_cycles": 3000}])
def test_parameters_that_cannot_be_modelled_are_named(change):
    with pytest.raises(ValueError, match=f"{next(iter(change))} must be"):
        Dram(PARAMS.replace(**change))
    gc.collect()
