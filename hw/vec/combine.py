"""Combines writes: consecutive result vectors that share an LV1 word leave as one write."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.contract.params import SocParams
from hw.data_register import data_register
from hw.interfaces import WritePort
from hw.scratchpad import word_bits
from hw.vec.walker import LV1_ADDR


class WriteCombiner(wiring.Component):
    """Collects vectors of ``vec_lanes`` bytes into LV1 words.

    ``valid``, ``d``, ``vector``, ``last``: a result and its byte address; it is taken when ``ready``. A word is
    written when a vector of another word arrives, and after the ``last`` vector of an instruction; ``done`` pulses
    when that write has landed. ``busy``: a word is held. ``discard`` drops it, unless its write was offered already: a
    request is not withdrawn.
    """

    def __init__(self, params: SocParams) -> None:
        self._params = params
        super().__init__(
            {
                "valid": In(1), "ready": Out(1), "d": In(LV1_ADDR), "vector": In(8 * params.vec_lanes), "last": In(1),
                "done": Out(1), "busy": Out(1), "discard": In(1),
                "port": Out(WritePort(word_bits(params.lv1_bytes, params.lv1_word), params.lv1_word)),
            }
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        lanes, word = self._params.vec_lanes, self._params.lv1_word
        low = (word - 1).bit_length()
        part_low = (lanes - 1).bit_length()
        addr = data_register(self.port.req.payload.addr.shape())
        held, flush, offered = Signal(), Signal(), Signal()
        write = self.port.req
        same = held & ~flush & (addr == self.d[low:])
        leaves = Signal()
        m.d.comb += [
            write.valid.eq(held & (offered | (flush | (self.valid & (addr != self.d[low:]))) & ~self.discard)),
            write.payload.addr.eq(addr),
            leaves.eq(write.valid & write.ready),
            self.ready.eq(~held | same | leaves),
            self.done.eq(leaves & flush),
            self.busy.eq(held),
        ]
        m.d.sync += offered.eq(write.valid & ~write.ready)
        with m.If(leaves):
            m.d.sync += [held.eq(0), flush.eq(0), write.payload.en.eq(0)]
        with m.If(self.valid & self.ready):
            m.d.sync += [held.eq(1), flush.eq(self.last), addr.eq(self.d[low:])]
            for part in range(word // lanes):
                with m.If(self.d[part_low:low] == part if word > lanes else 1):
                    m.d.sync += [
                        write.payload.data.word_select(part, 8 * lanes).eq(self.vector),
                        write.payload.en.word_select(part, lanes).eq((1 << lanes) - 1),
                    ]
        with m.If(self.discard & ~offered):
            m.d.sync += [held.eq(0), flush.eq(0), write.payload.en.eq(0)]
        return m
