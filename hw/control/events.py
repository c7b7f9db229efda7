"""Defines the event counters of the SoC, which order jobs of different engines without the host."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.block_ram import BLOCK_RAM, NO_COLLISION
from hw.contract.params import SocParams
from hw.control.signatures import EVENT_BITS, EventPort


class EventCounters(wiring.Component):
    """Keeps ``params.events`` 32-bit counters in one RAM; engines and host take turns, one operation in two cycles.

    An engine's request is served within ``2 * (2 * engines + 1)`` cycles. Signals of several engines in one cycle are
    served one after another, so none is lost.

    Members
    -------
    engine : In(EventPort).array(params.engines)
    index, read, write, w_data, r_data, ack
        Register access: ``read`` or ``write`` is held until ``ack``, which comes with ``r_data``. Counters that do
        not exist read as zero.
    """

    def __init__(self, params: SocParams) -> None:
        self.params = params
        super().__init__(
            {
                "engine": In(EventPort()).array(params.engines),
                "index": In(EVENT_BITS),
                "read": In(1),
                "write": In(1),
                "w_data": In(32),
                "r_data": Out(32),
                "ack": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.ram = ram = Memory(shape=32, depth=self.params.events, init=[], attrs=BLOCK_RAM | NO_COLLISION)
        read, write = ram.read_port(), ram.write_port()
        turn = Signal(range(self.params.engines + 1))  # the last one is the host's
        waits = Signal()  # second of the two turns of an engine: waits, after signals
        second = Signal()  # the counter has been read
        asked = Signal()  # it was asked for when the read began: a request that came later named another one
        host = turn == self.params.engines
        exists = self.index < self.params.events

        m.d.comb += write.addr.eq(read.addr)
        with m.If(second):
            m.d.sync += second.eq(0)
            with m.If(host | waits):
                m.d.sync += [turn.eq(Mux(host, 0, turn + 1)), waits.eq(0)]
            with m.Else():
                m.d.sync += waits.eq(1)
        with m.Else():
            m.d.sync += second.eq(1)
        m.d.sync += asked.eq(0)

        with m.Switch(turn):
            for e in range(self.params.engines):
                port = self.engine[e]
                with m.Case(e):
                    m.d.comb += [
                        read.addr.eq(Mux(waits, port.wait.id, port.signal.payload)),
                        write.data.eq(read.data + 1),
                    ]
                    with m.If(~second):
                        m.d.sync += asked.eq(Mux(waits, port.wait.request, port.signal.valid))
                    with m.Elif(asked):
                        m.d.comb += [
                            port.signal.ready.eq(~waits),
                            write.en.eq(port.signal.valid & ~waits),
                            port.wait.reached.eq(port.wait.request & waits & ~(read.data - port.wait.value)[31]),
                        ]
            with m.Default():
                m.d.comb += [read.addr.eq(self.index), write.data.eq(self.w_data)]
                with m.If(~second):
                    m.d.sync += asked.eq(self.read | self.write)
                with m.Elif(asked):
                    m.d.comb += [
                        write.en.eq(self.write & exists),
                        self.ack.eq(self.read | self.write),
                        self.r_data.eq(Mux(exists, read.data, 0)),
                    ]
        return m
