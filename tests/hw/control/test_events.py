import random

import pytest

from hw.contract.params import preset
from hw.control.events import EventCounters
from tests.support.streams import Stalls, simulate, stream_put, until

PARAMS = preset("tiny").replace(engines=4, events=8)
TURNS = 2 * (2 * PARAMS.engines + 1)  #: cycles in which everybody has had a turn


class Host:
    def __init__(self, dut: EventCounters) -> None:
        self.dut = dut

    async def read(self, ctx, index: int) -> int:
        ctx.set(self.dut.index, index)
        ctx.set(self.dut.read, 1)
        (value,) = await until(ctx, self.dut.ack, self.dut.r_data)
        ctx.set(self.dut.read, 0)
        return value

    async def write(self, ctx, index: int, value: int) -> None:
        ctx.set(self.dut.index, index)
        ctx.set(self.dut.w_data, value)
        ctx.set(self.dut.write, 1)
        await until(ctx, self.dut.ack)
        ctx.set(self.dut.write, 0)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_signals_of_several_engines_at_once_all_count(stall):
    dut = EventCounters(PARAMS)
    rng = random.Random(3)
    sent = [[rng.choice((2, 2, 7)) for _ in range(10)] for _ in range(PARAMS.engines)]
    host, ended = Host(dut), []

    def engine(number: int):
        async def testbench(ctx) -> None:
            for event in sent[number]:
                await stream_put(ctx, dut.engine[number].signal, event, Stalls(number + event, stall))
            ended.append(number)

        return testbench

    async def reads(ctx) -> None:
        while len(ended) < PARAMS.engines:
            await host.read(ctx, 2)  # a reader in between loses nothing
        assert [await host.read(ctx, i) for i in range(8)] == [
            sum(events.count(i) for events in sent) for i in range(8)
        ]
        assert await host.read(ctx, 8) == 0

    simulate(dut, reads, *(engine(number) for number in range(PARAMS.engines)))


def test_a_signal_counts_its_own_event_whenever_it_comes():
    dut = EventCounters(PARAMS)
    host = Host(dut)

    async def testbench(ctx) -> None:
        for delay in range(2 * TURNS):
            port = dut.engine[1].signal
            event = 1 + delay % 2
            await ctx.tick().repeat(delay + 1)
            ctx.set(port.payload, event)
            ctx.set(port.valid, 1)
            await until(ctx, port.ready)
            ctx.set(port.valid, 0)
            ctx.set(port.payload, 0)
        assert [await host.read(ctx, i) for i in range(4)] == [0, TURNS, TURNS, 0]

    simulate(dut, testbench)


def test_writes_of_the_host_and_signals_do_not_undo_each_other():
    dut = EventCounters(PARAMS)
    host, ended = Host(dut), []

    async def engine(ctx) -> None:
        for _ in range(30):
            await stream_put(ctx, dut.engine[1].signal, 1)
        ended.append(1)

    async def writes(ctx) -> None:
        for value in range(20):
            await host.write(ctx, 3, value)
            assert await host.read(ctx, 3) == value
        await host.write(ctx, 9, 5)  # there is none: nothing happens, and event 1 is not overwritten
        while not ended:
            await ctx.tick()
        assert await host.read(ctx, 1) == 30

    simulate(dut, engine, writes)


@pytest.mark.parametrize(("start", "target"), [(0, 3), (0xFFFFFFFE, 1), (5, 5), (6, 5), (0x60000000, 0x10000000)])
def test_waits_end_when_the_counter_has_reached_the_value(start, target):
    """All engines but one wait for the same event, each pulse is theirs alone, and comparison is modulo 2^32."""
    dut = EventCounters(PARAMS)
    host = Host(dut)
    missing = max(0, (target - start + (1 << 31)) % (1 << 32) - (1 << 31))
    reached: dict[int, int] = {}
    now, last_signal = [0], [0]
    started: list[int] = []

    async def clock(ctx) -> None:
        async for _ in ctx.tick():
            now[0] += 1

    def waiter(number: int):
        async def testbench(ctx) -> None:
            port = dut.engine[number]
            while not started:
                await ctx.tick()
            ctx.set(port.wait.id, 4)
            ctx.set(port.wait.value, target)
            ctx.set(port.wait.request, 1)
            await until(ctx, port.wait.reached)
            ctx.set(port.wait.request, 0)
            reached[number] = now[0]

        return testbench

    async def signals(ctx) -> None:
        await host.write(ctx, 4, start)
        started.append(1)
        last_signal[0] = now[0]
        for _ in range(missing):
            await ctx.tick().repeat(2 * TURNS)
            assert not reached
            await stream_put(ctx, dut.engine[0].signal, 4)
            last_signal[0] = now[0]
        while len(reached) < PARAMS.engines - 1:
            await ctx.tick()

    waiters = [waiter(number) for number in range(1, PARAMS.engines)]
    simulate(dut, signals, *waiters, background=[clock])
    assert all(0 <= when - last_signal[0] <= TURNS + 2 for when in reached.values()), (reached, last_signal)


def test_a_wait_for_a_later_value_is_not_reached():
    dut = EventCounters(PARAMS)

    async def testbench(ctx) -> None:
        port = dut.engine[2]
        ctx.set(port.wait.id, 6)
        ctx.set(port.wait.value, 1)
        ctx.set(port.wait.request, 1)
        for _ in range(3 * TURNS):
            _, _, reached = await ctx.tick().sample(port.wait.reached)
            assert not reached

    simulate(dut, testbench)
