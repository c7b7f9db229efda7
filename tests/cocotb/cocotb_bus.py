"""The driver's ``Bus`` over the generated Verilog, with the AXI models of cocotbext-axi around it."""

import itertools
import random

import cocotb
from cocotb.clock import Clock
from cocotb.task import resume
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

from hw.contract.bus import BusError, HostCosts
from hw.contract.params import SocParams

PERIOD_NS = 10


def random_pauses(seed: int, share: float):
    """An endless pause generator: True in about ``share`` of the cycles."""
    rng = random.Random(seed)
    return (rng.random() < share for _ in itertools.count())


class CocotbBus:
    """:class:`hw.contract.bus.Bus` for synchronous code that runs in ``cocotb.task.bridge``.

    Host actions cost nothing: what is checked here is the Verilog, not latency. ``stall`` is the share of cycles
    in which each AXI channel is held up.
    """

    def __init__(self, dut, params: SocParams, *, stall: float = 0.0, seed: int = 1) -> None:
        self.params = params
        self.costs = HostCosts.free()
        self._dut = dut
        self.attributes: dict[str, set[tuple[int, int]]] = {"ar": set(), "aw": set()}  #: AxCACHE, AxPROT of all bursts
        self._ram = AxiRam(AxiBus.from_prefix(dut, "axi"), dut.clk, dut.rst, size=params.dram_bytes)
        self._axil = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "axil"), dut.clk, dut.rst)
        if stall:
            for number, side in enumerate((self._ram, self._axil)):
                channels = (side.write_if.aw_channel, side.write_if.w_channel, side.write_if.b_channel)
                channels += (side.read_if.ar_channel, side.read_if.r_channel)
                for i, channel in enumerate(channels):
                    channel.set_pause_generator(random_pauses(seed + 10 * number + i, stall))

    async def start(self) -> None:
        """Start the clock and take the SoC out of reset."""
        cocotb.start_soon(Clock(self._dut.clk, PERIOD_NS, "ns").start())
        self._dut.rst.value = 1
        await ClockCycles(self._dut.clk, 4)
        self._dut.rst.value = 0
        await ClockCycles(self._dut.clk, 2)
        cocotb.start_soon(self._note_attributes())

    async def _note_attributes(self) -> None:
        while True:
            await RisingEdge(self._dut.clk)
            for channel in ("ar", "aw"):
                valid, ready, cache, prot = (
                    int(getattr(self._dut, f"axi_{channel}{name}").value)
                    for name in ("valid", "ready", "cache", "prot")
                )
                if valid and ready:
                    self.attributes[channel].add((cache, prot))

    @property
    def cycle(self) -> int:
        return int(get_sim_time("ns")) // PERIOD_NS

    def read_reg(self, address: int) -> int:
        return resume(self._read)(address)

    async def _read(self, address):
        answer = await self._axil.read(address, 4)
        self._check(answer, "read of", address)
        return int.from_bytes(answer.data, "little")

    def write_reg(self, address: int, value: int) -> None:
        resume(self._write)(address, value)

    async def _write(self, address, value):
        self._check(await self._axil.write(address, value.to_bytes(4, "little")), "write to", address)

    @staticmethod
    def _check(answer, access, address):
        if answer.resp != AxiResp.OKAY:
            raise BusError(f"{access} register {address:#06x}: {answer.resp.name}")

    def read_mem(self, address: int, size: int, *, charge: bool = True) -> bytes:
        return bytes(self._ram.read(address, size))

    def write_mem(self, address: int, data: bytes, *, charge: bool = True) -> None:
        self._ram.write(address, bytes(data))

    def wait_irq(self, limit: int) -> bool:
        return resume(self._wait_irq)(limit)

    async def _wait_irq(self, limit):
        for _ in range(limit):
            if self._dut.irq.value == 1:
                return True
            await RisingEdge(self._dut.clk)
        return bool(self._dut.irq.value == 1)

    def advance(self, cycles: int) -> None:
        if cycles:
            resume(self._advance)(cycles)

    async def _advance(self, cycles):
        await ClockCycles(self._dut.clk, cycles)

    def close(self) -> None:
        """The simulator ends with the test."""
