"""Drive and check ``amaranth.lib.stream`` interfaces in simulation, with seeded random stalls.

Every helper runs in an ``add_testbench`` coroutine: use one testbench per port.
"""

import random
from collections.abc import Awaitable, Callable, Iterable

from amaranth.hdl import Signal
from amaranth.sim import Simulator

Testbench = Callable[..., Awaitable[None]]


class Stalls:
    """A seeded source of random pauses: each cycle is a pause with ``probability`` (0 = never)."""

    def __init__(self, seed: int = 0, probability: float = 0.0) -> None:
        self._random = random.Random(seed)
        self._probability = probability

    def __call__(self) -> bool:
        """Whether to pause this cycle."""
        return self._random.random() < self._probability

    async def wait(self, ctx) -> None:
        """Let the pauses before the next transfer pass."""
        while self():
            await ctx.tick()


class Outputs:
    """Sets signals that one testbench drives, and only where the value changes: the simulator settles the whole design
    after each."""

    def __init__(self, ctx) -> None:
        self._ctx = ctx
        self._values: dict[int, tuple[Signal, int]] = {}

    def set(self, signal: Signal, value: int) -> None:
        """``signal``: one that nothing else drives, zero at power-on."""
        if self._values.get(id(signal), (signal, 0))[1] != value:
            self._values[id(signal)] = (signal, value)
            self._ctx.set(signal, value)


async def until(ctx, condition, *values) -> list:
    """Wait for the clock edge at which ``condition`` holds; returns ``values`` as they were there.

    Unlike ``ctx.tick().until(...)`` it leaves no generator behind when the simulation ends while it waits.
    """
    while True:
        _, _, met, *sampled = await ctx.tick().sample(condition, *values)
        if met:
            return sampled


async def stream_put(ctx, stream, payload, stalls: Stalls | None = None) -> None:
    """Send one payload (a value, or a dict for a struct), after a random pause."""
    if stalls is not None:
        await stalls.wait(ctx)
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    await until(ctx, stream.ready)
    ctx.set(stream.valid, 0)


async def stream_get(ctx, stream, stalls: Stalls | None = None):
    """Take one payload, after a random pause."""
    if stalls is not None:
        await stalls.wait(ctx)
    ctx.set(stream.ready, 1)
    (payload,) = await until(ctx, stream.valid, stream.payload)
    ctx.set(stream.ready, 0)
    return payload


def feed(stream, payloads: Iterable, stalls: Stalls | None = None) -> Testbench:
    """A testbench that sends all ``payloads``."""

    async def testbench(ctx) -> None:
        for payload in payloads:
            await stream_put(ctx, stream, payload, stalls)

    return testbench


def collect(stream, into: list, count: int, stalls: Stalls | None = None) -> Testbench:
    """A testbench that appends ``count`` payloads to ``into``."""

    async def testbench(ctx) -> None:
        for _ in range(count):
            into.append(await stream_get(ctx, stream, stalls))

    return testbench


def check_held(stream, name: str) -> Testbench:
    """A background testbench that fails if ``valid`` falls or the payload changes before it is taken."""

    async def testbench(ctx) -> None:
        held = None
        async for _, _, valid, ready, payload in ctx.tick().sample(
            stream.valid, stream.ready, stream.p.as_value() if hasattr(stream.p, "as_value") else stream.p
        ):
            if held is not None:
                assert valid, f"{name}: valid fell before ready"
                assert payload == held, f"{name}: payload changed before ready"
            held = payload if valid and not ready else None

    return testbench


def simulate(dut, *testbenches: Testbench, background: Iterable[Testbench] = (), limit: int = 20_000) -> None:
    """Run until every testbench has ended; fails after ``limit`` cycles. ``background`` ones may run for ever."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    for testbench in background:
        simulator.add_testbench(testbench, background=True)

    async def watchdog(ctx) -> None:
        cycles = 0
        async for _ in ctx.tick():
            cycles += 1
            assert cycles < limit, f"not finished after {limit} cycles"

    simulator.add_testbench(watchdog, background=True)
    simulator.run()
