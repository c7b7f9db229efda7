"""Is the reference backend: Amaranth's own simulator."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from typing import Any

from amaranth.hdl import MemoryInstance
from amaranth.sim import Simulator

from hw.contract.bus import HostCosts, Progress
from sim.rtl.base import INPUTS, RtlBus, Until
from sim.rtl.top import SimTop

PERIOD = 1e-9
PROGRESS_CYCLES = 1000


class PysimBus(RtlBus):
    """Is a :class:`hw.contract.bus.Bus` over Amaranth's simulator, which does thousands of cycles per second.

    Parameters
    ----------
    top : SimTop
        The design to simulate.
    costs : HostCosts
    vcd : path, optional
        Write waveforms of all signals, but not of memories.
    progress : optional
        Called with the cycle every thousand cycles.
    """

    def __init__(
        self,
        top: SimTop,
        *,
        costs: HostCosts | None = None,
        vcd: str | PathLike | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(top.params, costs, progress)
        self._top = top
        self._job: Callable[[Any], Awaitable[None]] | None = None
        self._simulator = Simulator(top)
        self._simulator.add_clock(PERIOD)
        self._simulator.add_testbench(self._host)
        self._open = ExitStack()
        if vcd is not None:
            self._open.enter_context(_signals_to_vcd(self._simulator, vcd))
        self.set_dram_timing(self.params)

    async def _host(self, ctx) -> None:
        """Run a job at a time, and let no time pass between jobs: this is the one test bench."""
        while True:
            if self._job is not None:
                await self._job(ctx)
                self._job = None
            await ctx.delay(0)

    def _do(self, job: Callable[[Any], Awaitable[None]]) -> None:
        self._job = job
        while self._job is not None:
            self._simulator.advance()

    def _start_access(self, write: bool, address: int, value: int) -> None:
        top = self._top

        async def job(ctx):
            ctx.set(top.cmd_write, write)
            ctx.set(top.cmd_addr, address)
            ctx.set(top.cmd_data, value)
            ctx.set(top.cmd_valid, 1)
            await ctx.tick()
            ctx.set(top.cmd_valid, 0)

        self._do(job)

    def _response(self) -> tuple[int, bool]:
        data, error = self._sample(self._top.rsp_data, self._top.rsp_error)
        return data, bool(error)

    def _irq(self) -> bool:
        return bool(self._sample(self._top.irq)[0])

    def _sample(self, *signals) -> list[int]:
        values: list[int] = []

        async def job(ctx):
            values.extend(ctx.get(signal) for signal in signals)

        self._do(job)
        return values

    def _run(self, limit: int, until: Until) -> tuple[int, bool]:
        watched = {Until.LIMIT: (), Until.IRQ: (self._top.irq,), Until.RESPONSE: (self._top.rsp_valid,)}[until]
        ran, met = 0, False

        async def job(ctx):
            nonlocal ran, met
            while ran < limit and not met:
                sampled = await ctx.tick().sample(*watched)
                ran += 1
                met = any(sampled[2:])
                if self._progress and (self._cycle + ran) % PROGRESS_CYCLES == 0:
                    self._progress(self._cycle + ran)

        self._do(job)
        return ran, met

    def _rows(self, address: int, size: int) -> range:
        word = self.params.dram_word
        return range(address // word, -(-(address + size) // word))

    def _load(self, address: int, size: int) -> bytes:
        word, rows = self.params.dram_word, self._rows(address, size)
        values = self._sample(*(self._top.dram.contents[row] for row in rows))
        start = address - rows.start * word
        return b"".join(value.to_bytes(word, "little") for value in values)[start : start + size]

    def _store(self, address: int, data: bytes) -> None:
        word, rows = self.params.dram_word, self._rows(address, len(data))
        first, last = rows.start * word, rows.stop * word
        raw = self._load(first, address - first) + data
        raw += self._load(address + len(data), last - address - len(data))

        async def job(ctx):
            for i, row in enumerate(rows):
                ctx.set(self._top.dram.contents[row], int.from_bytes(raw[i * word : (i + 1) * word], "little"))

        self._do(job)

    def _set(self, what: str, *values: int) -> None:
        async def job(ctx):
            for name, value in zip(INPUTS[what], values, strict=True):
                ctx.set(getattr(self._top, name), value)

        self._do(job)

    def _release(self) -> None:
        self._open.close()


@contextmanager
def _signals_to_vcd(simulator: Simulator, path: str | PathLike) -> Iterator[None]:
    """Write what ``Simulator.write_vcd`` does without the memories: it would register one variable per DRAM word."""
    design = simulator._engine._design
    everything = design.fragments
    design.fragments = {f: info for f, info in everything.items() if not isinstance(f, MemoryInstance)}
    with simulator.write_vcd(str(path)):
        design.fragments = everything
        yield
